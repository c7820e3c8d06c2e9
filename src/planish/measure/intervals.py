"""Confidence intervals of ratios, and the evidence of a comparison.

Measurements in one process share its conditions (where its memory lies, what the system did meanwhile), so
they are not independent (Kalibera and Jones, "Rigorous benchmarking in reasonable time", 2013). Each process
therefore yields one number: the median over its rounds of the logarithm of the paired ratio. Of these the
Hodges-Lehmann estimate is taken, with Wilcoxon's signed-rank interval; of fewer than 8, Student's, around the
median of all paired ratios. Hodges and Lehmann's estimate of 5 numbers breaks down by two outliers, and a
machine that others keep busy has such: with 3 rounds in each of 5 processes, of which 30 % are several times
as slow, one of 20 such estimates is wrong by more than 55 %, and one of 20 medians of all ratios by more than
5 %.

A comparison has many occasions to be misled by chance: it has several variants, and looks at their intervals
several times while it is undecided. So each look at each of n variants has a tail of 0.5 % / n (Pocock,
"Group sequential methods", 1977; Bonferroni). With looks at 5, 10, 20 and 40 processes, all intervals of a
comparison cover the truth in more than 95 %, and of 200 comparisons of equals about 1 ends in "better":
resampling 20 processes of kernels and ONNX models, recorded beside five busy processes on two cores, shows
0.2 % to 0.5 %, where a tail of 1 % for each look at each of 4 variants gave 2.7 % to 4 %.

Few processes do not show by how much processes differ: of 5, all are on the same side by chance in 3 %. Where
there are too few for ranks, a standard deviation of at least `LEAST_DEVIATION` between processes is assumed.
`tests/measure/test_intervals.py` simulates it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from planish.core import Failed, Lost, Measured, Objective, Outcome, PlanishError, Ratio, Verdict, rng
from planish.measure.timing import CLEARLY, by_processor_time

Rounds = Sequence[Sequence[float]]

_TAIL = 0.005
"""The chance that the truth lies beyond one end, at each look at the only variant."""
LEAST_DEVIATION = 0.01
"""Least standard deviation between processes that run the same code, as a share."""
_RANKED = 8
"""Of fewer numbers the ranks say too little."""


def ratio(values: Rounds, baseline: Rounds, variants: int = 1) -> Ratio:
    """Return the ratio of a quantity to its baseline, round by round, so that slow drift cancels.

    Args:
        values: by process, then by round; not negative. Of a single process, each round is taken for one.
        baseline: the same, measured in the same processes and rounds; there may be more processes.
        variants: how many are compared with the baseline; the more, the wider the interval of each.
    """
    # By ratios within a round, and only then a median: what slowed both in that moment cancels. Two zeros are
    # equal, and anything else over zero is infinitely worse, or better.
    paired = [
        [one / base if base else math.inf if one else 1.0 for one, base in zip(row, bases, strict=True)]
        for row, bases in zip(values, baseline, strict=False)
    ]
    # A single process has no other to be compared with: its rounds must do, though they share its conditions.
    shown = paired[0] if len(paired) == 1 else [statistics.median(row) for row in paired]
    least, most = min(shown), max(shown)
    if least in (0.0, most) or most == math.inf:  # no noise, or no logarithms: what was seen must do
        return Ratio(statistics.median_low(shown), least, most)
    # By logarithms: there half as long and twice as long lie at equal distances from 1.
    pairs = [math.log(one) for row in paired for one in row if 0 < one < math.inf]
    value, low, high = map(math.exp, _interval(sorted(map(math.log, shown)), pairs, _TAIL / variants))
    return Ratio(value, low, high)


def _interval(numbers: Sequence[float], pairs: Sequence[float], tail: float) -> tuple[float, float, float]:
    """Return an estimate, and both ends of its interval.

    Args:
        numbers: one of each process, sorted; at least 2.
        pairs: all that these are made of.
        tail: the chance that the truth lies beyond one end.
    """
    count = len(numbers)
    if count < _RANKED or 2.0**-count > tail:
        half = _student(tail, count - 1) * max(LEAST_DEVIATION, statistics.stdev(numbers)) / math.sqrt(count)
        mean, middle = statistics.fmean(numbers), statistics.median(pairs)
        return middle, min(middle, mean - half), max(middle, mean + half)
    # The Walsh averages; of at most 40 numbers there are 820, so nothing faster is needed.
    walsh = sorted((a + b) / 2 for index, a in enumerate(numbers) for b in numbers[index:])
    outside = _outside(count, tail)
    return statistics.median(walsh), walsh[outside], walsh[-1 - outside]


@cache
def _student(tail: float, freedom: int) -> float:
    """Return the value that a variable of Student's distribution exceeds with a probability, by bisection."""
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


