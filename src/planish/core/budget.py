"""Budget of a search."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from planish.core.arguments import check_number, check_whole_number
from planish.core.errors import ArgumentError


@dataclass(frozen=True)
class Budget:
    """Limits of a search, which ends when the first one is reached; None is no limit.

    Args:
        trials: distinct candidates, those that the store knows already included.
        seconds: wall-clock seconds of the search; the end of the run takes as many again at most, or 5.
        target: a value of the leading objective that is good enough.

    Raises:
        ArgumentError: a limit is not positive, or is not a number.

    Examples:
        >>> from planish import Budget
        >>> Budget(trials=200, seconds=60)
        Budget(trials=200, seconds=60, target=None)
        >>> Budget(trials=0)
        Traceback (most recent call last):
        ...
        planish.core.errors.ArgumentError: a budget of 0 trials allows nothing. Give a number above 0.
    """

    trials: int | None = None
    seconds: float | None = None
    target: float | None = None

    def __post_init__(self) -> None:
        if self.trials is not None:
            check_whole_number("trials", self.trials)
        for name in ("seconds", "target"):
            if (limit := getattr(self, name)) is not None:
                check_number(name, limit)
        for name, limit in (("trials", self.trials), ("seconds", self.seconds)):
            if limit is not None and not 0 < limit < math.inf:
                raise ArgumentError(f"a budget of {limit} {name} allows nothing", "Give a number above 0.")
        if self.target is not None and not math.isfinite(self.target):
            raise ArgumentError(f"a target value of {self.target} cannot be reached", "Give a finite number.")

    @property
    def limited(self) -> bool:
        """Return whether the budget bounds the search."""
        return self.trials is not None or self.seconds is not None

    def trials_left(self, done: int) -> int | None:
        """Return the number of trials left; None for no limit."""
        return None if self.trials is None else max(0, self.trials - done)

    def seconds_left(self, started: float, clock: Callable[[], float] = time.monotonic) -> float:
        """Return the seconds left, for a search that began at this time of the clock."""
        return math.inf if self.seconds is None else self.seconds - (clock() - started)
