"""What a run found: something that reproduces itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from planish.core import Candidate, Effect, Measured, Objective, Opinion, Task, Trial, describe
from planish.levels import first_exportable, function_of, level_named
from planish.measure import Standing, Verdict


@dataclass(frozen=True)
class Ranked:
    """A candidate of the comparison at the end; in a run with several objectives, a member of the front.

    Args:
        candidate: what was measured.
        standing: how it did beside the baseline, by the leading objective.
        standings: the same by each objective's name; the leading one too.
        scores: what data that the search did not see gives: name to value.
        opinion: what another way to run it says of its answer.
        searched: how many steps it had when the search ended; fewer are left where it was minimised.
        alone: what each of its steps does alone; empty where that was left out.
        pairs: what each two of its steps do together.
        trial: its values as the search measured them, before it was minimised.
        notes: what could not be done for it, in sentences.
    """

    candidate: Candidate
    standing: Standing
    standings: Mapping[str, Standing]
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    opinion: Opinion = field(default_factory=Opinion)
    searched: int = 0
    alone: tuple[Effect, ...] = ()
    pairs: tuple[Effect, ...] = ()
    trial: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: tuple[str, ...] = ()

    def verdict(self, objective: str) -> Verdict | Literal["failed", "left out", "disputed"]:
        """Judge it by an objective's name: "disputed" is better, but the second opinion differs."""
        verdict = self.standings[objective].verdict
        return "disputed" if verdict == "faster" and self.opinion.agrees is False else verdict


@dataclass(frozen=True)
class Referred:
    """How another baseline did.

    Args:
        name: for people: a file's name.
        objectives: objective name to its value; where measuring has noise it is as many times the baseline's
            in the comparison as it was when the two were measured in turns.
    """

    name: str
    objectives: Mapping[str, float]


@dataclass(frozen=True)
class Result:
    """The outcome of a run.

    Args:
        task: what was tuned.
        run_id: the run's name in the store.
        best: the best trial of the search; of several objectives, of those worse than the baseline in
            none, the baseline among them.
        ranked: the best few as measured again beside the baseline, the best first; may be empty. Of several
            objectives it is the front: what is worse than the baseline in none comes first, then the others,
            each sorted by the leading one; those that are disputed come last. Where nothing is better than
            the baseline, beyond the noise and without being worse in something, the baseline comes first.
        baseline: how the baseline did in the same comparison; None if it was left out.
        trials: how many candidates were tried.
        failures: "stage: reason" to how many failed so.
        seconds: where the run's time went, by stage.
        stopped: whether the user ended the search.
        notes: what the user is to be told of how candidates were measured.
        baselines: how the baseline did, by each objective's name.
        baseline_scores: what data that the search did not see gives for the baseline.
        reference: how another baseline did; None where there is none.
        figures: what was measured for `describe`; see `planish.core.HasFigures`.
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
    baselines: Mapping[str, Standing] = field(default_factory=dict[str, Standing])
    baseline_scores: Mapping[str, float] = field(default_factory=dict[str, float])
    reference: Referred | None = None
    figures: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def objective(self) -> Objective:
        """The leading objective."""
        return self.task.objectives[0]

    @property
    def candidate(self) -> Candidate:
        """The winner of the comparison, the baseline among it; of the search if there was none."""
        return self.ranked[0].candidate if self.ranked else self.best.candidate

    @property
    def exported(self) -> Candidate:
        """What `export` writes; where the winner is a library's call, the best that can be written."""
        found = [each.candidate for each in self.ranked] or [self.best.candidate]
        return first_exportable(level_named(self.task.level), found)

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
        if self.objective.direction == "up":
            return ratio.value
        return 1 / ratio.value if ratio.value else math.inf

    def describe(self) -> Mapping[str, str]:
        """Show what the winner does: title to text."""
        return describe(level_named(self.task.level), self.task, self.candidate, self.figures)

    def export(self, path: Path) -> Sequence[Path]:
        """Write `exported`, for use without planish, into a folder; gives the files."""
        return level_named(self.task.level).export(self.task, self.exported, path)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """What computes the program by the winner, called with the program's inputs, in their order.

        Raises:
            PlanishError: programs of this level cannot be called from Python.
        """
        return function_of(level_named(self.task.level), self.task, self.candidate)

    def __call__(self, *inputs: Any) -> Any:
        """Compute the program by the winner: `function(*inputs)`."""
        return self.function(*inputs)
