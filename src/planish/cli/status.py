"""The state of a run that goes on, in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from planish.budget import Budget
from planish.core import Growth
from planish.report.trial_statistics import work_of
from planish.report.wording import MINUTE_S, amount, duration, label, multiple, number
from planish.tuning.finish import LEAST_S
from planish.tuning.recorder import Progress

_SOON_S = 10
_TOLD_S = 1.0
"""Reading a program is spoken of where it takes so long."""
_SHOWN = 3


@dataclass
class RunStatus:
    """The state of a run, in words.

    Args:
        progress: the run's state.
        budget: when the search ends.
        baseline: the baseline's value, where an earlier run of the task measured it.
        now: the clock, in seconds.
    """

    progress: Progress
    budget: Budget
    baseline: float | None = None
    now: Callable[[], float] = time.monotonic
    started: float = field(init=False)
    ended: float | None = None

    def __post_init__(self) -> None:
        self.started = self.now()

    @property
    def plan(self) -> str:
        """How long it takes, as it begins; empty where that is not known."""
        loading, most = self.progress.loading_s, self.budget.seconds
        parts = [f"read in {duration(loading)}"] if loading >= _TOLD_S else []
        parts += [] if most is None else [f"at most {_round(most)} of search"]
        if self.progress.compares:
            long = f"as long as that, or {LEAST_S:g} s," if most is None else _round(max(LEAST_S, most))
            search = ["the search"] if most is None else []
            parts += [*search, f"then at most {long} to compare the best with the baseline"]
        return ", ".join(parts)

    def end(self) -> None:
        """Let the clock stand still."""
        self.ended = self.ended or self.now()

    @property
    def best(self) -> str:
        """The best value so far, and what it gains; with several objectives, how far the front is."""
        if self.progress.growth is not None and self.progress.growth.front:
            return self._front(self.progress.growth)
        value, trial = self.progress.best_value, self.progress.best
        if value is None or trial is None:
            return "nothing measured yet"
        work = work_of([trial], self.progress.objective)
        rate = f", {number(work / value)} GFLOPS" if work and value else ""
        return f"best {amount(value, self.progress.objective.unit)}{rate}{self._gain(value)}"

    def _front(self, growth: Growth) -> str:
        ends = (f"{label(o)} {self._ends(growth, place)}" for place, o in enumerate(growth.objectives))
        return f"front of {len(growth.front)}: {', '.join(ends)}"

    @property
    def volume(self) -> str:
        """The front's hypervolume; empty where it is not known."""
        growth = self.progress.growth
        volume = None if growth is None else growth.volume
        return "" if volume is None else f"hypervolume {number(volume)} (baseline 1)"

    def _ends(self, growth: Growth, place: int) -> str:
        """Give the range of an objective on the front."""
        objective = growth.objectives[place]
        values = sorted(objective.cost(costs[place]) for costs in growth.front)
        ends = dict.fromkeys(amount(value, objective.unit) for value in (values[0], values[-1]))
        return " to ".join(ends)

    def _gain(self, value: float) -> str:
        if not self.baseline or not value:
            return ""
        down = self.progress.objective.direction == "down"
        return f", {multiple(self.baseline / value if down else value / self.baseline)} the baseline"

    @property
    def pace(self) -> str:
        """How many trials there are, and how many are measured in a second."""
        trials, cached = self.progress.trials, self.progress.cached
        known = f" ({cached:,} known)" if cached else ""
        return f"{trials:,} trials{known}, {(trials - cached) / self._seconds:.3g}/s"

    @property
    def failed(self) -> str:
        """How many failed, and of what, and how many were lost with their workers; empty where none were."""
        failures, lost = self.progress.failures, self.progress.lost
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in failures.most_common(_SHOWN))
        failed = f"{failures.total():,} failed ({reasons})" if failures else ""
        return ", ".join(filter(None, [failed, f"{lost:,} lost with their workers" if lost else ""]))

    @property
    def done(self) -> float | None:
        """The share of the budget that is used up; None where the search has no sure end."""
        spent = (self._seconds, self.budget.seconds), (self.progress.trials, self.budget.trials)
        shares = [used / most for used, most in spent if most]
        return min(1.0, max(shares)) if shares else None

    @property
    def left(self) -> str:
        """How long the search goes on, at its pace so far."""
        if self.done is None:
            value = self.budget.value
            return "until Ctrl-C" if value is None else f"until {amount(value, self.progress.objective.unit)}"
        if not self.done:
            return "time left unknown"
        left = max(0.0, self._seconds / self.done - self._seconds)
        return f"{left:.1f} s left" if left < _SOON_S else f"{duration(round(left))} left"

    @property
    def _seconds(self) -> float:
        return max((self.ended or self.now()) - self.started, 1e-3)


def _round(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 2 * MINUTE_S else duration(seconds)
