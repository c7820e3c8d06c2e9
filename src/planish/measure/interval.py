"""The ratio of two measured quantities, with a confidence interval that noise does not fool.

Measurements in one process share its luck (where its memory lies, what the system did meanwhile), so
they are no independent draws: the bootstrap draws processes, then rounds within them (Kalibera and
Jones, "Rigorous benchmarking in reasonable time", 2013). Few processes make the interval too narrow.
Simulated with noise of 1 % between processes, 1 % between rounds, and one round in ten 30 % too slow,
equals are called different in 6 % of comparisons of 5 processes by 3 rounds, 15 % of 3 by 5, and 22 %
of 1 by 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from planish.core import Objective, rng

Verdict = Literal["faster", "slower", "no difference"]
Rounds = Sequence[Sequence[float]]

_DRAWS = 2000
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """A ratio with its confidence interval (95 %).

    Args:
        value: the median over all rounds.
        low: the lower end of the interval.
        high: the upper end.
    """

    value: float
    low: float
    high: float

    def verdict(self, objective: Objective) -> Verdict:
        """Judge a ratio to the baseline; "faster" means better, whatever the objective is."""
        if self.low <= 1.0 <= self.high:
            return "no difference"
        return "faster" if (self.high < 1.0) == (objective.direction == "down") else "slower"


def ratio(values: Rounds, baseline: Rounds, seed: int) -> Ratio:
    """Give the ratio of a quantity to its baseline, round by round, so that slow drift cancels.

    Args:
        values: by process, then by round; not negative.
        baseline: the same, measured in the same processes and rounds.
        seed: of the bootstrap.
    """
    import numpy as np

    with np.errstate(divide="ignore"):
        over = np.asarray(values, float)
        under = np.asarray(baseline, float)
        # Two zeros are equal; anything else over zero is infinitely worse, or better.
        paired = np.divide(over, under, out=np.ones_like(over), where=(over != 0) | (under != 0))
    generator = rng(seed)
    processes, rounds = paired.shape
    process = generator.integers(processes, size=(_DRAWS, processes, 1))
    drawn = paired[process, generator.integers(rounds, size=(_DRAWS, processes, rounds))]
    medians = np.median(drawn.reshape(_DRAWS, -1), axis=1)
    tail = (1 - _CONFIDENCE) / 2
    # An order statistic, not an interpolation: the ratio may be infinite.
    low, high = np.quantile(medians, [tail, 1 - tail], method="inverted_cdf")
    return Ratio(float(np.median(paired)), float(low), float(high))


def noise(values: Sequence[float], seed: int) -> float:
    """Give how far from 1 chance alone moves the ratio of a quantity to itself.

    Args:
        values: of the same thing, in the order measured, with others between them; at least 3.
        seed: of the bootstrap.

    Returns:
        The farther end of the confidence interval of each value's ratio to the one before.
    """
    found = ratio([values[1:]], [values[:-1]], seed)
    return max(found.high - 1, 1 - found.low)
