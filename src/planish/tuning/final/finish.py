"""The end of a run, stage by stage: each makes a new state of the last, which is stored."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from planish.core import (
    CanIdentify,
    HasFigures,
    PlanishError,
    StoreError,
    best_harmless,
)
from planish.measure import ends_by
from planish.results.codec import encode, encode_notes
from planish.results.decoding import decode
from planish.results.result import Result
from planish.sandbox import LostError
from planish.tuning.final.ablate import ablate
from planish.tuning.final.allowance import Allowance
from planish.tuning.final.check import doubt, refer, score
from planish.tuning.final.compare import compare
from planish.tuning.final.figures import measure_figures
from planish.tuning.final.final_state import FinalState
from planish.tuning.final.front import order, settle
from planish.tuning.final.minimise import minimise
from planish.tuning.final.prune import prune
from planish.tuning.final.search_outcome import SearchOutcome
from planish.tuning.final.select import select
from planish.tuning.progress import Listener


@dataclass(frozen=True)
class FinalStage:
    """A stage of the end.

    Args:
        name: of its share of the time (see `WEIGHTS`); empty where it takes none.
        work: makes the next state, by a time of the monotonic clock.
        said: what the listener is told, with the `count` of finalists and the `time` that is left.
        skip_message: what is said where there is no time left to begin; empty where it begins all the same.
    """

    name: str
    work: Callable[[SearchOutcome, FinalState, float], FinalState]
    said: str = ""
    skip_message: str = ""


def stages(search: SearchOutcome) -> Iterator[FinalStage]:
    """List the stages that the end of a run has."""
    level, several, review = search.level, len(search.task.objectives) > 1, search.review()
    yield FinalStage("", select)
    if several:
        yield FinalStage("minimise", minimise, "minimising {count} of the front")
    elif isinstance(level, CanIdentify):
        yield FinalStage("minimise", prune, "leaving out what does nothing")
    yield FinalStage("compare", compare, "measuring the best {count} again beside the baseline: {time}")
    if review.second_opinion:
        yield FinalStage("doubt", doubt, "asking for a second opinion", "no second opinion")
    yield FinalStage("", settle)
    if review.scores:
        said = "scoring on data that the search did not see"
        yield FinalStage("score", score, said, "no scores on unseen data")
        yield FinalStage("", order)
    if review.reference:
        yield FinalStage("refer", refer, "", "the reference was not measured")
    if several:
        yield FinalStage("effects", ablate, "measuring what each step does", "no effects of single steps")
    if isinstance(level, HasFigures):
        what, work = "what the parts of the winner do", partial(measure_figures, level)
        yield FinalStage("describe", work, f"measuring {what}", f"not measured {what}")


def finish(search: SearchOutcome, listener: Listener, *, at_once: bool = False) -> Result:
    """Compare the best few with the baseline, store the result and give it.

    It takes as long as the search did at most (see `Allowance`), and says what did not fit. Ctrl-C leaves out
    what is not done yet; without the comparison the result is the search's best. There is none where the
    progress says so.

    Args:
        search: at least one of its trials is measured.
        listener: is told when a stage begins.
        at_once: leave all out.

    Raises:
        PlanishError: the baseline cannot be measured; the run is stored as finished, without a comparison.
    """
    store, run_id, stopped = search.store, search.progress.run_id, search.stopped
    state = FinalState(notes=search.notes)
    allowance = Allowance(search.wall_s, [*filter(None, (s.name for s in stages(search)))])
    try:
        if search.progress.compares and not at_once:
            for reached in _states(search, state, allowance, listener):
                state = reached
                _save(search, state)
    except KeyboardInterrupt:
        stopped = True
    except LostError as error:
        state = state.noted(f"not compared with the baseline: {error.message}")
    except Exception as error:  # such as a baseline that fails; what was searched is kept all the same
        with suppress(StoreError):  # it may be why this failed, and the first error tells more
            if isinstance(error, PlanishError):
                _save_notes(search, state.noted(f"not compared with the baseline: {error.message}"))
            store.finish_run(run_id, "finished", search.seconds)
        raise
    _save_notes(search, state)
    store.finish_run(run_id, "stopped" if stopped else "finished", search.seconds)
    return _result(search, state)


def _states(
    search: SearchOutcome, state: FinalState, allowance: Allowance, listener: Listener
) -> Generator[FinalState]:
    """Go through the stages; each state outlives a kill once it is stored."""
    for stage in stages(search):
        if stage.skip_message and not allowance.has(search.start_s, stage.name):
            state = state.noted(f"{stage.skip_message}: no time left")
        else:
            with _timed(search, stage, allowance) as end:
                if stage.said:
                    said = stage.said.format(count=len(state.finalists), time=allowance.told)
                    listener.ending(search.progress, said)
                state = _worked(stage, search, state, end)
        yield state
        if not state.finalists and state.baseline is None:  # there is nothing to be measured, or no time
            return


def _worked(stage: FinalStage, search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Do a stage; once there is a comparison, what fails after it is a note beside it."""
    try:
        return stage.work(search, state, end)
    except PlanishError as error:
        # Candidates that could not be minimised for lost workers are compared as they are.
        if state.baseline is None and not (stage.name == "minimise" and isinstance(error, LostError)):
            raise
        return state.noted(f"{stage.skip_message or f'no {stage.name}'}: {error}".rstrip("."))


@contextmanager
def _timed(search: SearchOutcome, stage: FinalStage, allowance: Allowance) -> Generator[float]:
    """Time a stage, and give when it is to be over.

    The comparison and the scores may take all the time that is left: without them there is no verdict.
    """
    end = allowance.until(stage.name) if stage.name else math.inf
    # Minimising heeds its end by itself, between measurements.
    whole = max(end, allowance.ends)
    limit = {"minimise": math.inf, "compare": whole, "score": whole}.get(stage.name, end)
    started = time.monotonic()
    try:
        with ends_by(limit):
            yield end
    finally:
        if name := {"refer": "compare"}.get(stage.name, stage.name):
            search.seconds[name] = search.seconds.get(name, 0.0) + time.monotonic() - started


def _save(search: SearchOutcome, state: FinalState) -> None:
    """Store what is known; a comparison that was left out must not erase an earlier one."""
    if found := state.comparison(search.level.baseline(search.task)):
        search.store.save_result(search.progress.run_id, encode(found))


def _save_notes(search: SearchOutcome, state: FinalState) -> None:
    """Store why nothing was compared, where no comparison is stored."""
    level, task, run_id = search.level, search.task, search.progress.run_id
    if state.baseline is not None or not (state.notes and search.progress.compares):
        return
    if not decode(search.store.result_rows(run_id, level.steps), task.objectives):
        search.store.save_result(run_id, [encode_notes(level.baseline(task), state.notes)])


def _result(search: SearchOutcome, state: FinalState) -> Result:
    task, best, baseline = search.task, search.progress.best, search.level.baseline(search.task)
    if len(task.objectives) > 1:
        best = state.best or best_harmless(search.trials, task.objectives, baseline)
    run, comparison = search.store.run(search.progress.run_id), state.comparison(baseline)
    return Result(run, task, best, comparison, search.progress.failures, state.notes)