_DRAWS = 2000
_NOISE_TAIL = 0.025


def noise(values: Sequence[float], seed: int) -> float:
    """Estimate by the bootstrap how far from 1 chance alone moves the ratio of a quantity to itself.

    Args:
        values: of the same thing, in the order measured, with others between them; at least 3, not negative.
        seed: of the bootstrap.

    Returns:
        The farther end of the 95 % interval of the median of each value's ratio to the one before.
    """
    import numpy as np

    # Neighbors, since slow drift of the machine does not count as noise of a paired comparison.
    later, before = np.asarray(values[1:], float), np.asarray(values[:-1], float)
    with np.errstate(divide="ignore"):
        # Two zeros are equal; anything else over zero is infinitely worse.
        over = np.divide(later, before, out=np.ones_like(later), where=(later != 0) | (before != 0))
    # Of the median, as verdicts are: single ratios are far noisier than what is decided by.
    medians = np.median(over[rng(seed).integers(len(over), size=(_DRAWS, len(over)))], axis=1)
    # An order statistic, not an interpolation: the ratio may be infinite.
    low, high = np.quantile(medians, [_NOISE_TAIL, 1 - _NOISE_TAIL], method="inverted_cdf")
    return float(max(high - 1, 1 - low))


@dataclass(frozen=True)
class Evidence:
    """Ratio to the baseline by both clocks, wall time and processor time.

    On a machine that others keep busy the time by the clock is mostly waiting, and processor time
    is up to 20 times as precise. Where one core does all the work, without a pause, both stand for the same.
    So processor time decides where it is clearly more precise, unless it claims more than the clock allows: a
    program that sleeps, or waits for a disk, gains nothing by less processor time. That the clock claims more
    is usual: on a busy machine a longer call is interrupted more often, and its median then jumps. Where one
    says better and the other worse, nothing is decided.

    Args:
        wall: by the clock.
        processor: by processor time; None where that is not known, or does not show how long it takes.
    """

    wall: Ratio
    processor: Ratio | None = None

    @property
    def clocks_disagree(self) -> bool:
        """Return whether processor time claims a difference that the clock rules out."""
        if self.processor is None:
            return False
        # Only beyond 1, too: that the clock claims more than processor time is usual on a busy machine.
        better = self.processor.high < min(self.wall.low, 1.0)
        worse = self.processor.low > max(self.wall.high, 1.0)
        return better or worse

    @property
    def contradictory(self) -> bool:
        """Return whether one clock says better and the other worse."""
        if self.processor is None:
            return False
        low, high = sorted((self.wall, self.processor), key=lambda each: each.value)
        return low.high < 1.0 < high.low

    @property
    def by_processor(self) -> bool:
        """Return whether processor time decides."""
        # Clearly: where both are about as precise, the clock is what the user asked for. And with some noise:
        # where processor time shows none, it ticks too seldom.
        clearer = self.processor is not None and 0 < self.processor.width < CLEARLY * self.wall.width
        return clearer and not self.clocks_disagree

    @property
    def ratio(self) -> Ratio:
        """The one that decides; where they contradict each other, an interval that holds both."""
        if self.processor is not None and self.contradictory:
            ends = (self.wall.low, self.wall.high, self.processor.low, self.processor.high)
            return Ratio(self.wall.value, min(ends), max(ends))
        return self.processor if self.processor is not None and self.by_processor else self.wall


