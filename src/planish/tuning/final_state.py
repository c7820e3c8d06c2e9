"""State at the end of a run.

Each stage of `planish.tuning.finish` reads a `SearchOutcome` and makes a new `FinalState` of the last one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from planish.core import (
    Candidate,
    CanShrink,
    Executor,
    ExecutorFactory,
    FinalChecks,
    Level,
    Objective,
    Space,
    Task,
    Trial,
)
from planish.measure.comparison import LEAST_NOISE, PairedMeasurement
from planish.store import Store
from planish.tuning.budget import FinalLimits
from planish.tuning.comparison import Compared, Comparison, Finalist
from planish.tuning.recorder import Progress
from planish.tuning.settings import Settings

if TYPE_CHECKING:
    from planish.tuning.constraint import Constraint


class SearchTrials(Protocol):
    """The trials of a search, which are too many to be gone through twice."""

    def __iter__(self) -> Iterator[Trial]:
        """Return all that have an outcome."""
        ...

    def of(self, candidates: Iterable[Candidate]) -> dict[str, Trial]:
        """Return those of some candidates, by hash."""
        ...


@dataclass(frozen=True)
class SearchOutcome:
    """A run whose search is over.

    Args:
        level: the task's level.
        task: what was tuned.
        settings: how.
        store: where the run is held for writing.
        progress: the run's state.
        trials: to go through them is to read them from the store.
        seconds: where the time went, by stage.
        wall_s: how long the search took, in seconds.
        stopped: whether the user ended the search.
        notes: what the evaluators and the searcher have to report to the user.
        start: starts the executors that evaluate at the end.
        executor: live workers for a comparison that has no noise; None has fresh ones started.
        startup_s: how long it took from starting the workers until the first of them had an answer.
        limits: of the end.
    """

    level: Level
    task: Task
    settings: Settings
    store: Store
    progress: Progress
    trials: SearchTrials
    seconds: dict[str, float]
    wall_s: float
    stopped: bool
    start: ExecutorFactory
    notes: tuple[str, ...] = ()
    executor: Executor | None = None
    startup_s: float = 0.0
    limits: FinalLimits = field(default_factory=FinalLimits)

    def space(self) -> Space:
        """Make the space that was searched; it shortens candidates only where the constraint accepts that."""
        space = self.level.space(self.task, self.settings.space or self.level.spaces[0])
        where = self.settings.where
        return ConstrainedSpace(space, where) if where and isinstance(space, CanShrink) else space

    def final_checks(self) -> FinalChecks:
        """Return the level's additional checks of finalists."""
        return self.level.final_checks(self.task)


class ConstrainedSpace(Space):
    """A space whose candidates lose steps only where the user's constraint accepts what is left.

    Args:
        space: the whole one.
        where: the constraint.
    """

    def __init__(self, space: CanShrink, where: Constraint) -> None:
        self._space, self._where = space, where
        self.machine = space.machine

    def start(self) -> Candidate:
        return self._space.start()

    def state_key(self, candidate: Candidate) -> str:
        return self._space.state_key(candidate)

    def program_key(self, candidate: Candidate) -> str:
        return self._space.program_key(candidate)

    def selected(self, candidate: Candidate, indices: Sequence[int]) -> Candidate | None:
        """Return the candidate of some steps alone; None where it is not legal, or rejected."""
        shorter = self._space.selected(candidate, indices)
        return shorter if shorter is not None and self._where(shorter) else None


@contextmanager
def open_bench(search: SearchOutcome) -> Generator[PairedMeasurement]:
    """Start a measurement in a fresh process; it ends with the block."""
    spec = search.level.evaluator(search.task, final=True)
    with search.start(spec) as executor:
        yield PairedMeasurement(executor, search.settings.seed, search.task.objectives)


@dataclass(frozen=True)
class FinalState:
    """The finalists and what they are compared with; each stage of the end makes a new state of the last.

    Args:
        finalists: those that are left; nothing is measured of them before the comparison.
        baseline: its measurements; None before the comparison.
        secondary_baseline: those of another baseline; None where there is none.
        noise: objective name to the share by which equals differ; empty where it was not measured.
        notes: what is to be said to the user.
        analyses: what was measured of the parts of a finalist, or of the baseline, for its description.
        best: the best trial of the search that is worse than the baseline in nothing, where there are several
            objectives; None where it was not looked for.
        unmeasured: the finalists that failed when they were measured again, or were left out.
    """

    finalists: tuple[Finalist, ...] = ()
    baseline: Compared | None = None
    secondary_baseline: Compared | None = None
    noise: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: tuple[str, ...] = ()
    analyses: Mapping[Candidate, Mapping[str, Any]] = field(
        default_factory=dict[Candidate, Mapping[str, Any]]
    )
    best: Trial | None = None
    unmeasured: tuple[Finalist, ...] = ()

    def noted(self, *notes: str) -> FinalState:
        """Add what is to be said; empty lines are nothing."""
        return replace(self, notes=(*self.notes, *filter(None, notes)))

    def noise_of(self, objective: Objective) -> float:
        """Return the share by which equals differ: 0 if it is exact, else as measured, or the least."""
        return 0.0 if objective.exact else self.noise.get(objective.name, LEAST_NOISE)

    def comparison(self, baseline: Candidate) -> Comparison | None:
        """Return the comparison as it is by now; None before there is any.

        The baseline comes first where none is better: nothing is then to be changed.
        """
        if self.baseline is None:
            return None
        found = self.finalists
        if not (found and found[0].improves):
            others = (each for each in found if each.candidate != baseline)
            found = (_unchanged(self.baseline, baseline), *others)
        named = tuple(
            replace(each, name=f"#{rank}", analysis=self.analyses.get(each.candidate, {}))
            for rank, each in enumerate((*found, *self.unmeasured), 1)
        )
        last = len(found)
        return Comparison(
            named[:last], self.baseline, self.secondary_baseline, self.noise, self.notes, named[last:]
        )


def _unchanged(baseline: Compared, candidate: Candidate) -> Finalist:
    """Make a finalist of the baseline."""
    return Finalist(
        candidate=candidate,
        measured=baseline.measured,
        scores=baseline.scores,
        cross_check=baseline.cross_check,
        n_steps_found=len(candidate.steps),
        trial={name: each.median for name, each in baseline.measured.items()},
    )
