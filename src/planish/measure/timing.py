"""The timing protocol: warm-up, then repeated blocks, each long enough for the clock.

A sample is the mean time of a call in one block of calls. The statistic is the median of the
samples: a block during which the system did something else moves it little. All samples are kept.
"""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Runs = Callable[[int], object]
"""Makes n calls."""

_GROWTH = 10  # a block grows by no more at once: one short reading of the clock would mislead
_LONG = 10  # a first call of so many blocks is as telling as a later one


@dataclass(frozen=True)
class Timing:
    """How long to measure.

    The clock and the call from Python cost some 0.4 microseconds a block; in the shortest block of
    100 microseconds that is under half a percent.

    Args:
        budget_s: seconds to spend on one candidate, the warm-up too; a candidate with slow calls may
            take more, to have the fewest samples.
        block_s: seconds that a block lasts at least.
        fewest: samples to take at least.
        most: samples to take at most; blocks grow longer where the budget allows more.
        slow_factor: a candidate so many times slower than the best one so far is measured no further.
    """

    budget_s: float = 2e-3
    block_s: float = 1e-4
    fewest: int = 2
    most: int = 100
    slow_factor: float = 3.0


SEARCH_TIMING = Timing()
FINAL_TIMING = Timing(budget_s=0.05, fewest=5)


@dataclass(frozen=True)
class Samples:
    """The times of one candidate.

    Args:
        seconds: mean seconds of a call, for each block, in the order measured.
        calls: calls in a block.
        cut: whether measuring was ended early, because the candidate is slow.
    """

    seconds: tuple[float, ...]
    calls: int
    cut: bool = False

    @property
    def median(self) -> float:
        """The statistic: median seconds of a call."""
        return statistics.median(self.seconds)


Timer = Callable[[Runs], Samples]
"""A way to time."""


def time_call(
    run: Runs,
    timing: Timing = SEARCH_TIMING,
    best_s: float = math.inf,
    now: Callable[[], int] = time.perf_counter_ns,
) -> Samples:
    """Measure how long a call takes.

    Enter the stage "run" first: it keeps other timed runs off the machine.

    Args:
        run: native code that loops has the least overhead.
        timing: how long to measure.
        best_s: the best candidate's seconds a call.
        now: the clock, in nanoseconds.

    Returns:
        The samples. The first call is none of them, unless it was long and showed by itself that the
        candidate is slow.
    """

    block = block_of(run, now)
    end = now() + timing.budget_s * 1e9
    length = max(timing.block_s, timing.budget_s / timing.most)
    slow = timing.slow_factor * best_s
    first = block(1)
    if first > max(slow, _LONG * timing.block_s):
        return Samples((first,), 1, cut=True)
    calls, took = _filled(length, block)
    seconds = [took / calls]
    while min(seconds) <= slow:
        if len(seconds) >= timing.fewest and (now() >= end or len(seconds) >= timing.most):
            return Samples(tuple(seconds), calls)
        seconds.append(block(calls) / calls)
    return Samples(tuple(seconds), calls, cut=True)


def repeated(call: Callable[[], object]) -> Runs:
    """Make of a call what `time_call` runs."""

    def run(calls: int) -> None:
        for _ in range(calls):
            call()

    return run


def block_of(run: Runs, now: Callable[[], int]) -> Callable[[int], float]:
    """Make of what makes n calls what gives the seconds that they took."""

    def block(calls: int) -> float:
        start = now()
        run(calls)
        return (now() - start) * 1e-9

    return block


def calls_of(block: Callable[[int], float], length: float) -> int:
    """Warm up, and give how many calls fill so many seconds."""
    block(1)  # what is cold may take a thousand times as long, and does not tell how short a call is
    return _filled(length, block)[0]


def _filled(length: float, block: Callable[[int], float]) -> tuple[int, float]:
    """Find how many calls fill a block, which warms up; give them and the seconds that they took.

    Args:
        length: seconds to fill.
        block: makes n calls and gives the seconds they took.
    """
    calls, took = 1, block(1)
    least = took  # of a call; one interruption shall not make short blocks look long enough
    while calls * least < length:
        calls = math.ceil(calls * min(_GROWTH, max(2, length / max(calls * least, 1e-9))))
        took = block(calls)
        least = min(least, took / calls)
    return calls, took
