"""How something did beside the baseline: a ratio, and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from planish.core.task import Objective

Verdict = Literal["better", "same", "worse", "undecided", "failed"]
"""Compared with the baseline, by one objective.

"same": the interval contains 1 and is narrow. "undecided": the interval contains 1 and is too wide to tell,
or nothing was measured because time ran out or workers were lost. "failed": it crashes, or its answer is
wrong, also by the second opinion.
"""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

NOTICED = 0.01
"""A smaller difference is not noticed."""
SAME = 0.03
"""An interval around 1 that stays within this share of 1 shows that there is no difference."""


@dataclass(frozen=True)
class Ratio:
    """A ratio with its confidence interval (95 %, however often it is looked at).

    Args:
        value: the estimate.
        low: the lower end of the interval.
        high: the upper end.
    """

    value: float
    low: float
    high: float

    def verdict(self, objective: Objective) -> Verdict:
        """Judge objective / baseline's objective."""
        if self.low <= 1.0 <= self.high:
            return "same" if self.is_within(SAME) else "undecided"
        return "better" if (self.high < 1.0) == (objective.direction == "down") else "worse"

    def gain(self, objective: Objective) -> Ratio:
        """Turn objective / baseline's objective into how many times better it is than the baseline."""
        if objective.direction == "up":
            return self
        value, high, low = (1 / each if each else math.inf for each in (self.value, self.low, self.high))
        return Ratio(value, low, high)

    def is_within(self, share: float) -> bool:
        """Return whether no end of the interval differs from 1 by more than a share."""
        return self.low >= 1 / (1 + share) and self.high <= 1 + share

    @property
    def width(self) -> float:
        """The interval's, as the logarithm of high / low; 0 where there is no noise."""
        return math.log(self.high / self.low) if self.low > 0 and self.high < math.inf else 0.0

    @property
    def settled(self) -> bool:
        """Whether more measuring would say nothing new.

        It would where the interval straddles 1, unless it lies within what nobody notices, and where it is
        wider than the difference that it shows.
        """
        if self.low <= 1.0 <= self.high:
            return self.width == 0 or self.is_within(NOTICED)
        return self.width <= abs(math.log(self.value)) if self.width else True


EQUAL = Ratio(1.0, 1.0, 1.0)
