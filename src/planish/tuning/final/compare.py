"""Measuring the finalists again, beside the baseline."""

from __future__ import annotations

import statistics
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from planish.core import EQUAL, EvaluatorSpec, Executor, Objective, PlanishError, Reference
from planish.measure import CutShortError, PairedSamples, Plan, Variant, remeasure_all, seconds_left
from planish.results.comparison import Clocks, Compared, Finalist, Measurement
from planish.sandbox import LostError
from planish.tuning.final.final_state import FinalState
from planish.tuning.final.front import order
from planish.tuning.final.search_outcome import SearchOutcome

REFERENCE_S = 10.0
"""Another baseline is measured so long at most."""

MOST = 40
"""Processes in all; the time that the comparison has may end it before."""

SamplesByObjective = Mapping[str, PairedSamples]
"""How somebody did, by the objectives' names."""


def compare(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Measure the baseline and the finalists by all objectives, interleaved, while there is time.

    Args:
        search: whose end it is.
        state: its finalists come in the order of who tells the most. The baseline may be one of them; it is
            measured once.
        end: when it is to be over, by the monotonic clock; it may take longer, up to the deadline of all.

    Returns:
        Those who were measured, the best first, apart from those who failed or were left out; no baseline
        where even the least that tells something was not over by the deadline.

    Raises:
        PlanishError: the baseline fails.
    """
    level, task = search.level, search.task
    spec, unchanged = level.evaluator(task, final=True), level.baseline(task)
    candidates = [each.candidate for each in state.finalists]
    # Not the baseline once more: beside itself it would only show noise, and take a share of the time.
    variants = {c: Variant(f"#{i}", c, spec) for i, c in enumerate(candidates, 1) if c != unchanged}
    baseline = Variant("baseline", unchanged, spec)
    plan = Plan(seed=search.settings.seed, seconds=max(0.0, end - time.monotonic()), most=MOST)
    noisy = not all(objective.exact for objective in task.objectives)
    # What is exact needs no fresh processes.
    start = search.start if search.executor is None or noisy else partial(_lent, search.executor)
    try:
        base, *found = remeasure_all(baseline, list(variants.values()), task.objectives, start, plan)
    except CutShortError:
        return replace(state, finalists=()).noted("no time left to compare with the baseline")
    leading = task.objectives[0].name
    others = [each[leading] for each in found]
    told = _notes(base[leading], others, plan) if noisy else ()
    by_candidate = {unchanged: base, **dict(zip(variants, found, strict=True))}
    measured = Compared(name="baseline", measured=_measured(base, base, task.objectives))
    known, unknown = list[Finalist](), list[Finalist]()
    for each in state.finalists:
        paired = by_candidate[each.candidate]
        sampled = paired[leading]
        if sampled.ratio is not None:
            known.append(replace(each, measured=_measured(paired, base, task.objectives)))
        else:
            unknown.append(replace(each, unmeasured=sampled.verdict, why=sampled.why))
    compared = replace(state, finalists=tuple(known), unmeasured=tuple(unknown), baseline=measured)
    return order(search, compared.noted(*told), end)


def _measured(
    found: SamplesByObjective, base: SamplesByObjective, objectives: Sequence[Objective]
) -> dict[str, Measurement]:
    """Give what is kept of how somebody did; of the baseline, that is compared with nobody."""
    return {
        o.name: Measurement(
            o,
            found[o.name].median,
            found[o.name].ratio or EQUAL,
            found[o.name].verdict,
            found[o.name].samples if o == objectives[0] else (),
            None if found is base else _clocks(found[o.name], base[o.name]),
        )
        for o in objectives
    }


def _clocks(sampled: PairedSamples, baseline: PairedSamples) -> Clocks | None:
    evidence = sampled.evidence
    if evidence is None or evidence.processor is None:
        return None
    decides = "processor" if evidence.by_processor else "wall"
    rows = sampled.processor, baseline.processor
    return Clocks(evidence.wall, evidence.processor, decides, evidence.clocks_disagree, *rows)


def _notes(base: PairedSamples, found: Sequence[PairedSamples], plan: Plan) -> Sequence[str]:
    """Say how a comparison with noise was measured, where that is not as usual."""
    times = sum(map(len, base.values))
    notes: list[str] = []
    if times < plan.processes * plan.rounds:
        notes.append(
            f"only {times} of {plan.processes * plan.rounds} repeats of the comparison fitted into "
            f"{plan.seconds:.0f} s, so the interval is wide; all fit in a budget of about "
            f"{plan.seconds_for_all(times)} s"
        )
    return [*notes, *_clocked(found)]


def _clocked(found: Sequence[PairedSamples]) -> Sequence[str]:
    """Say which gains processor time tells, and which it contradicts."""
    evidence = [each.evidence for each in found if each.evidence is not None]
    by_processor = [each for each in evidence if each.by_processor and each.processor is not None]
    notes: list[str] = []
    if by_processor:
        times = statistics.median(e.wall.width / e.processor.width for e in by_processor if e.processor)
        notes.append(
            f"the machine was busy: {len(by_processor)} of {len(found)} were compared by processor time, "
            f"{times:.0f} times as precise as the clock"
        )
    if disagree := sum(each.clocks_disagree for each in evidence):
        notes.append(
            f"processor time contradicts the clock for {disagree} of {len(found)}, so it does not count there"
        )
    return notes


def compare_reference(search: SearchOutcome, reference: Reference, known: Compared) -> Compared:
    """Measure another baseline in turns with the baseline.

    It may be several times slower, and it is not judged; so one process is enough. What has noise is told by
    its ratio to the baseline, since the machine may be faster or slower now than in the comparison.

    Args:
        search: whose baseline it is measured with.
        reference: the other one.
        known: how the baseline did in the comparison.

    Raises:
        CutShortError: it was not over by the deadline.
        PlanishError: one of them fails.
    """
    level, task = search.level, search.task
    own = level.evaluator(task, final=True)
    baseline = Variant("baseline", level.baseline(task), own)
    variant = Variant(reference.name, reference.candidate, reference.spec or own)
    plan = Plan(processes=1, seed=search.settings.seed, seconds=seconds_left(REFERENCE_S))
    _, found = remeasure_all(baseline, [variant], task.objectives, search.start, plan)
    for sampled in found.values():
        if sampled.lost:
            raise LostError(f"{reference.name}: {sampled.why}")
        if sampled.failures:
            failure = sampled.failures[0]
            raise PlanishError(
                f"{reference.name} failed: {failure.stage}: {failure.reason}: {failure.detail}"
            )
    values = {o.name: _told(o, found[o.name], known.measured[o.name].median) for o in task.objectives}
    return Compared(
        name=reference.name, measured={o.name: Measurement(o, values[o.name]) for o in task.objectives}
    )


def _told(objective: Objective, sampled: PairedSamples, known: float) -> float:
    # What is exact is the same at any time, so the value itself may stand beside the others.
    if objective.exact or sampled.ratio is None:
        return sampled.median
    return known * sampled.ratio.value


@contextmanager
def _lent(executor: Executor, spec: EvaluatorSpec, /, *, workers: int = 1) -> Generator[Executor]:
    """Use somebody else's executor, which is not ours to close."""
    del workers
    executor.serve(spec)
    yield executor
