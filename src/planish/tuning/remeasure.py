"""Finalists measured again beside the baseline, their order, and members that left the front.

A verdict comes from the comparison. Afterwards only a cross-check that differs, or held-out examples,
change it.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from planish.core import (
    EQUAL,
    Candidate,
    EvaluatorSpec,
    Executor,
    Level,
    LostError,
    Measured,
    Objective,
    PlanishError,
    SecondaryBaseline,
    StoreError,
    Verdict,
)
from planish.measure import CutShortError, PairedSamples, Plan, Variant, seconds_left
from planish.measure.comparison import remeasure_all, times_worse
from planish.measure.intervals import NO_TIME
from planish.store import Store
from planish.tuning.comparison import Clocks, Compared, Finalist, InterimRatio, Measurement
from planish.tuning.comparison_codec import decode, decode_notes, encode_interim, encode_notes, is_interim
from planish.tuning.final_state import FinalState, SearchOutcome


def drop_and_rank(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Drop members of a front that are dominated, then rank the others."""
    return rank(search, drop_dominated(state, search.task.objectives), end)


def rank(search: SearchOutcome, state: FinalState, _end: float) -> FinalState:
    """Rank the finalists, the best to take first."""
    return ranked(state, search.task.objectives, search.level.baseline(search.task))


def ranked(state: FinalState, objectives: Sequence[Objective], baseline: Candidate) -> FinalState:
    """Rank the finalists, the best to take first.

    Of one objective, what is better than the baseline beyond the noise, the best first; then the
    baseline, if it is a finalist, so that it is taken where nothing is proven; then the others.

    Of several, what is worse than the baseline in none. Then the best by the leading objective comes
    first, and by the next one where they differ by noise alone; values on held-out examples
    are taken where there are any. Those on which the cross-check differs come last.

    Args:
        state: its finalists were measured.
        objectives: the leading one first.
        baseline: what they are compared with.
    """

    def key(finalist: Finalist) -> tuple[bool | float, ...]:
        differs = finalist.cross_check.agrees is False
        if len(objectives) > 1:
            return differs, *_front_key(finalist, objectives, state.baseline)
        lead = finalist.lead
        unproven = lead.verdict != "better"
        # Medians would not do: what is conclusive early is not measured in the same moments as the others.
        cost = objectives[0].cost(lead.ratio.value)
        return differs, unproven, unproven and finalist.candidate != baseline, cost

    return replace(state, finalists=tuple(sorted(state.finalists, key=key)))


def _front_key(
    finalist: Finalist, objectives: Sequence[Objective], baseline: Compared | None
) -> tuple[bool | float, ...]:
    costs = [_cost(finalist, objective, baseline) for objective in objectives]
    worse = any(finalist.measured[o.name].verdict in ("worse", "failed") for o in objectives)
    # Who was not scored on unseen data may be worse: the first has to be known for harmless.
    return (worse, not finalist.unharmed, *costs, objectives[0].cost(finalist.lead.median))


def _cost(finalist: Finalist, objective: Objective, baseline: Compared | None) -> float:
    # Within the noise it counts as the baseline's: else chance would decide before the next objective is
    # asked.
    same = finalist.measured[objective.name].verdict in ("same", "undecided")
    whose = baseline if same and baseline is not None else finalist
    held = whose.heldout_value(objective.name)
    return objective.cost(whose.measured[objective.name].median if held is None else held)


def withdraw_wins(finalist: Finalist) -> Finalist:
    """Claim no win for a finalist on which the cross-check differs."""
    if finalist.cross_check.agrees is not False:
        return finalist
    # Only wins: that something is worse needs no cross-check.
    word: Mapping[Verdict, Verdict] = {"better": "failed"}
    changed = {
        name: replace(each, verdict=word.get(each.verdict, each.verdict))
        for name, each in finalist.measured.items()
    }
    return replace(finalist, measured=changed)


def judge_by_heldout(state: FinalState, unjudged: Collection[Candidate] = ()) -> FinalState:
    """Let held-out examples decide verdicts: the search may have learnt its own by heart.

    What could not be scored on them has failed, by an objective that the baseline was scored by.

    Args:
        state: its finalists were scored.
        unjudged: of those that were not, whose workers were lost: that says nothing against them, and nothing
            for them.
    """
    base = state.baseline
    if base is None:
        return state

    def judged(finalist: Finalist) -> Finalist:
        missing: Verdict = "undecided" if finalist.candidate in unjudged else "failed"
        found = {
            name: replace(each, verdict=_verdict(each.objective, finalist, base, missing) or each.verdict)
            for name, each in finalist.measured.items()
        }
        return withdraw_wins(replace(finalist, measured=found))

    return replace(state, finalists=tuple(map(judged, state.finalists)))


