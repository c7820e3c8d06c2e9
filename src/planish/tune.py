"""The tuning loop: where spaces, searchers, executors and the store meet."""

from __future__ import annotations

import platform
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from planish.budget import Budget
from planish.core import (
    AllFailedError,
    Candidate,
    Evaluation,
    EvaluatorFactory,
    Failed,
    Growth,
    Level,
    Objective,
    PlanishError,
    Program,
    Searcher,
    StoppedError,
    StoreError,
    Task,
    Trial,
    did_you_mean,
    usable_cores,
)
from planish.finals import Searched, finish
from planish.levels import level_named, load_program
from planish.measure import LocalExecutor
from planish.past import teach
from planish.progress import Listener, Progress, Silent
from planish.result import Result
from planish.search import make_searcher
from planish.settings import Settings
from planish.store import Store, store_at

BATCH = 16
SLICE = 8
"""Candidates that are given to the workers at once."""
BARREN_MAX = 200
"""Batches in a row that bring nothing new, after which a search is at its end."""
PATIENCE_S = 0.5
"""Seconds beyond the budget that a slice may take to end by itself."""
HOST = platform.node()
DEFAULT_BUDGET = Budget(seconds=10)


def tune(
    program: str | Program,
    *,
    budget: Budget = DEFAULT_BUDGET,
    settings: Settings | None = None,
    store: Store | str | Path | None = None,
    listener: Listener | None = None,
    executor: LocalExecutor | None = None,
    **options: str,
) -> Result:
    """Make a program faster (or smaller, or whatever the objective is) by search.

    The same call on the same store goes on where the last one ended: trials are replayed from the store,
    and only what is new is measured. Ctrl-C ends the search and keeps the best.

    Args:
        program: a file, a program's text, or a program object.
        budget: when the search ends.
        settings: which objective, searcher and space; seed, cores and workers.
        store: an open store, or where it is; None for the user's own.
        listener: is told how it goes.
        executor: live workers to use again, which saves their start; None starts some and ends them.
        options: how to read the program, as on the command line (`size="m=192,n=192,k=192"`).

    Returns:
        The best candidates, measured again beside the baseline.

    Raises:
        PlanishError: the program, an option or a name is wrong, or the store cannot be used.
        AllFailedError: no candidate could be measured.
        StoppedError: Ctrl-C came before anything was measured.
    """
    level, read = _read(program, settings or Settings(), options)
    return tune_program(
        level, read, budget=budget, settings=settings, store=store, listener=listener, executor=executor
    )


def tune_program(
    level: Level,
    program: Program,
    *,
    budget: Budget = DEFAULT_BUDGET,
    settings: Settings | None = None,
    store: Store | str | Path | None = None,
    listener: Listener | None = None,
    executor: LocalExecutor | None = None,
) -> Result:
    """Do as `tune` with a program that a level has read; it may have been told of a back end then."""
    chosen = settings or Settings()
    task = task_of(level, program, chosen)
    with store_at(store) as opened:
        run = _begin(level, task, chosen, budget, opened, listener or Silent())
        return run.execute(executor)


