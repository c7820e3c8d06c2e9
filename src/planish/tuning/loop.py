"""One run: candidates are asked for, evaluated, stored and told, until the budget is spent."""

from __future__ import annotations

import logging
import math
import platform
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace

from planish.budget import Budget
from planish.core import (
    AllFailedError,
    CanAnchor,
    Candidate,
    CanIntroduce,
    CanRecall,
    Evaluation,
    EvaluatorSpec,
    Executor,
    Failed,
    Level,
    Lost,
    PlanishError,
    Searcher,
    StoppedError,
    Stops,
    StoreError,
    Task,
    Trial,
    evaluate,
    stoppable,
    usable_cores,
)
from planish.executors import LocalExecutor
from planish.isolation import loss_notes
from planish.results.result import Result
from planish.settings import Settings
from planish.store import Store
from planish.tuning.final import SearchOutcome, finish
from planish.tuning.progress import Listener, Progress
from planish.tuning.trials import Trials

BATCH = 16
SLICE = 8
"""Candidates that are given to the workers at once."""
POLL_S = 0.05
"""How often the store is asked for what another run is measuring."""
BARREN_MAX = 200
"""Batches in a row that bring nothing new, after which a search is at its end."""
PATIENCE_S = 0.5
"""Seconds beyond the budget that a slice may take to end by itself."""
HOST = platform.node()
_log = logging.getLogger("planish")