def _verdict(
    objective: Objective, finalist: Finalist, baseline: Compared, missing: Verdict
) -> Verdict | None:
    """Judge by held-out examples; None where the baseline was not scored on any.

    Where the finalist was not, it is the missing verdict. A difference that is no larger than how well it is
    known is none.
    """
    held, base = (each.heldout_value(objective.name) for each in (finalist, baseline))
    if base is None:
        return None
    if held is None:
        return missing
    over = objective.cost(held) - objective.cost(base)
    if abs(over) <= finalist.heldout_within(objective.name):
        return "same"
    return "better" if over < 0 else "worse" if over > 0 else "same"


def drop_dominated(state: FinalState, objectives: Sequence[Objective]) -> FinalState:
    """Take out the members that another one or the baseline beats: the search had measured them too well.

    A disputed finalist beats no other, and is not dropped: it is to be seen. Where the baseline beats all,
    those that it alone beats stay, and a note says so.

    Args:
        state: its finalists were measured again and cross-checked.
        objectives: with a single one there is no front, and none is dropped.
    """
    if len(objectives) < 2 or state.baseline is None:
        return state
    noise = {o.name: state.noise_of(o) for o in objectives}

    def dominated(member: Finalist, rivals: Sequence[Compared]) -> bool:
        if member.cross_check.agrees is False:
            return False
        return any(dominates(rival, member, noise, objectives) for rival in rivals)

    left = list(state.finalists)
    # Rivals are those left: beyond a noise, to beat is not transitive, and of a circle one must stay.
    for member in state.finalists:
        rivals = [m for m in left if m is not member and m.cross_check.agrees is not False]
        if dominated(member, rivals):
            left.remove(member)
    good = [member for member in left if not dominated(member, [state.baseline])]
    gone = len(state.finalists) - len(good or left)
    lost = f"{gone} of the front: dropped, as another one or the baseline was better when measured again"
    return replace(state, finalists=tuple(good or left)).noted(
        "" if good else "the baseline beats all of the front when measured again", lost if gone else ""
    )


def dominates(
    one: Compared, other: Compared, noise: Mapping[str, float], objectives: Sequence[Objective]
) -> bool:
    """Return whether one is better than another somewhere, beyond the noise, and worse nowhere beyond it.

    Args:
        one: was measured.
        other: was measured too.
        noise: objective name to the share by which equals differ.
        objectives: what counts.
    """
    medians = [Measured({n: m.median for n, m in each.measured.items()}) for each in (other, one)]
    times = [(times_worse(o, medians[:1], medians[1:]), 1 + noise[o.name]) for o in objectives]
    return any(t > most for t, most in times) and all(t >= 1 / most for t, most in times)


REFERENCE_S = 10.0
"""Another baseline is measured so long at most."""

SamplesByObjective = Mapping[str, PairedSamples]
"""Results of a side, by the objectives' names."""