NO_TIME = "no time left to measure it"


@dataclass(frozen=True)
class PairedSamples:
    """Measurements of a variant, paired with the baseline by process and round.

    Args:
        name: the variant's.
        values: the objective, by process, then by round; empty if any measurement failed, and if it was
            dropped. Of a variant that was conclusive early there are the first processes.
        samples: every sample of the objective, in the order measured.
        failures: what failed, if anything did.
        lost: how the processes were lost that measured it, where it was given up because of that.
        ratio: objective / baseline's objective; None where there are no values.
        verdict: against the baseline.
        processor: as `values`, made of processor time; empty where that does not show how long it takes.
        evidence: the ratio by both clocks; None where there is no ratio.
    """

    name: str
    values: tuple[tuple[float, ...], ...]
    samples: tuple[float, ...]
    failures: tuple[Failed, ...]
    ratio: Ratio | None
    verdict: Verdict
    processor: tuple[tuple[float, ...], ...] = ()
    evidence: Evidence | None = None
    lost: Lost | None = None

    @property
    def why(self) -> str:
        """Return why there are no values, in one line; empty where there are some."""
        if self.failures:
            return f"{self.failures[0].stage}: {self.failures[0].reason}"
        if self.lost:
            return self.lost.detail.partition("\n")[0]
        return "" if self.values else NO_TIME

    @property
    def median(self) -> float:
        """The median of the values; not a number if there are none."""
        return statistics.median([v for row in self.values for v in row]) if self.values else math.nan


def baseline_failed(failure: Failed) -> PlanishError:
    """Return the error of a comparison whose baseline failed."""
    return PlanishError(f"the baseline failed: {failure.stage}: {failure.reason}: {failure.detail}")


def tally(name: str, outcomes: Sequence[Sequence[Outcome]], objective: Objective) -> PairedSamples:
    """Collect what was measured of a variant by an objective; it is not judged yet.

    Args:
        name: the variant's.
        outcomes: by process, then by round, each with a value of the objective where it is measured; empty
            where there was no time.
        objective: which.
    """
    measure, flat = objective.name, [outcome for rounds in outcomes for outcome in rounds]
    rows = [[outcome for outcome in rounds if isinstance(outcome, Measured)] for rounds in outcomes]
    samples = tuple(s for row in rows for o in row for s in o.samples.get(measure, ()))
    failures = tuple(o for o in flat if isinstance(o, Failed))
    lost = next((o for o in flat if isinstance(o, Lost)), None)
    # One failure is enough: an intermittently wrong variant is disqualified.
    if failures or lost or not flat:
        return PairedSamples(
            name, (), samples, failures, None, "failed" if failures else "undecided", lost=lost
        )
    # By both or by one: rounds must be comparable among themselves.
    clock = by_processor_time(measure)
    if not all(o.samples.get(clock) for row in rows for o in row):
        values = tuple(tuple(o.values[measure] for o in row) for row in rows)
        return PairedSamples(name, values, samples, (), None, "same")
    values, processor = (
        tuple(tuple(statistics.median(o.samples[each]) for o in row) for row in rows)
        for each in (measure, clock)
    )
    return PairedSamples(name, values, samples, (), None, "same", processor)


def judged(
    sampled: PairedSamples, base: PairedSamples, objective: Objective, variants: int = 1
) -> PairedSamples:
    """Judge samples beside others, which were measured in the same processes and rounds.

    Args:
        sampled: unchanged where it has no values.
        base: what it is compared with.
        objective: by which both were measured.
        variants: how many are compared with it.
    """
    if not sampled.values or not base.values:
        return sampled
    processor = (
        ratio(sampled.processor, base.processor, variants) if sampled.processor and base.processor else None
    )
    evidence = Evidence(ratio(sampled.values, base.values, variants), processor)
    verdict = evidence.ratio.verdict(objective)
    return replace(sampled, ratio=evidence.ratio, verdict=verdict, evidence=evidence)
