"""A run of the store with all that belongs to it: the level, the task, the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from planish.core import (
    Candidate,
    Level,
    Measured,
    Objective,
    PlanishError,
    Task,
    Trial,
    best_harmless,
    describe,
)
from planish.levels import first_exportable, function_of, level_named, name_files
from planish.store import Finalist, Reader, Run


@dataclass(frozen=True)
class Gain:
    """How many times better than the baseline something is, with its confidence interval (95 %).

    Args:
        value: the estimate; 1 is no gain.
        low: the lower end of the interval.
        high: the upper end.
    """

    value: float
    low: float
    high: float

    @staticmethod
    def of(ratio: Sequence[float], objective: Objective) -> Gain:
        """Turn objective / baseline's objective, with the ends of its interval, so that more is better."""
        if objective.direction == "up":
            return Gain(*ratio)
        value, low, high = (1 / r if r else math.inf for r in ratio)
        return Gain(value, high, low)


@dataclass(frozen=True)
class StoredResult:
    """What a run found, as the store holds it.

    Args:
        run: the run.
        level: the level of its task.
        task: what was tuned, with the program read again.
        level_version: the level's version when the run was made.
        finalists: the best few as measured again beside the baseline, the best first; empty where the
            comparison was left out.
        best: the best trial of the search; of several objectives, of those worse than the baseline in
            none; None where all failed.
        pick: which of the finalists is meant, from 1; without any it is the search's best.
    """

    run: Run
    level: Level
    task: Task
    level_version: str
    finalists: tuple[Finalist, ...]
    best: Trial | None
    pick: int = 1

    @property
    def finalist(self) -> Finalist | None:
        """The finalist that is meant; None where there was no comparison."""
        return self.finalists[self.pick - 1] if self.finalists else None

    @property
    def objective(self) -> Objective:
        """The leading objective."""
        return self.task.objectives[0]

    @property
    def candidate(self) -> Candidate:
        """The winner, or who was picked: of the comparison, or the search's best if there was none.

        Raises:
            PlanishError: no candidate was measured.
        """
        if self.finalist is not None:
            return self.finalist.candidate
        if self.best is None:
            raise PlanishError(f"run {self.run.id} has no result: no candidate was measured", "Tune again.")
        return self.best.candidate

    @property
    def exported(self) -> Candidate:
        """What `export` writes: the candidate; where that is a library's call, the best other one."""
        return first_exportable(self.level, [self.candidate, *(each.candidate for each in self.finalists)])

    @property
    def value(self) -> float | None:
        """The winner's value of the leading objective; None where no candidate was measured."""
        if self.finalist is not None:
            return self.finalist.data["median"]
        if self.best is None or not isinstance(self.best.outcome, Measured):
            return None
        return self.best.outcome.values[self.objective.name]

    @property
    def gain(self) -> float | None:
        """How many times better than the baseline the winner is; None where they were not compared."""
        return None if self.finalist is None else self.finalist.ratio

    @cached_property
    def function(self) -> Callable[..., Any]:
        """What computes the program by the candidate, called with the program's inputs, in their order.

        Raises:
            PlanishError: programs of this level cannot be called from Python.
        """
        return function_of(self.level, self.task, self.candidate)

    def __call__(self, *inputs: Any) -> Any:
        """Compute the program by the candidate: `function(*inputs)`."""
        return self.function(*inputs)

    def describe(self) -> Mapping[str, str]:
        """Show what it does: title to text."""
        figures = self.finalist.data.get("figures", {}) if self.finalist else {}
        return describe(self.level, self.task, self.candidate, figures)

    def export(self, path: Path) -> Sequence[Path]:
        """Write `exported`, for use without planish, into a folder; gives the files."""
        return self.level.export(self.task, self.exported, path)


def stored_result(store: Reader, run_id: str, pick: int = 1, files: Iterable[Path] = ()) -> StoredResult:
    """Look up a run and its result.

    Args:
        store: open for reading, at least.
        run_id: the run's id, or a unique beginning of it.
        pick: which of the finalists is meant, from 1, in the order that they are shown.
        files: that the program refers to; those are known which were named here before, as by tuning them.

    Raises:
        StoreError: there is no such run.
        PlanishError: its level is not installed, or there are not so many finalists.
        ProgramError: the level does not read the program, or lacks a step.
    """
    run = store.run(run_id)
    stored = store.task(run.task_key)
    level = level_named(stored.level)
    name_files(level, files)
    task = stored.bind(level.read(stored.program, stored.target))
    trials = store.run_trials(run.id, level.steps)
    finalists = tuple(store.finalists(run.id, level.steps))
    if not 1 <= pick <= max(1, len(finalists)):
        what = f"run {run.id} has no #{pick}: {len(finalists)} were compared"
        raise PlanishError(what, f"See 'planish show {run.id}'.")
    return StoredResult(
        run=run,
        level=level,
        task=task,
        level_version=stored.level_version,
        finalists=finalists,
        best=best_harmless(trials, task.objectives, level.baseline(task)),
        pick=pick,
    )


def known_baseline(store: Reader, task: Task) -> float | None:
    """Tell the baseline's value as the newest comparison for a task found it; None where there is none."""
    steps = level_named(task.level).steps
    for run in store.runs(task.key):
        for finalist in store.finalists(run.id, steps)[:1]:
            return finalist.data["baseline"]["median"]
    return None