@dataclass
class _Run:
    """One search for one task."""

    level: Level
    task: Task
    settings: Settings
    budget: Budget
    store: Store
    listener: Listener
    searcher: Searcher
    progress: Progress
    known: dict[str, Trial]
    factory: EvaluatorFactory
    started: float = field(default_factory=time.monotonic)
    trials: dict[str, Trial] = field(default_factory=dict[str, Trial])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    stopped: bool = False
    notes: tuple[str, ...] = ()

    def execute(self, executor: LocalExecutor | None) -> Result:
        """Search, compare the best few with the baseline, and store what was found."""
        try:
            self.listener.started(self.progress)
            with self._workers(executor) as ready:
                self._search(ready)
                self.notes = ready.notes
        except KeyboardInterrupt:
            self.stopped = True
        except BaseException:
            with suppress(StoreError):  # it may be why the search failed, and the first error tells more
                self.store.finish_run(self.progress.run_id, "failed", self.seconds)
            raise
        if self.progress.best is None:
            self.store.finish_run(self.progress.run_id, "stopped" if self.stopped else "failed", self.seconds)
            raise self._nothing_measured()
        done = Searched(
            self.level,
            self.task,
            self.settings,
            self.store,
            self.progress,
            list(self.trials.values()),
            self.seconds,
            time.monotonic() - self.started,
            self.stopped,
            self.notes,
            executor,
        )
        return finish(done, self.listener)

    @contextmanager
    def _workers(self, executor: LocalExecutor | None) -> Generator[LocalExecutor]:
        if executor is not None:
            executor.restart_with(self.factory)
            yield executor
            return
        with self._timed("workers"):
            started = LocalExecutor(self.factory, workers=count_workers(self.settings))
        with closing(started):
            yield started

    def _search(self, executor: LocalExecutor) -> None:
        """Ask, evaluate, tell, until the budget is spent or the searcher is at its end."""
        if self.progress.growth is not None:
            self._measure_baseline(executor)
        barren = 0
        while not self._spent() and barren < BARREN_MAX:
            with self._timed("search"):
                asked = self.searcher.ask(BATCH)
            if not asked:
                return
            before = len(self.trials)
            answered = self._evaluate(executor, asked)
            barren = 0 if len(self.trials) > before else barren + 1
            if len(answered) < len(asked):
                return
            with self._timed("search"):
                self.searcher.tell(answered)

    def _measure_baseline(self, executor: LocalExecutor) -> None:
        """Measure what a front is compared with, before there is one.

        Raises:
            PlanishError: it fails.
        """
        for trial in self._evaluate(executor, [self.level.baseline(self.task)]):
            if isinstance(trial.outcome, Failed):
                stage, reason, detail = trial.outcome.stage, trial.outcome.reason, trial.outcome.detail
                told = f"the baseline failed: {stage}: {reason}: {detail}"
                raise PlanishError(told, "Mend the program; --remeasure tries it again.")

    def _spent(self) -> bool:
        best, wanted = self.progress.best_value, self.budget.value
        objective = self.progress.objective
        reached = best is not None and wanted is not None and objective.cost(best) <= objective.cost(wanted)
        left = self.budget.trials_left(len(self.trials))
        return reached or left == 0 or self.budget.seconds_left(self.started) <= 0

    def _evaluate(self, executor: LocalExecutor, asked: Sequence[Candidate]) -> list[Trial]:
        """Give the trials of what was asked, in that order; fewer where the budget ends on the way."""
        fresh = list({c.hash: c for c in asked if c.hash not in self.trials}.values())
        fresh = fresh[: self.budget.trials_left(len(self.trials))]
        place = {c.hash: len(self.trials) + i for i, c in enumerate(fresh)}
        self._recall(fresh, place)
        self._measure(executor, [c for c in fresh if c.hash not in self.trials], place)
        found = [self.trials.get(c.hash) for c in asked]
        return [t for t in found[: found.index(None) if None in found else None] if t is not None]

    def _recall(self, fresh: Sequence[Candidate], place: Mapping[str, int]) -> None:
        """Take from the store what it knows."""
        if self.settings.remeasure:
            return
        other = [c for c in fresh if c.hash not in self.known]
        with self._timed("store"):
            elsewhere = self.store.known(self.task.key, other)
        for candidate in fresh:
            old = self.known.get(candidate.hash) or elsewhere.get(candidate.hash)
            if old is not None:
                index = place[candidate.hash]
                trial = Trial(
                    candidate, old.outcome, index, self.settings.seed, old.seconds, old.host, old.time, True
                )
                self._add(trial, stored=candidate.hash in self.known)

    def _measure(self, executor: LocalExecutor, fresh: Sequence[Candidate], place: Mapping[str, int]) -> None:
        """Measure, a few at a time, so that workers are idle when the budget ends and live on.

        The first candidate that can be measured is waited for, however long it takes.
        """
        for first in range(0, len(fresh), SLICE):
            some = fresh[first : first + SLICE]
            for answer in executor.submit(some):
                self._answered(some[answer.position], answer, place)
                if self.budget.seconds_left(self.started) < -PATIENCE_S:
                    return
                if self.progress.best is not None:
                    executor.until = time.monotonic() + self.budget.seconds_left(self.started) + PATIENCE_S
            if self.budget.seconds_left(self.started) <= 0:
                return

    def _answered(self, candidate: Candidate, answer: Evaluation, place: Mapping[str, int]) -> None:
        for stage, spent in answer.seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent
        index, seed = place[candidate.hash], self.settings.seed
        trial = Trial(candidate, answer.outcome, index, seed, answer.seconds, HOST, time.time())
        self._add(trial, stored=False)

    def _add(self, trial: Trial, *, stored: bool) -> None:
        self.trials[trial.candidate.hash] = trial
        if not stored:
            with self._timed("store"):
                self.store.add_trials(self.progress.run_id, [trial])
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
            return StoppedError("stopped before anything was measured", "The same command goes on.")
        reasons = ", ".join(f"{reason} ({n})" for reason, n in self.progress.failures.most_common(3))
        return AllFailedError(
            f"none of {self.progress.trials} candidates could be measured: {reasons or 'none was proposed'}",
            f"See 'planish show {self.progress.run_id}'.",
        )


