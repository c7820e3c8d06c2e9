"""The times of one candidate, by the clock and by processor time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

CLEARLY = 0.5
"""Processor time counts where it is so many times as uncertain as the time by the clock, or less."""


@dataclass(frozen=True)
class Samples:
    """The times of one candidate.

    Args:
        seconds: mean seconds of a call, for each block, in the order measured.
        calls: calls in a block.
        cut: whether measuring was ended early, because the candidate is slow.
        processor: the same by processor time; empty where that is not known.
        paired: whether both are shares of what a baseline took in the same moments, in its seconds. Then both
            stand for the same, and processor time is taken where it is clearly more precise.
    """

    seconds: tuple[float, ...]
    calls: int
    cut: bool = False
    processor: tuple[float, ...] = ()
    paired: bool = False

    @property
    def median(self) -> float:
        """The statistic: median seconds of a call."""
        return statistics.median(self.telling)

    @property
    def telling(self) -> tuple[float, ...]:
        """The samples that count."""
        clearer = self.paired and error(self.processor) <= CLEARLY * error(self.seconds)
        return self.processor if clearer else self.seconds

    def named(
        self, quantities: Mapping[str, Callable[[float], float]], *, one_core: bool
    ) -> Mapping[str, tuple[float, ...]]:
        """Give the samples as an outcome keeps them.

        Args:
            quantities: objective name to what makes a value of seconds.
            one_core: whether one core does all the work; the processor time of several does not tell how long
                they took, and is left out.
        """
        found = {name: tuple(map(make, self.seconds)) for name, make in quantities.items()}
        # Several cores' processor time adds up: twice the threads would look twice as slow.
        if not one_core or not self.processor:
            return found
        return found | {
            by_processor_time(name): tuple(map(make, self.processor)) for name, make in quantities.items()
        }


def by_processor_time(objective: str) -> str:
    """Name the samples of an objective that were made of processor time in place of time by the clock."""
    return f"{objective}, by processor time"


def error(samples: Sequence[float]) -> float:
    """Estimate the standard error of the median, as a share of it, from the median deviation.

    It is infinite where there are no samples, and 0 where all are equal.
    """
    if not samples:
        return math.inf
    middle = statistics.median(samples)
    # Not the standard deviation, which a single interruption would make as large as itself.
    deviation = statistics.median(abs(sample - middle) for sample in samples)
    # 1.253 = sqrt(pi / 2): the median's standard error over the mean's; 1.483: a deviation over the median
    # deviation. Both hold for a normal distribution.
    return 1.253 * 1.483 * deviation / middle / math.sqrt(len(samples))
