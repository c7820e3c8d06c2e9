"""Who has lost by the first examples is not shown the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planish.core import Objective, bounds

CHANCE = 1e-6
"""How likely it is, at most, that a module which is of use is taken for one that is not, at each look."""

_ERROR = (Objective("error", exact=True, share=True),)


@dataclass(frozen=True)
class Race:
    """Knows up to which error a module is of use: twice that of the unchanged one, or half its right answers.

    Args:
        limit: that error.
    """

    limit: float

    @staticmethod
    def against(error: float) -> Race:
        """Make the race against the unchanged module, of a known error."""
        return Race(*bounds((error,), _ERROR))

    def lost(self, error: float, seen: int) -> bool:
        """Whether an error on so many examples, drawn at random, is beyond the limit on others too.

        By Chernoff's bound: where q of all are wrong, p > q of n are with a chance below exp(-n KL(p, q)).
        """
        return error > self.limit and seen * _divergence(error, self.limit) > math.log(1 / CHANCE)


def _divergence(p: float, q: float) -> float:
    """Give the Kullback-Leibler divergence of an event's chance p from another, q."""
    if q <= 0 or q >= 1:
        return math.inf
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)
