"""A run as the store has it: for whoever goes on with its result, and for who only shows it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from planish.core import Candidate, Level, Objective, StoreError, Task, Trial, best_harmless
from planish.levels import level_named
from planish.results.comparison import Comparison, Finalist
from planish.results.decoding import decode, decode_notes
from planish.store import Reader, Run
from planish.store.records import StoredTask

OF_CALLS = {"decides": "einsum"}
"""Options of a run that holds how an einsum is computed, by whole calls; no search takes it up."""


@dataclass(frozen=True)
class StoredRun:
    """All that is stored of a run; its program may be one that the level does not read any more.

    Args:
        run: what was asked for.
        task: what was tuned.
        trials: by index.
        comparison: None where nothing was compared.
        notes: how the run was measured, or why nothing was compared, in sentences.
    """

    run: Run
    task: StoredTask
    trials: Sequence[Trial]
    comparison: Comparison | None
    notes: tuple[str, ...] = ()

    @property
    def finalists(self) -> tuple[Finalist, ...]:
        """The best first; empty where nothing was compared."""
        return self.comparison.finalists if self.comparison else ()

    def bind(self, level: Level) -> Task:
        """Make the task; raises ProgramError where the level does not read the program."""
        return self.task.bind(level.read(self.task.program, self.task.target))

    def best(self, baseline: Candidate | None) -> Trial | None:
        """Find the search's best trial; of several objectives, of those worse than the baseline in none."""
        return best_harmless(self.trials, self.task.objectives, baseline)


def read_run(store: Reader, run_id: str, level: Level | None = None) -> StoredRun:
    """Read a run; nothing is written.

    Args:
        store: where it is; it may be read-only.
        run_id: the id, or a unique beginning of it.
        level: that of its task; it is looked up by name where none is given.

    Raises:
        StoreError: there is no such run, or the store cannot be read.
        PlanishError: its level is not installed.
        ProgramError: the level does not have a step of a trial.
    """
    run = store.run(run_id)
    task = store.task(run.task_key)
    level = level or level_named(task.level)
    rows = store.result_rows(run.id, level.steps)
    comparison, notes = decode(rows, task.objectives), decode_notes(rows)
    return StoredRun(run, task, store.run_trials(run.id, level.steps), comparison, notes)


def read_comparison(
    store: Reader, run_id: str, level: Level, objectives: Sequence[Objective]
) -> Comparison | None:
    """Look up the comparison of a run; None where there was none.

    Args:
        store: open for reading, at least.
        run_id: the whole id.
        level: of the run's task.
        objectives: of the run's task.

    Raises:
        StoreError: it is damaged.
        ProgramError: the level lacks a step.
    """
    return decode(store.result_rows(run_id, level.steps), objectives)


def known_baseline(store: Reader, task: Task) -> float | None:
    """Tell the baseline's value as the newest comparison for a task found it; None where there is none."""
    level = level_named(task.level)
    for run in store.runs(task.key):
        with suppress(StoreError):  # it is only shown: what cannot be read must not keep a run from beginning
            if found := read_comparison(store, run.id, level, task.objectives):
                return found.baseline.lead.median
    return None
