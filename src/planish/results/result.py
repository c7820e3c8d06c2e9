"""What a run found: something that reproduces itself; the same whether it was found just now or is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from planish.core import (
    Candidate,
    CanReplaceBaseline,
    Failed,
    Level,
    Measured,
    Objective,
    PlanishError,
    Task,
    Trial,
    describe,
)
from planish.levels import first_exportable, function_of, level_named, name_files
from planish.results.comparison import Compared, Comparison, Finalist
from planish.results.stored_run import read_run
from planish.store import Reader, Run


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
        notes: what the user is to be told of how candidates were measured.
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
        """How many candidates were tried."""
        return self.run.trials

    @property
    def seconds(self) -> Mapping[str, float]:
        """Where the run's time went, by stage."""
        return self.run.seconds

    @property
    def stopped(self) -> bool:
        """Whether the user ended the search."""
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
        """How the baseline did in the comparison; None where that was left out."""
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
        """What `export` writes: the candidate; where that is a library's call, the best other one.

        Where a compiler may be wrong for the program, the comparison alone verifies on inputs that the search
        did not see: without it the baseline is written.
        """
        if not self.finalists and isinstance(self.level, CanReplaceBaseline):
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
        """How many times better than the baseline the candidate is; None if they were not compared."""
        return self.finalist.lead.gain.value if self.finalist else None

    @cached_property
    def function(self) -> Callable[..., Any]:
        """What computes the program by the candidate, called with the program's inputs, in their order.

        Raises:
            PlanishError: programs of this level cannot be called from Python.
        """
        return function_of(self.level, self.task, self.candidate)

    def __getstate__(self) -> dict[str, Any]:
        # Without what was computed from them, as the function, which is machine code.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __call__(self, *inputs: Any) -> Any:
        """Compute the program by the candidate: `function(*inputs)`."""
        return self.function(*inputs)

    def describe(self) -> Mapping[str, str]:
        """Show what it does: title to text."""
        finalist = self.finalist
        known = (finalist.figures, self.notes) if finalist else ({}, None)
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
