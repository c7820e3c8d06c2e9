"""The ratio of two measured quantities, with a confidence interval that noise does not fool.

Measurements in one process share its luck (where its memory lies, what the system did meanwhile), so they
are no independent draws (Kalibera and Jones, "Rigorous benchmarking in reasonable time", 2013). Each process
therefore gives one number: the median over its rounds of the logarithm of the paired ratio. Of these the
Hodges-Lehmann estimate is taken, and Wilcoxon's signed-rank interval; of fewer than 8, Student's.

A comparison has many occasions to be fooled by chance: it has several variants, and while it is undecided it
looks at its intervals several times. So each look of each of n variants has a tail of 0.5 % / n (Pocock,
"Group sequential methods", 1977; Bonferroni). With looks at 5, 10, 20 and 40 processes, all intervals of a
comparison cover the truth in more than 95 %, and of 200 comparisons of equals about 1 ends in "better":
resampling 20 processes of kernels and ONNX models, recorded beside five busy processes on two cores, gives
0.2 % to 0.5 %, where a tail of 1 % for each look of each of 4 variants gave 2.7 % to 4 %.

Few processes do not show by how much processes differ: of 5, all are on the same side by luck in 3 %. Where
there are too few for ranks, a standard deviation of `LUCK` between processes is assumed at least.
`tests/measure/test_coverage.py` simulates it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache

from planish.core import Ratio

Rounds = Sequence[Sequence[float]]

_TAIL = 0.005
"""The chance that the truth lies beyond one end, at each look at the only variant."""
LUCK = 0.01
"""By which share processes that run the same code differ at least (standard deviation)."""
_RANKED = 8
"""Of fewer numbers the ranks say too little."""


def ratio(values: Rounds, baseline: Rounds, variants: int = 1) -> Ratio:
    """Return the ratio of a quantity to its baseline, round by round, so that slow drift cancels.

    Args:
        values: by process, then by round; not negative. Of a single process, each round is taken for one.
        baseline: the same, measured in the same processes and rounds; there may be more processes.
        variants: how many are compared with the baseline; the more, the wider the interval of each.
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
    value, low, high = map(math.exp, _interval(sorted(map(math.log, shown)), _TAIL / variants))
    return Ratio(value, low, high)


def _over(one: float, base: float) -> float:
    """Divide; two zeros are equal, and anything else over zero is infinitely worse, or better."""
    if base == 0:
        return 1.0 if one == 0 else math.inf
    return one / base


def _interval(numbers: Sequence[float], tail: float) -> tuple[float, float, float]:
    """Return the Hodges-Lehmann estimate, and both ends of an interval, of 2 sorted numbers at least."""
    count = len(numbers)
    # The Walsh averages; of at most 40 numbers there are 820, so nothing faster is needed.
    walsh = sorted((a + b) / 2 for place, a in enumerate(numbers) for b in numbers[place:])
    middle = statistics.median(walsh)
    if count < _RANKED or 2.0**-count > tail:
        half = _student(tail, count - 1) * max(LUCK, statistics.stdev(numbers)) / math.sqrt(count)
        mean = statistics.fmean(numbers)
        return middle, min(middle, mean - half), max(middle, mean + half)
    outside = _outside(count, tail)
    return middle, walsh[outside], walsh[-1 - outside]


@cache
def _student(tail: float, freedom: int) -> float:
    """Return what a variable of Student's distribution exceeds with a probability, by bisection."""
    low, high = 0.0, 1.0
    while _beyond(high, freedom) > tail:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(middle, freedom) > tail else (low, middle)
    return high


def _beyond(t: float, freedom: int) -> float:
    """Return the probability beyond t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    odd, cosine = freedom % 2, math.cos(angle)
    term = total = cosine if odd else 1.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine**2 * (k - 1) / k
        total += term
    within = math.sin(angle) * total
    if odd:
        within = 2 / math.pi * (angle + (within if freedom > 1 else 0.0))
    return (1 - within) / 2


@cache
def _outside(count: int, tail: float) -> int:
    """Return how many averages of two lie beyond each end of Wilcoxon's interval.

    The rank sum of `count` numbers that are symmetric about 0 takes each value in so many of 2 ** count ways.
    """
    ways = [1] + [0] * (count * (count + 1) // 2)
    for rank in range(1, count + 1):
        # Downwards, so that no rank is counted twice in one sum.
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    most, beyond = tail * 2**count, 0
    for total, each in enumerate(ways):
        beyond += each
        if beyond > most:
            return total - 1
    raise AssertionError("the ways are all of 2 ** count")
