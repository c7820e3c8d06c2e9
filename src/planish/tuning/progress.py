"""What can be watched of a run while it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from planish.core import Failed, Growth, Measured, Objective, Task, Trial


@dataclass
class Progress:
    """The state of a run.

    Args:
        task: what is tuned.
        run_id: the run's name in the store.
        trials: how many candidates have an outcome.
        cached: how many of them came from the store.
        failures: "stage: reason" to how many failed so.
        lost: how many were lost with their workers, and have no outcome.
        best: the best measured trial.
        growth: how the front grows; None with one objective.
        introduction: what is known of the program by now, in lines; where the level tells that.
        compares: whether the best few are measured again once the search is over.
        loading_s: how long it took to read the program and make its space; no budget counts it.
    """

    task: Task
    run_id: str
    trials: int = 0
    cached: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    lost: int = 0
    best: Trial | None = None
    growth: Growth | None = None
    introduction: Sequence[str] = ()
    compares: bool = True
    loading_s: float = 0.0

    @property
    def objective(self) -> Objective:
        """The leading objective."""
        return self.task.objectives[0]

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        self.trials += 1
        self.cached += trial.cached
        if self.growth is not None:
            self.growth.add(trial)
        cost = trial.cost(self.objective)
        if isinstance(trial.outcome, Failed):
            self.failures[f"{trial.outcome.stage}: {trial.outcome.reason}"] += 1
        elif cost is not None and (self.best is None or self._rank(trial) < self._rank(self.best)):
            self.best = trial

    def _rank(self, trial: Trial) -> tuple[float, int]:
        """Answers come in any order; of equals the first proposed is the best, as in the store."""
        return trial.cost(self.objective) or 0.0, trial.index

    @property
    def best_value(self) -> float | None:
        """The leading objective's best value; None before the first measured trial."""
        if self.best is None or not isinstance(self.best.outcome, Measured):
            return None
        return self.best.outcome.values[self.objective.name]


class Listener(Protocol):
    """Is told how a run goes; it must not take long."""

    def started(self, progress: Progress) -> None:
        """The search begins."""
        ...

    def trial(self, trial: Trial, progress: Progress) -> None:
        """A candidate has an outcome."""
        ...

    def ending(self, progress: Progress, what: str) -> None:
        """The search is over, and a step of the end begins: "measuring the best 3 again ..."."""
        ...


class Silent:
    """A listener that says nothing."""

    def started(self, progress: Progress) -> None:
        """Do nothing."""

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Do nothing."""

    def ending(self, progress: Progress, what: str) -> None:
        """Do nothing."""
