"""The engine: one search by ask, submit, record and tell, within its budget.

`SearchLoop` asks the searcher for as many candidates as the executor has capacity for, and tells it each
outcome as it comes. `TuningRun` starts the workers, measures the baseline first where others are compared
with it while the search goes on, and finishes the run.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from planish.budget import Budget
from planish.core import (
    AllFailedError,
    CanAnchor,
    Candidate,
    EvaluatorSpec,
    Executor,
    Failed,
    Lost,
    PlanishError,
    Searcher,
    Start,
    StoppedError,
    Stops,
    StoreError,
    Trial,
    WrongBaselineError,
    stoppable,
    uncollected,
    usable_cores,
)
from planish.sandbox import LostError, worker_loss_notes
from planish.settings import Settings
from planish.tuning.final_state import SearchOutcome
from planish.tuning.finish import finish
from planish.tuning.in_flight import POLL_S, Claims, Pending, UnderWay
from planish.tuning.recorder import Journal, Progress, Recorder, Trials
from planish.tuning.result import Result

PATIENCE_S = 0.5
"""Seconds beyond the budget that what is under way may take to end by itself."""


class SearchLimits:
    """When a search ends, as its loop asks; by default when its searcher proposes nothing more.

    Attributes:
        concluding: whether the search is over, and what its searcher concludes is measured.
    """

    concluding: bool = False

    def trials_left(self) -> int | None:
        """Return how many more candidates may be proposed; None: any number."""
        return None

    def is_spent(self) -> bool:
        """Return whether nothing more is to be proposed, unless it is for want of trials."""
        return False

    def is_over(self) -> bool:
        """Return whether nothing more is to be waited for."""
        return self.is_spent()

    def is_reached(self) -> bool:
        """Return whether the best is as good as is wanted."""
        return False

    def deadline(self) -> float:
        """Return until when what is under way is waited for, by the monotonic clock."""
        return math.inf

    def give_back(self, seconds: float) -> None:
        """Exclude time that was spent on what was known before."""


@dataclass
class Spending(SearchLimits):
    """What a run's search has spent.

    Args:
        budget: when the search ends.
        progress: how far it is.
        trials: what has a place in it.
        stops: how often Ctrl-C, or another signal that asks to stop, came.
        started: when, by the monotonic clock; what was spent on replaying is added.
        reserve: returns the seconds that are kept for the conclusion of the search.
    """

    budget: Budget
    progress: Progress
    trials: Trials
    stops: Stops
    started: float = field(default_factory=time.monotonic)
    reserve: Callable[[], float] = float
    concluding: bool = False

    def trials_left(self) -> int | None:
        """How many more candidates may be proposed; one that was lost keeps its place. None: any number."""
        return self.budget.trials_left(self.trials.placed)

    def is_spent(self) -> bool:
        """Return whether nothing more is to be proposed, unless it is for want of trials."""
        if self.concluding:
            return self.stops.count > 1
        left = self.budget.seconds_left(self.started) - self.reserve()
        return self.stops.count > 0 or self.is_reached() or left <= 0

    def is_over(self) -> bool:
        """Whether nothing more is to be waited for; what can be measured first is, however long it takes."""
        return self.is_spent() and (self.progress.best is not None or self.stops.count > 0)

    def is_reached(self) -> bool:
        """Return whether the best is as good as is wanted."""
        best, wanted = self.progress.best_value, self.budget.value
        cost = self.progress.objective.cost
        return best is not None and wanted is not None and cost(best) <= cost(wanted)

    def deadline(self) -> float:
        """Until when what is under way is waited for; what comes first has all the time that it takes."""
        if self.progress.best is None or self.budget.seconds is None or self.concluding:
            return math.inf
        return self.started + self.budget.seconds + PATIENCE_S

    def give_back(self, seconds: float) -> None:
        """Have time not counted that was spent on what was known before."""
        self.started += seconds


REPEATS_MAX = 3_200
"""Proposals in a row that are none for the first time, after which a search is at its end."""

IMPORTANCE_TRIALS = 64
"""Trials, evenly chosen, whose features the best candidate is given one by one."""

REPLAYED = 64
"""What a run had when it was taken up is proposed again so many at once: nobody is waited for."""

Ask = Callable[[int], Sequence[Candidate]]
"""Proposes up to so many candidates; none where there is nothing to propose now."""


class SearchLoop:
    """One search.

    Answers are told as they come, in any order, and there is no order in which a searcher that keeps to its
    protocol proposes anything else for it.

    Args:
        searcher: proposes candidates.
        under_way: what the executor is at.
        claims: what waits to be measured, here or by another run.
        journal: keeps what became of it.
        spending: when the search ends.
    """

    def __init__(
        self,
        searcher: Searcher,
        under_way: UnderWay,
        claims: Pending,
        journal: Recorder,
        spending: SearchLimits,
    ) -> None:
        self._searcher, self._under_way, self._claims = searcher, under_way, claims
        self._journal, self._spending = journal, spending
        self._untold: Counter[str] = Counter()
        self._open: set[str] = set()
        self._proposed: set[str] = set()
        self._repeats = 0
        self._replay = ExitStack()

    def search(self) -> None:
        """Ask the searcher until the budget is spent or it is at its end."""
        with self._replay:
            self._replay.enter_context(uncollected())
            self.stream(self._ask)

    def conclude(self) -> None:
        """Measure what the searcher concludes once the budget is spent; a second Ctrl-C leaves it out."""
        self._spending.concluding = True
        for candidate in self._searcher.conclude():
            self.measure(candidate)
        self._spending.concluding = False

    def measure(self, candidate: Candidate) -> Trial | None:
        """Measure what the searcher need not have proposed; None where the search ends before."""
        left = [candidate]
        self.stream(lambda _: [left.pop()] if left else ())
        return self._journal.trial(candidate)

    def stream(self, ask: Ask) -> None:
        """Evaluate what is proposed, until nothing is under way and nothing more is proposed."""
        try:
            with self._claims.renewed():
                self._go(ask)
        finally:
            self._under_way.cancel()
            self._claims.release()

    def _go(self, ask: Ask) -> None:
        while self._fill(ask):
            for evaluation in self._under_way.results():
                self._tell(self._journal.answered(evaluation))
                if self._spending.is_reached():
                    return
                # Once something is measured there is a deadline, for what is under way too.
                self._under_way.extend(self._spending.deadline())
                self._fill(ask)
            if self._claims.waiting:  # another run measures what is waited for
                time.sleep(POLL_S)

    def _fill(self, ask: Ask) -> bool:
        """Return the executor as much as it has capacity for; whether there is anything to wait for."""
        self._submit()
        while self._under_way.is_hungry and self._take(ask, self._under_way.room):
            self._submit()
        return self._under_way.count > 0 or (len(self._claims.waiting) > 0 and not self._spending.is_over())

    def _take(self, ask: Ask, room: int) -> bool:
        """Ask, and tell at once what is known; whether more may be asked for before any answer."""
        begun = time.monotonic()
        asked = ask(max(room, min(REPLAYED, self._journal.old - len(self._proposed))))
        for trial in self._journal.known(asked):
            self._tell(trial)
        new = {c.hash: c for c in asked if not self._journal.has(c) and c.hash not in self._open}
        self._claims.add(new.values())
        self._open |= new.keys()
        if asked and all(map(self._journal.is_old, asked)):  # a replay costs none of the budget
            self._spending.give_back(time.monotonic() - begun)
        else:
            self._replay.close()
        # Where nothing is open no answer will come: then asking again is the only way on.
        return self._is_news(asked) or (len(asked) > 0 and not self._open)

    def _submit(self) -> None:
        """Have measured what no run has measured or is measuring; what another run found is told."""
        if self._claims.waiting and not self._spending.is_over():
            found, mine = self._claims.settle(self._under_way)
            for trial in found:
                self._tell(trial)
            if mine:
                self._under_way.submit(mine, self._spending.deadline())

    def _ask(self, room: int) -> Sequence[Candidate]:
        """Ask the searcher; once the budget is spent nothing is proposed."""
        left = self._spending.trials_left()
        if self._spending.is_spent() or left == 0 or self._repeats >= REPEATS_MAX:
            return ()
        with self._journal.timed("search"):
            asked = self._searcher.ask(room if left is None else min(room, left))
            for candidate in asked:
                if prediction := self._searcher.prediction(candidate):
                    self._journal.predict(candidate, prediction)
        if asked:
            self._journal.introduce()
        self._untold.update(candidate.hash for candidate in asked)
        return asked

    def _is_news(self, asked: Sequence[Candidate]) -> bool:
        """Note what was proposed; whether any of it is proposed for the first time."""
        before = len(self._proposed)
        self._proposed.update(candidate.hash for candidate in asked)
        news = len(self._proposed) > before
        self._repeats = 0 if news else self._repeats + len(asked)
        return news

    def _tell(self, trial: Trial) -> None:
        """Tell the searcher what it asked for, as often as it did."""
        name = trial.candidate.hash
        self._open.discard(name)
        if times := self._untold.pop(name, 0):
            with self._journal.timed("search"):
                self._searcher.tell([trial] * times)


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
                    *worker_loss_notes(ready.losses, len(self.journal.lost)),
                    *self.searcher.notes,
                    *self._ended_early(spending),
                )
            self._store_importance()

    def _store_importance(self) -> None:
        """Store which features make the best candidate good, where a model guided the search."""
        journal = self.journal
        if journal.progress.best is None or self.stops.count > 0:
            return

        def others() -> Sequence[Candidate]:
            every = [trial.candidate for trial in journal.trials]
            return every[:: -(-len(every) // IMPORTANCE_TRIALS)]

        if importance := self.searcher.importance(journal.progress.best.candidate, others):
            journal.store.save_importance(journal.run_id, importance)

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
        spending.reserve = lambda: self.searcher.conclusion_s
        claims = Pending(journal) if self.settings.remeasure else Claims(journal, journal.store)
        loop = SearchLoop(self.searcher, under_way, claims, journal, spending)
        try:
            if journal.progress.growth is not None or isinstance(self.spec, CanAnchor):
                # The baseline has an index too: a proposal's is not its place then.
                self._measure_baseline(loop, executor)
            else:
                self.searcher.replay(journal.trials.proposed)
            loop.search()
            if journal.progress.best is not None:
                loop.conclude()
        finally:
            self.start_s = under_way.start_s
            if model_s := self.searcher.model_s:
                journal.part("search", "model", model_s)

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
            raise WrongBaselineError(told, hint, level.with_correct_baseline(task, executor))
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
    """Return the number of workers that settings ask for, one for each core at most.

    0 leaves it to the cores of this machine.
    """
    cores = usable_cores()
    if settings.workers > cores:
        _log.warning("%d workers were asked for: there are as many as cores, %d", settings.workers, cores)
    # One candidate is timed, on `settings.cores`; meanwhile each other core may build one.
    return min(settings.workers, cores) or max(1, min(8, cores - settings.cores + 1))
