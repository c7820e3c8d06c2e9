"""The end of a run, step by step; what is known is stored after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager

from planish.core import (
    Candidate,
    CanIdentify,
    CanScore,
    CrossChecks,
    HasFigures,
    HasReference,
    Measured,
    Outcome,
    PlanishError,
    best_harmless,
)
from planish.isolation import LostError
from planish.measure import CutShortError, ends_by
from planish.results.result import Ranked, Result
from planish.tuning.final.allowance import WEIGHTS, Allowance
from planish.tuning.final.checks import doubt, refer, score
from planish.tuning.final.comparing import compare
from planish.tuning.final.effects import tell_effects
from planish.tuning.final.figures import measure_figures
from planish.tuning.final.front import drop_beaten
from planish.tuning.final.minimising import Minimised, minimise_all
from planish.tuning.final.outcome import SearchOutcome
from planish.tuning.final.prune import without_idle
from planish.tuning.final.select import finalists
from planish.tuning.final.state import FinalState
from planish.tuning.final.storing import stored_finalist
from planish.tuning.progress import Listener

_LATE = "the time for it was over"
_LEFT_OUT = {
    "doubt": "no second opinion",
    "score": "no scores on unseen data",
    "refer": "nothing to refer to",
    "effects": "no effects of single steps",
    "describe": "not measured what the parts of the winner do",
}


def finish(search: SearchOutcome, listener: Listener, *, at_once: bool = False) -> Result:
    """Compare the best few with the baseline, store the result and give it.

    It takes as long as the search did at most (see `Allowance`), and says what did not fit. Ctrl-C leaves out
    what is not done yet; without the comparison the result is the search's best. There is none where the
    progress says so.

    Args:
        search: at least one of its trials is measured.
        listener: is told when a step begins.
        at_once: leave all out.

    Raises:
        PlanishError: the baseline cannot be measured; the run is stored as finished, without a comparison.
    """
    store, run_id = search.store, search.progress.run_id
    state = FinalState(notes=[*search.notes])
    allowance = Allowance(search.wall_s, _names(search))
    try:
        if search.progress.compares and not at_once:
            _work(search, state, allowance, listener)
    except KeyboardInterrupt:
        search.stopped = True
    except LostError as error:
        state.notes.append(f"not compared with the baseline: {error.message}")
    except PlanishError:  # the baseline fails; what was searched is kept all the same
        store.finish_run(run_id, "finished", search.seconds)
        raise
    _save(search, state)
    store.finish_run(run_id, "stopped" if search.stopped else "finished", search.seconds)
    return _result(search, state)


def _names(search: SearchOutcome) -> list[str]:
    """List the steps that the end will have."""
    minimise = len(search.task.objectives) > 1 or isinstance(search.level, CanIdentify)
    further = [name for name, _, _ in _further(search) if name in WEIGHTS]
    return [*(["minimise"] if minimise else []), "compare", *further]


def _work(search: SearchOutcome, state: FinalState, allowance: Allowance, listener: Listener) -> None:
    """Take all steps of the end; what is known is stored after each, so that it outlives a kill."""
    first = search.space().start()
    chosen = finalists(search.level, search.task, search.trials, search.settings.finalists, first)
    if not chosen:
        return
    few: Sequence[Minimised] = [Minimised(candidate, candidate) for candidate in chosen]
    if len(search.task.objectives) > 1:
        with _step(search, listener, "minimise", f"minimising {len(chosen)} of the front"):
            few = _minimise(search, state, chosen, allowance.until("minimise"))
    elif isinstance(search.level, CanIdentify):
        with _step(search, listener, "minimise", "leaving out what does nothing"):
            few = without_idle(search, search.level, chosen, allowance.until("minimise"))
    told = f"measuring the best {len(few)} again beside the baseline: {allowance.told}"
    with _step(search, listener, "compare", told), ends_by(allowance.ends):
        _compare(search, state, few, allowance)
    if state.baseline:
        _look_further(search, state, allowance, listener)


def _look_further(search: SearchOutcome, state: FinalState, allowance: Allowance, listener: Listener) -> None:
    """Take the steps after the comparison, and say which of them there was no time for."""
    for name, what, step in _further(search):
        _save(search, state)
        if name not in WEIGHTS:
            step(search, state)
        elif not allowance.has(search.start_s, name):
            state.notes.append(f"{_LEFT_OUT[name]}: {_LATE}")
        else:
            stage = "compare" if name == "refer" else name
            with _step(search, listener, stage, what), ends_by(allowance.until(name)):
                step(search, state)


def _further(search: SearchOutcome) -> Iterator[tuple[str, str, Callable[[SearchOutcome, FinalState], None]]]:
    """List what comes after the comparison: its name, what is said, and what is done."""
    if isinstance(search.level, CrossChecks):
        yield "doubt", "asking for a second opinion", doubt
    yield "settle", "", _settle
    if isinstance(search.level, CanScore):
        yield "score", "scoring on data that the search did not see", score
        yield "sort", "", _sort
    if isinstance(search.level, HasReference):
        yield "refer", "", refer
    if len(search.task.objectives) > 1:
        yield "effects", "measuring what each step does", tell_effects
    if isinstance(search.level, HasFigures):
        yield "describe", "measuring what the parts of the winner do", measure_figures


@contextmanager
def _step(search: SearchOutcome, listener: Listener, stage: str, what: str) -> Generator[None]:
    """Time a step of the end, and say what it is, if there is anything to say."""
    if what:
        listener.ending(search.progress, what)
    started = time.monotonic()
    try:
        yield
    finally:
        search.seconds[stage] = search.seconds.get(stage, 0.0) + time.monotonic() - started


def _minimise(
    search: SearchOutcome, state: FinalState, chosen: Sequence[Candidate], end: float
) -> Sequence[Minimised]:
    found = minimise_all(search, chosen, end)
    state.noise = found.noise
    state.notes += found.notes
    return found.finalists


def _compare(
    search: SearchOutcome, state: FinalState, chosen: Sequence[Minimised], allowance: Allowance
) -> None:
    """Measure finalists again; those that do not fail become members, the best first."""
    objectives = search.task.objectives
    leading = objectives[0].name
    try:
        found = compare(search, [each.candidate for each in chosen], allowance.until("compare"))
    except CutShortError:
        state.notes.append(f"not compared with the baseline: {_LATE}")
        return
    state.baseline = found.baseline
    state.notes += found.notes
    wanted = {each.searched.hash for each in chosen}
    known = {t.candidate.hash: t.outcome for t in search.trials if t.candidate.hash in wanted}
    for each, standings in zip(chosen, found.others, strict=True):
        if standings[leading].verdict == "left out":
            continue
        if standings[leading].ratio is None:
            failed = standings[leading].failures[0]
            state.notes.append(
                f"one of the best failed when it was measured again: {failed.stage}: {failed.reason}"
            )
            continue
        state.members.append(
            Ranked(
                each.candidate,
                standings[leading],
                standings,
                searched=len(each.searched.steps),
                trial=_values(known.get(each.searched.hash)),
                notes=each.notes,
            )
        )
    _sort(search, state)


def _settle(search: SearchOutcome, state: FinalState) -> None:
    """Take out who is beaten, now that it is known who is disputed, and put the best first."""
    drop_beaten(state, search.task.objectives)
    _sort(search, state)


def _sort(search: SearchOutcome, state: FinalState) -> None:
    state.sort(search.task.objectives, search.level.baseline(search.task))


def _ranked(search: SearchOutcome, state: FinalState) -> Sequence[Ranked]:
    return state.ranked(search.task.objectives, search.level.baseline(search.task))


def _values(outcome: Outcome | None) -> Mapping[str, float]:
    return outcome.values if isinstance(outcome, Measured) else {}


def _save(search: SearchOutcome, state: FinalState) -> None:
    if ranked := _ranked(search, state):  # a comparison that was left out must not erase an earlier one
        rows = [stored_finalist(member, state, search.task) for member in ranked]
        search.store.save_result(search.progress.run_id, rows)


def _result(search: SearchOutcome, state: FinalState) -> Result:
    task, progress = search.task, search.progress
    best = progress.best
    if len(task.objectives) > 1:
        best = best_harmless(search.trials, task.objectives, search.level.baseline(task))
    assert best is not None
    ranked = tuple(_ranked(search, state))
    return Result(
        task=task,
        run_id=progress.run_id,
        best=best,
        ranked=ranked,
        baseline=state.baseline.get(progress.objective.name),
        trials=progress.trials,
        failures=progress.failures,
        seconds=search.seconds,
        stopped=search.stopped,
        notes=tuple(state.notes),
        baselines=state.baseline,
        baseline_scores=state.baseline_scores,
        reference=state.reference,
        figures=state.figures.get(ranked[0].candidate, {}) if ranked else {},
    )
