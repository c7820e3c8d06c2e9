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

        By Hoeffding's bound: an error on n of them is off by more than d with a chance below exp(-2nd²).
        """
        return error - math.sqrt(math.log(1 / CHANCE) / (2 * seen)) > self.limit
