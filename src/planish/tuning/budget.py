"""Budgets of a run: of its search, and of the stages at its end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from planish.core import Stops
from planish.measure import Plan
from planish.tuning.recorder import Progress, Trials
from planish.tuning.settings import Budget

PATIENCE_S = 0.5
"""Seconds beyond the budget that what is under way may take to end by itself."""


class SearchLimits:
    """Limits of a search; by default it ends when its searcher proposes nothing more.

    Attributes:
        concluding: whether the search is over, and what its searcher concludes is measured.
    """

    concluding: bool = False

    def trials_left(self) -> int | None:
        """Return how many more candidates may be proposed; None: any number."""
        return None

    def is_spent(self) -> bool:
        """Return whether nothing more is to be proposed, unless it is for want of trials."""
        return False

    def is_exhausted(self) -> bool:
        """Return whether nothing more is to be waited for."""
        return self.is_spent()

    def is_reached(self) -> bool:
        """Return whether the best is as good as is wanted."""
        return False

    def deadline(self) -> float:
        """Return until when what is under way is waited for, by the monotonic clock."""
        return math.inf

    def exclude(self, seconds: float) -> None:
        """Exclude time that was spent on what was known before."""


@dataclass
class BudgetTracker(SearchLimits):
    """Time and trials that a run's search has spent.

    Args:
        budget: when the search ends.
        progress: how far it is.
        trials: what has an index in it.
        stops: how often Ctrl-C, or another signal that asks to stop, came.
        started: when, by the monotonic clock; what was spent on replaying is added.
        reserve: returns the seconds that are kept for the conclusion of the search.
    """

    budget: Budget
    progress: Progress
    trials: Trials
    stops: Stops
    started: float = field(default_factory=time.monotonic)
    reserve: Callable[[], float] = float
    concluding: bool = False

    def trials_left(self) -> int | None:
        """Return how many more candidates may be proposed; one that was lost counts. None: any number."""
        return self.budget.trials_left(self.trials.n_indexed)

    def is_spent(self) -> bool:
        """Return whether nothing more is to be proposed, unless it is for want of trials."""
        if self.concluding:
            return self.stops.count > 1
        left = self.budget.seconds_left(self.started) - self.reserve()
        return self.stops.count > 0 or self.is_reached() or left <= 0

    def is_exhausted(self) -> bool:
        """Return whether nothing more is waited for; what can be measured first is, however long it takes."""
        return self.is_spent() and (self.progress.best is not None or self.stops.count > 0)

    def is_reached(self) -> bool:
        """Return whether the best is as good as is wanted, or a callback ended the search."""
        if self.progress.stop_reason:
            return True
        best, wanted = self.progress.best_value, self.budget.target
        cost = self.progress.objective.cost
        return best is not None and wanted is not None and cost(best) <= cost(wanted)

    def deadline(self) -> float:
        """Return until when evaluations under way are waited for; the first has all the time."""
        if self.progress.best is None or self.budget.seconds is None or self.concluding:
            return math.inf
        return self.started + self.budget.seconds + PATIENCE_S

    def exclude(self, seconds: float) -> None:
        """Exclude time that was spent on what was known before."""
        self.started += seconds


LEAST_S = 5.0
"""The end, and its comparison, may take so long even where the search took less."""
PLAN = Plan(most=40)
"""The comparison; it goes on to more processes than usual, and the time that it has may end it before."""


@dataclass(frozen=True)
class FinalLimits:
    """Limits of the end of a run.

    Args:
        plan: of the comparison with the baseline.
        least_s: seconds that the end, and its comparison, may take even where the search took less.
        searched_s: how long the search counts as having taken; None for as long as it took.
        share: of the search's time that the end may take.
        compared: share of the search's time that is reserved for the comparison, whatever came before it.
    """

    plan: Plan = field(default_factory=lambda: PLAN)
    least_s: float = field(default_factory=lambda: LEAST_S)
    searched_s: float | None = None
    share: float = 1.0
    compared: float = 0.2


WEIGHTS = {
    "minimize": 0.25,
    "compare": 0.4,
    "cross_check": 0.1,
    "eval_heldout": 0.1,
    "secondary_baseline": 0.05,
    "ablate": 0.1,
    "describe": 0.1,
}
"""Shares of the time that is left for the steps, in their order; of those that there are."""


@dataclass
class StageBudget:
    """The seconds that the end of a run may take: as many as the search took, or the least.

    What a step does not use is there for the later ones. The comparison has its time in any case, since
    without it there is no verdict.

    Args:
        searched_s: how long the search took.
        steps: the end's, in their order: keys of `WEIGHTS`.
        limits: of the run's end.
        now: the monotonic clock.

    Attributes:
        ends: when all steps are to be over.
    """

    searched_s: float
    steps: Sequence[str]
    limits: FinalLimits = field(default_factory=FinalLimits)
    now: Callable[[], float] = time.monotonic
    ends: float = field(init=False)

    def __post_init__(self) -> None:
        self.ends = self.now() + max(self.limits.least_s, self.limits.share * self.searched_s)

    def has(self, seconds: float, step: str) -> bool:
        """Return whether a step that begins now has more than a number of seconds."""
        return self.until(step) - self.now() > seconds

    @property
    def seconds_left(self) -> float:
        """Return the seconds that all steps have from now on."""
        return max(0.0, self.ends - self.now())

    def until(self, step: str) -> float:
        """Return when a step that begins now is to be over, by the monotonic clock."""
        now, later = self.now(), self.steps[self.steps.index(step) :]
        # Of what is left now, among those that are still to come: so an early end of one is the others' gain.
        share = max(0.0, self.ends - now) * WEIGHTS[step] / sum(WEIGHTS[each] for each in later)
        least = max(self.limits.least_s, self.limits.compared * self.searched_s)
        reserved = least if step == "compare" else 0.0
        return now + max(share, reserved)
