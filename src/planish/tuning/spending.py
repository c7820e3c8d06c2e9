"""How much of a budget is left to a search that goes on."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from planish.budget import Budget
from planish.core import Stops
from planish.tuning.progress import Progress
from planish.tuning.trials import Trials

PATIENCE_S = 0.5
"""Seconds beyond the budget that what is under way may take to end by itself."""


@dataclass
class Spending:
    """What a search has spent.

    Args:
        budget: when the search ends.
        progress: how far it is.
        trials: what has a place in it.
        stops: how often Ctrl-C, or another signal that asks to stop, came.
        started: when, by the monotonic clock; what was spent on replaying is added.
    """

    budget: Budget
    progress: Progress
    trials: Trials
    stops: Stops
    started: float = field(default_factory=time.monotonic)

    def trials_left(self) -> int | None:
        """How many more candidates may be proposed; one that was lost keeps its place. None: any number."""
        return self.budget.trials_left(self.trials.placed)

    def is_spent(self) -> bool:
        """Whether nothing more is to be proposed, unless it is for want of trials."""
        return self.stops.count > 0 or self.is_reached() or self.budget.seconds_left(self.started) <= 0

    def is_over(self) -> bool:
        """Whether nothing more is to be waited for; what can be measured first is, however long it takes."""
        return self.is_spent() and (self.progress.best is not None or self.stops.count > 0)

    def is_reached(self) -> bool:
        """Whether the best is as good as is wanted."""
        best, wanted = self.progress.best_value, self.budget.value
        cost = self.progress.objective.cost
        return best is not None and wanted is not None and cost(best) <= cost(wanted)

    def deadline(self) -> float:
        """Until when what is under way is waited for; what comes first has all the time that it takes."""
        if self.progress.best is None or self.budget.seconds is None:
            return math.inf
        return self.started + self.budget.seconds + PATIENCE_S

    def give_back(self, seconds: float) -> None:
        """Have time not counted that was spent on what was known before."""
        self.started += seconds
