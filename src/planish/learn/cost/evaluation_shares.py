"""A module's evaluations, given to the functions where most is expected of them."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from planish.learn.cost.model import Floats

_LEAST = 1e-9
"""Where nothing at all is expected of lists, they are still run, after all others."""


class EvaluationShares:
    """Says on which function the next list is worth most.

    On each function lists are run in their order. A function is worth the greatest mean gain of some of its
    next lists, so one that promises little may stand before one that promises much. What was measured
    counts in that the gains expected are those beside the lists that were run. To make a function worth more
    or less by how its saving so far compares with what was expected (by a gamma prior, or by ratios learnt
    for each place) gained nothing on functions of packages that were held back.

    Args:
        gains: (functions, lists), what each list is expected to save beside those before it.

    Attributes:
        saved: the most that was saved on each function.
    """

    def __init__(self, gains: Floats) -> None:
        self._worth = _worth(gains)
        self._next = np.zeros(len(gains), np.intp)
        self.saved = np.zeros(len(gains))
        self._heap: list[tuple[float, int]] = []
        for function in range(len(gains)):
            self._offer(function)

    def next(self) -> tuple[int, int] | None:
        """Give a function, and the place of the list to be run on it; None where all is under way or over.

        The function is not given again until its saving is told.
        """
        if not self._heap:
            return None
        _, function = heapq.heappop(self._heap)
        return function, int(self._next[function])

    def tell(self, function: int, saved: float) -> None:
        """Tell what the list saved over -Oz on a function that was given; 0 where it failed or costs more."""
        self.saved[function] = max(self.saved[function], saved)
        self._next[function] += 1
        self._offer(function)

    def _offer(self, function: int) -> None:
        place = self._next[function]
        if place < self._worth.shape[1]:
            heapq.heappush(self._heap, (-float(self._worth[function, place]), function))


def _worth(gains: Floats) -> NDArray[np.float64]:
    """Give for each list the greatest mean gain of it and some lists that follow it."""
    count, lists = gains.shape
    sums = np.concatenate([np.zeros((count, 1)), gains.cumsum(axis=1, dtype=np.float64)], axis=1)
    worth = np.zeros((count, lists))
    for place in range(lists):
        # By sums, so that all runs of lists from here on cost one subtraction each.
        means = (sums[:, place + 1 :] - sums[:, [place]]) / np.arange(1, lists - place + 1)
        # The small term orders what has no promise at all: functions that were tried less often come first.
        worth[:, place] = means.max(axis=1) + _LEAST / (1 + place)
    return worth