@dataclass
class Run:
    """One search for one task.

    Args:
        level: of the program.
        task: what is searched for.
        settings: which searcher and space; seed, cores and workers.
        budget: when the search ends.
        store: where trials are kept.
        listener: is told how it goes.
        searcher: proposes candidates.
        progress: how far the search is.
        factory: makes the workers' evaluators.
        trials: so far; what the store holds of this run is its beginning, which costs no budget.
        started: when, by the monotonic clock; what was spent on replaying is added.
        proposed: the hashes of what the searcher has proposed.
        lost: those of which nothing is known, since they were lost with their workers, by hash.
        seconds: spent, by stage.
        stopped: whether Ctrl-C, or another signal that asks to stop, came.
        stops: how often it came.
        notes: what the workers have to say.
        start_s: from starting the workers until their first answer.
    """

    level: Level
    task: Task
    settings: Settings
    budget: Budget
    store: Store
    listener: Listener
    searcher: Searcher
    progress: Progress
    factory: EvaluatorSpec
    trials: Trials
    started: float = field(default_factory=time.monotonic)
    proposed: set[str] = field(default_factory=set[str])
    lost: dict[str, Trial] = field(default_factory=dict[str, Trial])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    stopped: bool = False
    stops: Stops = field(default_factory=Stops)
    notes: tuple[str, ...] = ()
    start_s: float = 0.0

    def execute(self, executor: Executor | None) -> Result:
        """Search, compare the best few with the baseline, and store what was found."""
        with stoppable() as self.stops:
            return self._executed(executor)

    def _executed(self, executor: Executor | None) -> Result:
        try:
            self._introduce()
            self.listener.started(self.progress)
            self._take_up()
            with self._workers(executor) as ready:
                try:
                    self._search(ready)
                finally:
                    self.notes = (*ready.notes, *loss_notes(ready.losses, len(self.lost)))
        except KeyboardInterrupt:
            self.stopped = True
        except BaseException:
            with suppress(StoreError):  # it may be why the search failed, and the first error tells more
                self.store.finish_run(self.progress.run_id, "failed", self.seconds)
            raise
        self.stopped |= self.stops.count > 0  # what is interrupted may have swallowed the exception
        if self.progress.best is None:
            self.store.finish_run(self.progress.run_id, "stopped" if self.stopped else "failed", self.seconds)
            raise self._nothing_measured()
        done = SearchOutcome(
            self.level,
            self.task,
            self.settings,
            self.store,
            self.progress,
            self.trials,
            self.seconds,
            time.monotonic() - self.started,
            self.stopped,
            self.notes,
            executor,
            self.start_s,
        )
        return finish(done, self.listener, at_once=self.stops.count > 1)

    @contextmanager
    def _workers(self, executor: Executor | None) -> Generator[Executor]:
        if executor is not None:
            executor.serve(self.factory)
            yield executor
            return
        with self._timed("workers"):
            started = LocalExecutor(self.factory, workers=count_workers(self.settings))
        with closing(started):
            yield started

    def _search(self, executor: Executor) -> None:
        """Ask, evaluate, tell, until the budget is spent or the searcher is at its end."""
        if self.progress.growth is not None or isinstance(self.factory, CanAnchor):
            self._measure_baseline(executor)  # which has an index too: a proposal's is not its place then
        elif isinstance(self.searcher, CanRecall):
            self.searcher.recall(self.trials.proposed)
        barren = 0
        while not self._spent() and barren < BARREN_MAX:
            begun = time.monotonic()
            with self._timed("search"):
                asked = self.searcher.ask(BATCH)
            if not asked:
                return
            self._introduce()
            barren = 0 if self._are_new(asked) else barren + 1
            answered = self._evaluate(executor, asked)
            if len(answered) < len(asked):
                return
            with self._timed("search"):
                self.searcher.tell(answered)
            if all(map(self.trials.is_old, asked)):
                self.started += time.monotonic() - begun

    def _take_up(self) -> None:
        """Begin with what the store holds of this run; the searcher will propose it again, and be told."""
        begun = time.monotonic()
        for trial in self.trials.take_up():
            self._tell(replace(trial, cached=True))
        self.started += time.monotonic() - begun

    def _are_new(self, asked: Sequence[Candidate]) -> bool:
        """Note what was proposed; tells whether any of it is proposed for the first time."""
        before = len(self.proposed)
        self.proposed.update(candidate.hash for candidate in asked)
        return len(self.proposed) > before

    def _introduce(self) -> None:
        """Note what the level knows of the program by now; a proposal may have found out more."""
        if isinstance(self.level, CanIntroduce):
            self.progress.introduction = self.level.introduction(self.task)

    def _measure_baseline(self, executor: Executor) -> None:
        """Measure what others are compared with, before there are any.

        Raises:
            PlanishError: it fails.
        """
        measured = self._evaluate(executor, [self.level.baseline(self.task)])
        for trial in measured:
            if isinstance(trial.outcome, Failed | Lost):
                stage, reason, detail = trial.outcome.stage, trial.outcome.reason, trial.outcome.detail
                told = f"the baseline failed: {stage}: {reason}: {detail}"
                raise PlanishError(told, "Mend the program; --remeasure tries it again.")
            if isinstance(self.factory, CanAnchor):
                self.factory.anchor(trial.outcome)
        if self.progress.growth is not None:
            with self._timed("search"):
                self.searcher.tell(measured)

    def _spent(self) -> bool:
        best, wanted = self.progress.best_value, self.budget.value
        objective = self.progress.objective
        reached = best is not None and wanted is not None and objective.cost(best) <= objective.cost(wanted)
        left = self.budget.trials_left(self._asked)
        return self.stops.count > 0 or reached or left == 0 or self.budget.seconds_left(self.started) <= 0

    @property
    def _asked(self) -> int:
        """How many candidates were evaluated; one that was lost keeps its place, and the budget's."""
        return len(self.trials) + len(self.lost)

    def _evaluate(self, executor: Executor, asked: Sequence[Candidate]) -> list[Trial]:
        """Give the trials of what was asked, in that order; fewer where the budget ends on the way."""
        fresh = list({c.hash: c for c in asked if not self.trials.has(c)}.values())
        fresh = fresh[: self.budget.trials_left(self._asked)]
        place = {c.hash: self.trials.index(c) for c in fresh}
        self._recall(fresh, place)
        self._measure(executor, [c for c in fresh if not self.trials.has(c)], place)
        known = {**self.lost, **self.trials.of(asked)}
        found = [known.get(c.hash) for c in asked]
        return [t for t in found[: found.index(None) if None in found else None] if t is not None]

    def _recall(self, fresh: Sequence[Candidate], place: Mapping[str, int]) -> None:
        """Take from the store what other runs have measured."""
        if self.settings.remeasure or not fresh:
            return
        with self._timed("store"):
            elsewhere = self.store.known(self.task.key, fresh)
        for candidate in fresh:
            old = elsewhere.get(candidate.hash)
            if old is not None:
                index, seed = place[candidate.hash], self.settings.seed
                trial = Trial(candidate, old.outcome, index, seed, old.seconds, old.host, old.time, True)
                self._add(trial)

    def _measure(self, executor: Executor, fresh: Sequence[Candidate], place: Mapping[str, int]) -> None:
        """Measure, a few at a time, so that workers are idle when the budget ends and live on.

        The first candidate that can be measured is waited for, however long it takes. What another run for
        the same task is measuring just now is waited for too, and then taken from the store.
        """
        begun = time.monotonic()
        left = list(fresh)
        while left:
            claimed = self._claim(left, place)
            some = [candidate for candidate in claimed if not self.trials.has(candidate)]
            for answer in evaluate(executor, some, self._deadline()):
                self.start_s = self.start_s or time.monotonic() - begun
                self._answered(some[answer.position], answer, place)
                if self.budget.seconds_left(self.started) < -PATIENCE_S:
                    return
                if self.progress.best is not None:
                    executor.submit((), self._deadline())
            if self.budget.seconds_left(self.started) <= 0 and (some or self.progress.best is not None):
                return
            if not claimed:
                time.sleep(POLL_S)
            left = [candidate for candidate in left if candidate not in claimed]
            self._recall(left, place)
            left = [candidate for candidate in left if not self.trials.has(candidate)]

    def _deadline(self) -> float:
        """Until when what is under way is waited for; what comes first has all the time that it takes."""
        if self.progress.best is None:
            return math.inf
        return time.monotonic() + self.budget.seconds_left(self.started) + PATIENCE_S

    def _claim(self, left: Sequence[Candidate], place: Mapping[str, int]) -> Sequence[Candidate]:
        """Give the next few that nobody else is measuring; none where all are waited for."""
        if self.settings.remeasure:
            return left[:SLICE]
        with self._timed("store"):
            claimed = self.store.claim(self.progress.run_id, left, SLICE)
        self._recall(claimed, place)  # another run may have let them go just before, with an outcome
        return claimed

    def _answered(self, candidate: Candidate, answer: Evaluation, place: Mapping[str, int]) -> None:
        for stage, spent in answer.seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent
        index, seed = place[candidate.hash], self.settings.seed
        trial = Trial(candidate, answer.outcome, index, seed, answer.seconds, HOST, time.time())
        if isinstance(answer.outcome, Lost):
            self.lost[candidate.hash] = trial
            self.progress.lost = len(self.lost)
        else:
            self._add(trial)

    def _add(self, trial: Trial) -> None:
        if self.lost.pop(trial.candidate.hash, None):
            self.progress.lost = len(self.lost)
        with self._timed("store"):
            self.store.add_trials(self.progress.run_id, [trial])
        self.trials.add(trial)
        self._tell(trial)

    def _tell(self, trial: Trial) -> None:
        self.progress.add(trial)
        self.listener.trial(trial, self.progress)

    @contextmanager
    def _timed(self, stage: str) -> Generator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.monotonic() - start

    def _nothing_measured(self) -> PlanishError:
        if self.stopped:
            hint = "The same command goes on."
            return StoppedError("stopped before anything was measured", hint, self.stops.number)
        found = self.progress.failures.most_common(3)
        found += [("lost with their workers", len(self.lost))] * bool(self.lost)
        reasons = ", ".join(f"{reason} ({n})" for reason, n in found)
        return AllFailedError(
            f"none of {self._asked} candidates could be measured: {reasons or 'none was proposed'}",
            "; ".join(self.notes) + "." if self.lost else f"See 'planish show {self.progress.run_id}'.",
        )


def count_workers(settings: Settings) -> int:
    """Give the number of workers that settings ask for, one for each core at most.

    0 leaves it to the cores of this machine.
    """
    cores = usable_cores()
    if settings.workers > cores:
        _log.warning("%d workers were asked for: there are as many as cores, %d", settings.workers, cores)
    return min(settings.workers, cores) or max(1, min(8, cores - settings.cores + 1))
