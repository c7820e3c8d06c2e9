"""One run: a search with the workers that it needs, and its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from planish.budget import Budget
from planish.core import (
    AllFailedError,
    CanAnchor,
    CanRecall,
    CanReplaceBaseline,
    EvaluatorSpec,
    Executor,
    Failed,
    HasModel,
    HasSearchNotes,
    Lost,
    PlanishError,
    Searcher,
    Start,
    StoppedError,
    Stops,
    StoreError,
    WrongBaselineError,
    stoppable,
    usable_cores,
)
from planish.results.result import Result
from planish.sandbox import LostError, loss_notes
from planish.settings import Settings
from planish.tuning.claiming import Claims
from planish.tuning.final import SearchOutcome, finish
from planish.tuning.journal import Journal
from planish.tuning.loop import SearchLoop
from planish.tuning.spending import Spending
from planish.tuning.underway import UnderWay

_SETTLES = (
    "the last comparison was undecided, so it was repeated with all the time of this command; once it is "
    "decided, the same command goes on with the search"
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
        journal: keeps what became of them.
        started: when, by the monotonic clock.
        stops: how often Ctrl-C, or another signal that asks to stop, came.
        stopped: whether it did, as far as is known by now.
        notes: what the workers and the searcher have to say.
        start_s: from starting the workers until their first answer.
        settles_s: the seconds for the comparison, where the last one left the verdict undecided: it is
            repeated in place of a search. None where there is a search.
        space_size: how many candidates the space has, or at most; None where it is not listed.
    """

    settings: Settings
    budget: Budget
    searcher: Searcher
    spec: EvaluatorSpec
    start: Start
    journal: Journal
    started: float = field(default_factory=time.monotonic)
    stops: Stops = field(default_factory=Stops)
    stopped: bool = False
    notes: tuple[str, ...] = ()
    start_s: float = 0.0
    settles_s: float | None = None
    space_size: int | None = None

    def execute(self, executor: Executor | None) -> Result:
        """Search, compare the best few with the baseline, and store what was found."""
        with stoppable() as self.stops:
            self._search(executor)
            return finish(self._outcome(executor), self.journal.listener, at_once=self.stops.count > 1)

    def _search(self, executor: Executor | None) -> None:
        journal = self.journal
        spending = Spending(self.budget, journal.progress, journal.trials, self.stops, self.started)
        try:
            self._take_up(spending)
            if self.settles_s is None or journal.progress.best is None:
                self._search_with_workers(executor, spending)
            else:
                self.notes = (_SETTLES,)
        except KeyboardInterrupt:
            self.stopped = True
        except BaseException:
            with suppress(StoreError):  # it may be why the search failed, and the first error tells more
                # What an earlier session measured, and its result, is there all the same.
                status = "failed" if journal.progress.best is None else "stopped"
                journal.store.finish_run(journal.run_id, status, journal.seconds)
            raise
        self.started = spending.started
        self.stopped |= self.stops.count > 0  # what is interrupted may have swallowed the exception
        if journal.progress.best is None:
            journal.store.finish_run(journal.run_id, "stopped" if self.stopped else "failed", journal.seconds)
            raise self._nothing_measured()

    def _search_with_workers(self, executor: Executor | None, spending: Spending) -> None:
        with self._workers(executor) as ready:
            try:
                self._loop(ready, spending)
            finally:
                self.notes = (
                    *ready.notes,
                    *loss_notes(ready.losses, len(self.journal.lost)),
                    *(self.searcher.notes if isinstance(self.searcher, HasSearchNotes) else ()),
                    *self._ended_early(spending),
                )

    def _ended_early(self, spending: Spending) -> Sequence[str]:
        """Describe why a search ended before its budget was spent; nothing where it did not."""
        if spending.is_spent() or spending.trials_left() == 0:
            return ()
        count = self.journal.trials.placed
        if self.space_size is not None and count >= self.space_size:
            return (f"the search ended before its budget: all {count} candidates of the space were tried",)
        return (
            f"the search ended before its budget: the searcher proposed nothing new after {count} candidates",
        )

    def _take_up(self, spending: Spending) -> None:
        self.journal.introduce()
        self.journal.listener.started(self.journal.progress)
        begun = time.monotonic()
        self.journal.take_up()
        spending.give_back(time.monotonic() - begun)

    @contextmanager
    def _workers(self, executor: Executor | None) -> Generator[Executor]:
        if executor is not None:
            executor.serve(self.spec)
            yield executor
            return
        with ExitStack() as stack:
            with self.journal.timed("workers"):
                started = stack.enter_context(self.start(self.spec, workers=count_workers(self.settings)))
            yield started

    def _loop(self, executor: Executor, spending: Spending) -> None:
        journal, under_way = self.journal, UnderWay(executor)
        claims = Claims(journal, journal.store, alone=self.settings.remeasure)
        loop = SearchLoop(self.searcher, under_way, claims, journal, spending)
        try:
            if journal.progress.growth is not None or isinstance(self.spec, CanAnchor):
                # The baseline has an index too: a proposal's is not its place then.
                self._measure_baseline(loop, executor)
            elif isinstance(self.searcher, CanRecall):
                self.searcher.recall(journal.trials.proposed)
            loop.search()
        finally:
            self.start_s = under_way.start_s
            if isinstance(self.searcher, HasModel):
                journal.part("search", "model", self.searcher.model_s)

    def _measure_baseline(self, loop: SearchLoop, executor: Executor) -> None:
        """Measure what others are compared with, before there are any.

        Raises:
            WrongBaselineError: it answers wrongly; the level may have found another one.
            PlanishError: it fails.
        """
        baseline = self.journal.level.baseline(self.journal.task)
        trial = loop.measure(baseline)
        if trial is None:
            return
        if isinstance(trial.outcome, Failed | Lost):
            stage, reason, detail = trial.outcome.stage, trial.outcome.reason, trial.outcome.detail
            if isinstance(trial.outcome, Lost):
                raise LostError(
                    f"the baseline's worker was lost: {reason}: {detail}", "The same command goes on."
                )
            told = f"the baseline failed: {stage}: {reason}: {detail}"
            hint = "Mend the program, or its data or metric; --remeasure tries it again."
            if stage != "verify":
                raise PlanishError(told, hint)
            level, task = self.journal.level, self.journal.task
            found = level.sound(task, executor) if isinstance(level, CanReplaceBaseline) else None
            raise WrongBaselineError(told, hint, found)
        if isinstance(self.spec, CanAnchor):
            self.spec.anchor(trial.outcome)
        if self.journal.progress.growth is not None:
            with self.journal.timed("search"):
                self.searcher.tell([trial])

    def _outcome(self, executor: Executor | None) -> SearchOutcome:
        journal = self.journal
        return SearchOutcome(
            journal.level,
            journal.task,
            self.settings,
            journal.store,
            journal.progress,
            journal.trials,
            journal.seconds,
            self.settles_s or time.monotonic() - self.started,
            self.stopped,
            self.start,
            self.notes,
            executor,
            self.start_s,
        )

    def _nothing_measured(self) -> PlanishError:
        journal = self.journal
        if self.stopped:
            hint = "The same command goes on."
            return StoppedError("stopped before anything was measured", hint, self.stops.number)
        found = journal.progress.failures.most_common(3)
        found += [("lost with their workers", len(journal.lost))] * bool(journal.lost)
        reasons = ", ".join(f"{reason} ({n})" for reason, n in found)
        asked = len(journal.trials) + len(journal.lost)
        return AllFailedError(
            f"none of {asked} candidates could be measured: {reasons or 'none was proposed'}",
            "; ".join(self.notes) + "." if journal.lost else f"See 'planish show {journal.run_id}'.",
        )


def count_workers(settings: Settings) -> int:
    """Give the number of workers that settings ask for, one for each core at most.

    0 leaves it to the cores of this machine.
    """
    cores = usable_cores()
    if settings.workers > cores:
        _log.warning("%d workers were asked for: there are as many as cores, %d", settings.workers, cores)
    # One candidate is timed, on `settings.cores`; meanwhile each other core may build one.
    return min(settings.workers, cores) or max(1, min(8, cores - settings.cores + 1))