def count_workers(settings: Settings) -> int:
    """Give the number of workers that settings ask for; 0 leaves it to the cores of this machine."""
    return settings.workers or max(1, min(8, usable_cores() - settings.cores + 1))


def _read(program: str | Program, settings: Settings, options: Mapping[str, str]) -> tuple[Level, Program]:
    if isinstance(program, str):
        return load_program(program, settings.level, options)
    return level_named(program.level), program


def task_of(level: Level, program: Program, settings: Settings) -> Task:
    """Make the task that settings ask for.

    Raises:
        PlanishError: the level has no such objective, or the machine lacks what is asked of it.
    """
    names = settings.objectives or tuple(level.objectives)[:1]
    objectives = tuple(_objective(level, name) for name in names)
    return Task(program, level.target(settings.cores), objectives, level.version)


def _objective(level: Level, name: str) -> Objective:
    """Find an objective; its unit may be left out: `time` is `time_s`."""
    found = {known.rpartition("_")[0]: objective for known, objective in level.objectives.items()}
    found |= level.objectives
    if name not in found or not name:
        raise PlanishError(f"unknown objective '{name}'", did_you_mean(name, level.objectives))
    return found[name]


def _begin(
    level: Level, task: Task, settings: Settings, budget: Budget, store: Store, listener: Listener
) -> _Run:
    """Begin a run, or take up the one that began in the same way."""
    space_name = settings.space or level.spaces[0]
    teach(store, level, task)
    space = level.space(task, space_name)
    name = settings.searcher or level.searchers[0]
    searcher = make_searcher(name, space, task.objectives, settings.seed, settings.searcher_options)
    decides = {k: str(v) for k, v in settings.searcher_options.items()}
    factory = level.evaluator(task)  # may raise, and then no run has begun
    run_id = None if settings.remeasure else _same_run(store, task, name, space_name, settings.seed, decides)
    known: dict[str, Trial] = {}
    if run_id is None:
        run_id = store.begin_run(
            task, searcher=name, space=space_name, seed=settings.seed, options=decides,
            versions={"planish": version("planish"), "python": platform.python_version()},
        )  # fmt: skip
    else:
        store.resume_run(run_id)
        known = {t.candidate.hash: t for t in store.run_trials(run_id, level.steps)}
    growth = Growth(task.objectives, level.baseline(task)) if len(task.objectives) > 1 else None
    progress = Progress(task, run_id, growth=growth)
    return _Run(level, task, settings, budget, store, listener, searcher, progress, known, factory)


def _same_run(
    store: Store, task: Task, searcher: str, space: str, seed: int, options: Mapping[str, str]
) -> str | None:
    wanted = (searcher, space, seed, dict(options))
    for run in store.runs(task.key):
        if (run.searcher, run.space, run.seed, dict(run.options)) == wanted and run.status != "running":
            return run.id
    return None
