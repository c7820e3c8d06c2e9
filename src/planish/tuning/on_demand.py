"""Measurements on demand: a caller chooses the candidates one at a time, and each is stored in a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import count

from planish.core import Candidate, Evaluation, Executor, Level, Lost, Task, Trial
from planish.core.files import StrPath
from planish.measure.executors import LocalExecutor
from planish.store import HeldError, Store, store_at
from planish.tuning.engine import SharedWorkers
from planish.tuning.settings import Settings


class OnDemandRuns:
    """Measures candidates of several tasks of a level, by one worker.

    Args:
        level: of the tasks.
        searcher: what the runs have in place of a searcher's name.
        space: the name of the space that the candidates are from.
        store: an open store, or its location; None for the user's own.
    """

    def __init__(self, level: Level, searcher: str, space: str, store: Store | StrPath | None) -> None:
        self._level, self._searcher, self._space = level, searcher, space
        self._resources = ExitStack()
        self._store = self._resources.enter_context(store_at(store))
        self._runs: dict[str, tuple[str, Iterator[int]]] = {}
        self._resources.callback(self._finish_runs)
        self._workers = self._resources.enter_context(SharedWorkers(Settings(workers=1), LocalExecutor))
        self._executor: Executor | None = None
        self._served = ""

    def close(self) -> None:
        """End the worker and the runs, and close the store where it was opened here."""
        self._resources.close()

    def trials(self, task: Task) -> Sequence[Trial]:
        """Return the trials of a task that the store has."""
        return self._store.trials(task.key, self._level.steps)

    def measure(self, task: Task, candidate: Candidate) -> Evaluation:
        """Measure a candidate and store it, unless its worker was lost: then nothing is known of it."""
        if self._executor is None or self._served != task.key:
            self._executor, self._served = self._workers.serving(self._level.evaluator(task)), task.key
        self._executor.submit([candidate])
        (evaluation,) = self._executor.results()
        if not isinstance(evaluation.outcome, Lost):
            self._add(task, evaluation)
        return evaluation

    def _add(self, task: Task, evaluation: Evaluation) -> None:
        """Add a trial to the run of a task, which is resumed or, before its first trial, begun."""
        if task.key not in self._runs:
            self._runs[task.key] = self._resumed_run(task) or (
                self._store.begin_run(task, searcher=self._searcher, space=self._space, seed=0),
                count(),
            )
        run_id, indices = self._runs[task.key]
        trial = Trial(
            evaluation.candidate, evaluation.outcome, next(indices), 0, evaluation.seconds, evaluation.host
        )
        self._store.add_trials(run_id, [trial])

    def _resumed_run(self, task: Task) -> tuple[str, Iterator[int]] | None:
        for run in self._store.runs(task.key):
            if (run.searcher, run.space) == (self._searcher, self._space) and run.status != "running":
                with suppress(HeldError):  # another process has just resumed it
                    self._store.resume_run(run.id)
                    indices = (trial.index for trial in self._store.each_trial(run.id, self._level.steps))
                    return run.id, count(1 + max(indices, default=-1))
        return None

    def _finish_runs(self) -> None:
        for run_id, _ in self._runs.values():
            self._store.finish_run(run_id)