def compare(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Measure the baseline and the finalists by all objectives, interleaved, while there is time.

    Args:
        search: whose end it is.
        state: its finalists come in the order of what they add. The baseline may be one of them; it is
            measured once.
        end: when it is to be over, by the monotonic clock; it may take longer, up to the deadline of all.

    Returns:
        Those that were measured, the best first, apart from those that failed or were left out; no baseline
        where even the least that is of use was not over by the deadline.

    Raises:
        PlanishError: the baseline fails.
    """
    level, task = search.level, search.task
    spec, unchanged = level.evaluator(task, final=True), level.baseline(task)
    candidates = [each.candidate for each in state.finalists]
    # Not the baseline once more: beside itself it would only show noise, and take a share of the time.
    variants = {c: Variant(f"#{i}", c, spec) for i, c in enumerate(candidates, 1) if c != unchanged}
    baseline = Variant("baseline", unchanged, spec)
    seconds = max(0.0, end - time.monotonic())
    plan = replace(search.limits.plan, seed=search.settings.seed, seconds=seconds)
    if not variants:
        plan = replace(plan, processes=1)  # nothing is compared with the baseline, whose time is shown
    noisy = not all(objective.exact for objective in task.objectives)
    # What is exact needs no fresh processes.
    start = search.start if search.executor is None or noisy else partial(_lent, search.executor)
    try:
        look = _interim(search)
        base, *found = remeasure_all(baseline, list(variants.values()), task.objectives, start, plan, look)
    except CutShortError:
        return replace(state, finalists=()).noted("no time left to compare with the baseline")
    leading = task.objectives[0].name
    others = [each[leading] for each in found]
    noted = _notes(base[leading], others, plan) if noisy else ()
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
    return rank(search, compared.noted(*noted), end)


INTERIM_S = 1.0
"""Time between two interim results that are stored."""


def _interim(search: SearchOutcome) -> Callable[[Sequence[SamplesByObjective]], None]:
    """Return a function that stores a comparison's interim result, unless an earlier session's is stored.

    It is for those who watch: a run that ends before the comparison does has none.
    """
    level, task, run_id = search.level, search.task, search.progress.run_id
    try:
        rows = search.store.result_rows(run_id, level.steps)
        notes, compared = decode_notes(rows), decode(rows, task.objectives) is not None
    except StoreError:  # an earlier one that cannot be read is replaced by the new comparison alone
        notes, compared = (), True
    if compared:
        return lambda _: None
    baseline, leading, due = level.baseline(task), task.objectives[0].name, 0.0

    def store(found: Sequence[SamplesByObjective]) -> None:
        nonlocal due
        if (now := time.monotonic()) < due:
            return
        due = now + INTERIM_S
        known = [
            InterimRatio(sampled.name, sampled.ratio, sum(map(len, sampled.values)))
            for sampled in (each[leading] for each in found[1:])
            if sampled.ratio is not None
        ]
        search.store.save_result(run_id, [encode_interim(baseline, notes, known)])

    return store


def drop_interim(store: Store, run_id: str, level: Level, baseline: Candidate) -> None:
    """Drop the interim result of a comparison that was broken off, since the search goes on.

    Args:
        store: holds the run.
        run_id: the run.
        level: of its task.
        baseline: of its task.
    """
    with suppress(StoreError):  # what cannot be read is replaced by the next comparison
        rows = store.result_rows(run_id, level.steps)
        if is_interim(rows):
            notes = decode_notes(rows)
            store.save_result(run_id, [encode_notes(baseline, notes)] if notes else ())


def _measured(
    found: SamplesByObjective, base: SamplesByObjective, objectives: Sequence[Objective]
) -> dict[str, Measurement]:
    """Return the stored results of a side; the baseline is compared with no other."""
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


_ALL_FIT = "all fit in a budget of about {} s"


def seconds_for_all(notes: Iterable[str]) -> int:
    """Return the budget in which all repeats fit, as the notes of a run have it; 0 where all fitted."""
    pattern = _ALL_FIT.format(r"(\d+)")
    return next((int(found[1]) for note in notes if (found := re.search(pattern, note))), 0)


def _notes(base: PairedSamples, found: Sequence[PairedSamples], plan: Plan) -> Sequence[str]:
    """Return how a comparison with noise was measured, where that is not as usual."""
    repeats, every = sum(map(len, base.values)), plan.processes * plan.rounds
    notes: list[str] = []
    if repeats < every:
        lacking = sum(each.ratio is None and each.why == NO_TIME for each in found)
        sides = (1 + len(found)) / (1 + len(found) - lacking)
        wide = ", so the interval is wide" if any(each.verdict == "undecided" for each in found[:1]) else ""
        notes.append(
            f"only {repeats} of {every} repeats of the comparison fitted into {plan.seconds:.0f} s{wide}; "
            + _ALL_FIT.format(plan.seconds_for_all(repeats, sides))
        )
    evidence = [each.evidence for each in found if each.evidence is not None]
    by_processor = [each for each in evidence if each.by_processor and each.processor is not None]
    if by_processor:
        times = statistics.median(e.wall.width / e.processor.width for e in by_processor if e.processor)
        notes.append(
            f"the machine was busy: {len(by_processor)} of {len(found)} were compared by processor time, "
            f"{times:.0f} times as precise as the clock"
        )
    if disagree := sum(each.clocks_disagree for each in evidence):
        notes.append(
            f"processor time contradicts the clock for {disagree} of {len(found)}, and is not used there"
        )
    return notes


def compare_secondary_baseline(search: SearchOutcome, other: SecondaryBaseline, known: Compared) -> Compared:
    """Measure another baseline, interleaved with the baseline.

    It may be several times slower, and it is not judged; so one process is enough. What has noise is
    reported by its ratio to the baseline, since the speed of the machine may have changed.

    Args:
        search: whose baseline it is measured with.
        other: the other one.
        known: how the baseline did in the comparison.

    Raises:
        CutShortError: it was not over by the deadline.
        PlanishError: one of them fails.
    """
    level, task = search.level, search.task
    own = level.evaluator(task, final=True)
    baseline = Variant("baseline", level.baseline(task), own)
    variant = Variant(other.name, other.candidate, other.spec or own)
    plan = Plan(processes=1, seed=search.settings.seed, seconds=seconds_left(REFERENCE_S))
    _, found = remeasure_all(baseline, [variant], task.objectives, search.start, plan)
    for sampled in found.values():
        if sampled.lost:
            raise LostError(f"{other.name}: {sampled.why}")
        if sampled.failures:
            failure = sampled.failures[0]
            raise PlanishError(f"{other.name} failed: {failure.stage}: {failure.reason}: {failure.detail}")
    measured = dict[str, Measurement]()
    for objective in task.objectives:
        sampled = found[objective.name]
        value = sampled.median
        # What is exact is the same at any time, so the value itself may stand beside the others.
        if sampled.ratio is not None and not objective.exact:
            value = known.measured[objective.name].median * sampled.ratio.value
        measured[objective.name] = Measurement(objective, value)
    return Compared(name=other.name, measured=measured)


@contextmanager
def _lent(executor: Executor, spec: EvaluatorSpec, /, *, workers: int = 1) -> Generator[Executor]:
    """Use another owner's executor, which is not ours to close."""
    del workers
    executor.serve(spec)
    yield executor
