"""The ratio of two measured quantities, with a confidence interval that noise does not fool.

Measurements in one process share its luck (where its memory lies, what the system did meanwhile), so they
are no independent draws (Kalibera and Jones, "Rigorous benchmarking in reasonable time", 2013). Each process
therefore gives one number: the median over its rounds of the logarithm of the paired ratio. Of these the
Hodges-Lehmann estimate is taken, and Wilcoxon's signed-rank interval; of fewer than 8, Student's.

A comparison that goes on while it is undecided looks at its interval several times, and chance has as many
occasions to fool it. So each look has 98 %, which leaves 95 % to up to four looks at 5, 10, 20 and 40
processes (Pocock, "Group sequential methods", 1977). `tests/measure/test_coverage.py` simulates it, with
noise such as five busy processes make on two cores.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache

from planish.core import Ratio

Rounds = Sequence[Sequence[float]]

_TAIL = 0.01
"""The chance that the truth lies beyond one end, at each look."""
_STUDENT = (31.821, 6.965, 4.541, 3.747, 3.365, 3.143)
"""Student's t for this tail and 1, 2, ... degrees of freedom."""


def ratio(values: Rounds, baseline: Rounds) -> Ratio:
    """Give the ratio of a quantity to its baseline, round by round, so that slow drift cancels.

    Args:
        values: by process, then by round; not negative. Of a single process, each round is taken for one.
        baseline: the same, measured in the same processes and rounds; there may be more processes.
    """
    # By ratios within a round, and only then a median: what slowed both in that moment cancels.
    paired = [
        [_over(one, base) for one, base in zip(row, bases, strict=True)]
        for row, bases in zip(values, baseline, strict=False)
    ]
    # A single process has no other to be compared with: its rounds must do, though they share its luck.
    shown = paired[0] if len(paired) == 1 else [statistics.median(row) for row in paired]
    least, most = min(shown), max(shown)
    if least in (0.0, most) or most == math.inf:  # no noise, or no logarithms: what was seen must do
        return Ratio(statistics.median_low(shown), least, most)
    # By logarithms: there half as long and twice as long lie at equal distances from 1.
    value, low, high = map(math.exp, _interval(sorted(map(math.log, shown))))
    return Ratio(value, low, high)


def _over(one: float, base: float) -> float:
    """Divide; two zeros are equal, and anything else over zero is infinitely worse, or better."""
    if base == 0:
        return 1.0 if one == 0 else math.inf
    return one / base


def _interval(numbers: Sequence[float]) -> tuple[float, float, float]:
    """Give the Hodges-Lehmann estimate, and both ends of an interval, of 2 sorted numbers at least."""
    count = len(numbers)
    # The Walsh averages; of at most 40 numbers there are 820, so nothing faster is needed.
    walsh = sorted((a + b) / 2 for place, a in enumerate(numbers) for b in numbers[place:])
    middle = statistics.median(walsh)
    if count - 2 < len(_STUDENT):
        half = _STUDENT[count - 2] * statistics.stdev(numbers) / math.sqrt(count)
        mean = statistics.fmean(numbers)
        return middle, mean - half, mean + half
    outside = _outside(count)
    return middle, walsh[outside], walsh[-1 - outside]


@cache
def _outside(count: int) -> int:
    """Give how many averages of two lie beyond each end of Wilcoxon's interval; 8 numbers are the least.

    The rank sum of `count` numbers that are symmetric about 0 takes each value in so many of 2 ** count ways.
    """
    ways = [1] + [0] * (count * (count + 1) // 2)
    for rank in range(1, count + 1):
        # Downwards, so that no rank is counted twice in one sum.
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    most, beyond = _TAIL * 2**count, 0
    for total, each in enumerate(ways):
        beyond += each
        if beyond > most:
            return total - 1
    raise AssertionError("the ways are all of 2 ** count")
