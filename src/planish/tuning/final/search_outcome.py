"""A run whose search is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from planish.core import Candidate, Executor, HasReview, Level, Review, Space, Start, Task, Trial
from planish.settings import Settings
from planish.store import Store
from planish.tuning.progress import Progress


class SearchTrials(Protocol):
    """The trials of a search, which are too many to be gone through twice."""

    def __iter__(self) -> Iterator[Trial]:
        """Give all that have an outcome."""
        ...

    def of(self, candidates: Iterable[Candidate]) -> dict[str, Trial]:
        """Give those of some candidates, by hash."""
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
        notes: what the evaluators and the searcher have to tell the user.
        start: starts the executors that evaluate at the end.
        executor: live workers for a comparison that has no noise; None has fresh ones started.
        start_s: how long it took from starting the workers until the first of them had an answer.
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
    start: Start
    notes: tuple[str, ...] = ()
    executor: Executor | None = None
    start_s: float = 0.0

    def space(self) -> Space:
        """Make the space that was searched."""
        return self.level.space(self.task, self.settings.space or self.level.spaces[0])

    def review(self) -> Review:
        """Give what the level does for finalists besides."""
        return self.level.review(self.task) if isinstance(self.level, HasReview) else Review()
