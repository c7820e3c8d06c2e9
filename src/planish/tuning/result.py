"""Results of runs: the winner and what can be done with it, from memory or from a store.

`Result` reproduces itself: it describes, exports and calls the program by its candidate. `StoredRun` is all
that a store has of a run, whose program its level may not read any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from planish.core import (
    Candidate,
    Failed,
    Level,
    Measured,
    Objective,
    PlanishError,
    StoreError,
    Task,
    Trial,
    best_non_regressing,
    describe,
)
from planish.levels.registry import first_exportable, level_named, name_files
from planish.store import Reader, Run
from planish.store.rows import StoredTask
from planish.tuning.comparison import Compared, Comparison, Finalist
from planish.tuning.comparison_codec import decode, decode_notes

OF_CALLS = {"selects": "einsum"}
"""Options of a run that holds the selected backend of an einsum, by whole calls; no search resumes it."""


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
        return best_non_regressing(self.trials, self.task.objectives, baseline)


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
    """Return the baseline's value of the newest comparison for a task; None where there is none."""
    level = level_named(task.level)
    for run in store.runs(task.key):
        with suppress(StoreError):  # it is only shown: what cannot be read must not keep a run from beginning
            if found := read_comparison(store, run.id, level, task.objectives):
                return found.baseline.lead.median
    return None


@dataclass(frozen=True)
class Result:
    """The outcome of a run.

    Args:
        run: what was asked for, how it ended, and where its time went.
        task: what was tuned.
        best_trial: the best of the search; of several objectives, of those worse than the baseline in none,
            the baseline among them. None where nothing was measured.
        comparison: of the best few with the baseline; None where it was left out.
        failures: "stage: reason" to how many candidates failed so.
        notes: how candidates were measured, for the user.
        pick: which of the finalists is meant, from 1; without any it is the search's best.
    """

    run: Run
    task: Task
    best_trial: Trial | None
    comparison: Comparison | None = None
    failures: Mapping[str, int] = field(default_factory=dict[str, int])
    notes: tuple[str, ...] = ()
    pick: int = 1

    @property
    def run_id(self) -> str:
        """The run's name in the store."""
        return self.run.id

    @property
    def trials(self) -> int:
        """Return how many candidates were tried."""
        return self.run.trials

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds that the run took, by stage."""
        return self.run.seconds

    @property
    def stopped(self) -> bool:
        """Return whether the user ended the search."""
        return self.run.status == "stopped"

    @property
    def level(self) -> Level:
        """The level of its task."""
        return level_named(self.task.level)

    @property
    def best(self) -> Trial:
        """The best trial of the search.

        Raises:
            PlanishError: no candidate was measured.
        """
        if self.best_trial is None:
            raise PlanishError(f"run {self.run_id} has no result: no candidate was measured", "Tune again.")
        return self.best_trial

    @property
    def objective(self) -> Objective:
        """The leading objective."""
        return self.task.objectives[0]

    @property
    def finalists(self) -> tuple[Finalist, ...]:
        """All of the comparison, the best first; empty where it was left out."""
        return self.comparison.finalists if self.comparison else ()

    @property
    def baseline(self) -> Compared | None:
        """Return how the baseline did in the comparison; None where that was left out."""
        return self.comparison.baseline if self.comparison else None

    @property
    def finalist(self) -> Finalist | None:
        """The finalist that is meant; None where there was no comparison."""
        return self.finalists[self.pick - 1] if self.finalists else None

    @property
    def candidate(self) -> Candidate:
        """The winner, or who was picked: of the comparison, or the search's best if there was none."""
        return self.finalist.candidate if self.finalist else self.best.candidate

    @property
    def contender(self) -> Candidate:
        """The best candidate apart from the baseline; where there is no other one, the result."""
        baseline = self.level.baseline(self.task)
        found = self.comparison.contender(baseline) if self.comparison else None
        return found.candidate if found else self.candidate

    @property
    def exported(self) -> Candidate:
        """Return what `export` writes: the candidate; where that is a library's call, the best other one.

        Where a compiler may be wrong for the program, the comparison alone verifies on inputs that the search
        did not see: without it the baseline is written.
        """
        if not self.finalists and not self.level.exports_unverified:
            return self.level.baseline(self.task)
        return first_exportable(self.level, [self.candidate, *(each.candidate for each in self.finalists)])

    @property
    def value(self) -> float:
        """The candidate's value of the leading objective."""
        if self.finalist is not None:
            return self.finalist.lead.median
        assert isinstance(self.best.outcome, Measured)
        return self.best.outcome.values[self.objective.name]

    @property
    def gain(self) -> float | None:
        """Return how many times better than the baseline the candidate is; None if they were not compared."""
        return self.finalist.lead.gain.value if self.finalist else None

    @cached_property
    def function(self) -> Callable[..., Any]:
        """Function that computes the program by the candidate, of the program's inputs in their order.

        Raises:
            PlanishError: programs of this level cannot be called from Python.
        """
        return self.level.function(self.task, self.candidate)

    def __getstate__(self) -> dict[str, Any]:
        # Without what was computed from them, as the function, which is machine code.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __call__(self, *inputs: Any) -> Any:
        """Compute the program by the candidate: `function(*inputs)`."""
        return self.function(*inputs)

    def describe(self) -> Mapping[str, str]:
        """Show what it does: title to text."""
        finalist = self.finalist
        known = (finalist.analysis, self.notes) if finalist else ({}, None)
        return describe(self.level, self.task, self.candidate, *known)

    def export(self, path: Path) -> Sequence[Path]:
        """Write `exported`, for use without planish, into a folder; gives the files."""
        return self.level.export(self.task, self.exported, path)


def read_result(store: Reader, run_id: str, pick: int = 1, files: Iterable[Path] = ()) -> Result:
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
    found = read_run(store, run_id)
    level, run, count = level_named(found.task.level), found.run, len(found.finalists)
    if not 1 <= pick <= max(1, count):
        what = f"run {run.id} has no #{pick}: {count} were compared"
        raise PlanishError(what, f"See 'planish show {run.id}'.")
    name_files(level, files)
    task = found.bind(level)
    outcomes = [trial.outcome for trial in found.trials]
    failures = Counter(f"{each.stage}: {each.reason}" for each in outcomes if isinstance(each, Failed))
    best = found.best(level.baseline(task))
    return Result(run, task, best, found.comparison, failures, found.notes, pick)
