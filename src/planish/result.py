"""What a run found: something that reproduces itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from planish.core import Candidate, Measured, Objective, Task, Trial
from planish.levels import level_named
from planish.measure import Standing


@dataclass(frozen=True)
class Ranked:
    """A candidate of the comparison at the end.

    Args:
        candidate: what was measured.
        standing: how it did beside the baseline.
    """

    candidate: Candidate
    standing: Standing


@dataclass(frozen=True)
class Result:
    """The outcome of a run.

    Args:
        task: what was tuned.
        run_id: the run's name in the store.
        best: the best trial of the search.
        ranked: the best few as measured again beside the baseline, the best first; may be empty.
        baseline: how the baseline did in the same comparison; None if it was left out.
        trials: how many candidates were tried.
        failures: "stage: reason" to how many failed so.
        seconds: where the run's time went, by stage.
        stopped: whether the user ended the search.
        notes: what the evaluators have to tell the user of how candidates were measured.
    """

    task: Task
    run_id: str
    best: Trial
    ranked: tuple[Ranked, ...]
    baseline: Standing | None
    trials: int
    failures: Mapping[str, int]
    seconds: Mapping[str, float]
    stopped: bool = False
    notes: tuple[str, ...] = ()

    @property
    def objective(self) -> Objective:
        """The leading objective."""
        return self.task.objectives[0]

    @property
    def candidate(self) -> Candidate:
        """The winner: the best of the comparison, or of the search if there was none."""
        return self.ranked[0].candidate if self.ranked else self.best.candidate

    @property
    def value(self) -> float:
        """The winner's value of the leading objective."""
        if self.ranked:
            return self.ranked[0].standing.median
        assert isinstance(self.best.outcome, Measured)
        return self.best.outcome.values[self.objective.name]

    @property
    def gain(self) -> float | None:
        """How many times better than the baseline the winner is; None if they were not compared."""
        ratio = self.ranked[0].standing.ratio if self.ranked else None
        if ratio is None:
            return None
        return 1 / ratio.value if self.objective.direction == "down" else ratio.value

    def describe(self) -> Mapping[str, str]:
        """Show what the winner does: title to text."""
        return level_named(self.task.level).describe(self.task, self.candidate)

    def export(self, path: Path) -> Sequence[Path]:
        """Write what can be used without planish into a folder; gives the files."""
        return level_named(self.task.level).export(self.task, self.candidate, path)
