"""Run of the engine: a search within its budget, and its end.

`TuningRun` starts the workers, measures the baseline first where others are compared with it while the search
goes on, has `planish.tuning.search_loop` search, and finishes the run.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Self

from planish.core import (
    AllFailedError,
    Candidate,
    EvaluatorSpec,
    Executor,
    ExecutorFactory,
    Failed,
    Lost,
    LostError,
    NeedsBaseline,
    PlanishError,
    Searcher,
    StoppedError,
    Stops,
    StoreError,
    WrongBaselineError,
    stoppable,
    usable_cores,
)
from planish.tuning.budget import BudgetTracker, FinalLimits
from planish.tuning.final_state import SearchOutcome
from planish.tuning.finish import finish
from planish.tuning.recorder import TrialRecorder
from planish.tuning.result import Result
from planish.tuning.search_loop import InFlight, LeasedCandidates, PendingCandidates, SearchLoop
from planish.tuning.settings import Budget, Settings

IMPORTANCE_TRIALS = 64
"""Trials, evenly chosen, whose features the best candidate is given one by one."""

_RECOMPARED = (
    "the last comparison was undecided, so it was repeated with all the time of this command; once it is "
    "decided, the same command resumes the search"
)

_log = logging.getLogger("planish")


@dataclass
class TuningRun:
    """One search for one task, and what follows it.

    Args:
        settings: which searcher and space; seed, cores and workers.
        budget: when the search ends.
        searcher: proposes candidates.
        spec: makes the workers' evaluators.
        start: starts workers, for the search and for its end.
        recorder: keeps what became of them.
        started: when, by the monotonic clock.
        stops: how often Ctrl-C, or another signal that asks to stop, came.
        stopped: whether it did, as far as is known by now.
        notes: what the workers and the searcher have to say.
        startup_s: from starting the workers until their first answer.
        recompare_s: the seconds for the comparison, where the last one left the verdict undecided: it is
            repeated in place of a search. None where there is a search.
        space_size: how many candidates the space has, or at most; None where it is not listed.
        limits: of the end.
    """

    settings: Settings
    budget: Budget
    searcher: Searcher
    spec: EvaluatorSpec
    start: ExecutorFactory
    recorder: TrialRecorder
    started: float = field(default_factory=time.monotonic)
    stops: Stops = field(default_factory=Stops)
    stopped: bool = False
    notes: tuple[str, ...] = ()
    startup_s: float = 0.0
    recompare_s: float | None = None
    space_size: int | None = None
    limits: FinalLimits = field(default_factory=FinalLimits)

    def execute(self, executor: Executor | None) -> Result:
        """Search, compare the best few with the baseline, and store what was found."""
        with stoppable() as self.stops:
            self._search(executor)
            return finish(self._outcome(executor), self.recorder.listener, at_once=self.stops.count > 1)

    def _search(self, executor: Executor | None) -> None:
        recorder = self.recorder
        tracker = BudgetTracker(self.budget, recorder.progress, recorder.trials, self.stops, self.started)
        try:
            self._resume(tracker)
            if self.recompare_s is None or recorder.progress.best is None:
                self._search_with_workers(executor, tracker)
            else:
                self.notes = (_RECOMPARED,)
        except KeyboardInterrupt:
            self.stopped = True
        except BaseException:
            with suppress(StoreError):  # it may be why the search failed, and the first error says more
                # What an earlier session measured, and its result, is there all the same.
                status = "failed" if recorder.progress.best is None else "stopped"
                recorder.store.finish_run(recorder.run_id, status, recorder.seconds)
            raise
        self.started = tracker.started
        self.stopped |= self.stops.count > 0  # what is interrupted may have swallowed the exception
        recorder.progress.stopped = self.stopped
        if recorder.progress.best is None:
            recorder.store.finish_run(
                recorder.run_id, "stopped" if self.stopped else "failed", recorder.seconds
            )
            raise self._nothing_measured()

    def _search_with_workers(self, executor: Executor | None, tracker: BudgetTracker) -> None:
        with self._workers(executor) as ready:
            try:
                self._loop(ready, tracker)
            finally:
                self.notes = (
                    *ready.notes,
                    *_worker_loss_notes(ready.losses, len(self.recorder.lost)),
                    *self.searcher.notes,
                    *self._ended_early(tracker),
                )
            self._store_importance()

    def _store_importance(self) -> None:
        """Store which features make the best candidate good, where a model guided the search."""
        recorder = self.recorder
        if recorder.progress.best is None or self.stops.count > 0:
            return

        def others() -> Sequence[Candidate]:
            every = [trial.candidate for trial in recorder.trials]
            return every[:: -(-len(every) // IMPORTANCE_TRIALS)]

        if importance := self.searcher.importance(recorder.progress.best.candidate, others):
            recorder.store.save_importance(recorder.run_id, importance)

    def _ended_early(self, tracker: BudgetTracker) -> Sequence[str]:
        """Describe why a search ended before its budget was spent; nothing where it did not."""
        progress = self.recorder.progress
        if progress.stop_reason:
            return (f"the search was stopped: {progress.stop_reason}",)
        if tracker.is_spent() or tracker.trials_left() == 0:
            return ()
        count = self.recorder.trials.n_indexed
        if self.space_size is not None and count >= self.space_size:
            return (f"the search ended before its budget: all {count} candidates of the space were tried",)
        return (
            f"the search ended before its budget: the searcher proposed nothing new after {count} candidates",
        )

    def _resume(self, tracker: BudgetTracker) -> None:
        self.recorder.introduce()
        self.recorder.listener.started(self.recorder.progress)
        begun = time.monotonic()
        self.recorder.resume()
        tracker.exclude(time.monotonic() - begun)

    @contextmanager
    def _workers(self, executor: Executor | None) -> Generator[Executor]:
        if executor is not None:
            executor.serve(self.spec)
            yield executor
            return
        with ExitStack() as stack:
            with self.recorder.timed("workers"):
                started = stack.enter_context(self.start(self.spec, workers=count_workers(self.settings)))
            yield started

    def _loop(self, executor: Executor, tracker: BudgetTracker) -> None:
        recorder, in_flight = self.recorder, InFlight(executor)
        pending = (
            PendingCandidates(recorder)
            if self.settings.remeasure
            else LeasedCandidates(recorder, recorder.store)
        )
        tracker.reserve = lambda: self.searcher.conclusion_s
        loop = SearchLoop(self.searcher, in_flight, pending, recorder, tracker)
        try:
            if recorder.progress.hypervolume is not None or isinstance(self.spec, NeedsBaseline):
                # The baseline has an index too: a proposal's number is not its index then.
                self._measure_baseline(loop, executor)
            elif self.settings.where is None:  # else what was rejected has no index
                self.searcher.replay(recorder.trials.candidate_at)
            loop.search()
            if recorder.progress.best is not None:
                loop.conclude()
        finally:
            self.startup_s = in_flight.startup_s
            if model_s := self.searcher.model_s:
                recorder.part("search", "model", model_s)
            recorder.seconds["search"] = recorder.seconds.get("search", 0.0) - self.searcher.idle_s

    def _measure_baseline(self, loop: SearchLoop, executor: Executor) -> None:
        """Measure what others are compared with, before there are any."""
        baseline = self.recorder.level.baseline(self.recorder.task)
        trial = loop.measure(baseline)
        if trial is None:
            return
        if isinstance(trial.outcome, Failed | Lost):
            stage, reason, detail = trial.outcome.stage, trial.outcome.reason, trial.outcome.detail
            if isinstance(trial.outcome, Lost):
                raise LostError(
                    f"the baseline's worker was lost: {reason}: {detail}", "Run the same command to resume."
                )
            what = f"the baseline failed: {stage}: {reason}: {detail}"
            hint = "Fix the program, data or metric, then rerun with settings=Settings(remeasure=True)."
            if stage != "verify":
                raise PlanishError(what, hint)
            level, task = self.recorder.level, self.recorder.task
            raise WrongBaselineError(what, hint, level.with_correct_baseline(task, executor))
        if isinstance(self.spec, NeedsBaseline):
            self.spec.set_baseline(trial.outcome)
        if self.recorder.progress.hypervolume is not None:
            with self.recorder.timed("search"):
                self.searcher.tell([trial])

    def _outcome(self, executor: Executor | None) -> SearchOutcome:
        recorder = self.recorder
        return SearchOutcome(
            recorder.level,
            recorder.task,
            self.settings,
            recorder.store,
            recorder.progress,
            recorder.trials,
            recorder.seconds,
            self.recompare_s or self.limits.searched_s or time.monotonic() - self.started,
            self.stopped,
            self.start,
            self.notes,
            executor,
            self.startup_s,
            self.limits,
        )

    def _nothing_measured(self) -> PlanishError:
        recorder, rejected = self.recorder, self.recorder.progress.rejected
        if self.stopped:
            hint = "Run the same command to resume."
            return StoppedError("stopped before anything was measured", hint, self.stops.number)
        if rejected and not (recorder.trials or recorder.lost):
            what = f"where= rejected all {rejected:,} candidates that the searcher proposed"
            return AllFailedError(what, "Let it return True for some, or choose another searcher or space.")
        found = recorder.progress.failures.most_common(3)
        found += [("lost with their workers", len(recorder.lost))] * bool(recorder.lost)
        reasons = ", ".join(f"{reason} ({n})" for reason, n in found)
        asked = len(recorder.trials) + len(recorder.lost)
        return AllFailedError(
            f"none of {asked} candidates could be measured: {reasons or 'none was proposed'}",
            "; ".join(self.notes) + "." if recorder.lost else f"See 'planish show {recorder.run_id}'.",
        )


class SharedWorkers:
    """Workers for several tasks one after the other: to start them takes longer than to tune a small program.

    Args:
        settings: how many there are.
        start: starts them, with the first task.
        executor: live ones, which stay so; None starts some, and ends them with the block.
    """

    def __init__(self, settings: Settings, start: ExecutorFactory, executor: Executor | None = None) -> None:
        self._settings, self._start, self._executor = settings, start, executor
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def serving(self, spec: EvaluatorSpec) -> Executor:
        """Return the workers, which evaluate by this spec from now on."""
        if self._executor is None:
            workers = count_workers(self._settings)
            self._executor = self._resources.enter_context(self._start(spec, workers=workers))
        else:
            self._executor.serve(spec)
        return self._executor


def count_workers(settings: Settings) -> int:
    """Return the number of workers that settings ask for, one for each core at most.

    0 leaves it to the cores of this machine.
    """
    cores = usable_cores()
    if settings.workers > cores:
        _log.warning("%d workers were requested; one for each core is used, %d", settings.workers, cores)
    # One candidate is timed, on `settings.cores`; meanwhile each other core may build one.
    return min(settings.workers, cores) or max(1, min(8, cores - settings.cores + 1))


def _worker_loss_notes(losses: Counter[str], given_up: int) -> Sequence[str]:
    """Return how many evaluations were lost; nothing where none was.

    Args:
        losses: cause to how many, each attempt counted.
        given_up: candidates that were lost each time they were evaluated.
    """
    if not losses:
        return ()
    causes = ", ".join(cause for cause, _ in losses.most_common(2))
    count = losses.total()
    were = "evaluation was lost with its worker" if count == 1 else "evaluations were lost with their workers"
    what = f"{count:,} {were} ({causes}) and repeated"
    if not given_up:
        return (what,)
    return (f"{what}; {given_up:,} without success; run the same command to try them again",)
