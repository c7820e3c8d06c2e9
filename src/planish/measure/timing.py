"""The timing protocol: warm-up, then repeated blocks, each long enough for the clock.

A sample is the mean time of a call in one block of calls. The statistic is the median of the
samples: a block during which the system did something else moves it little. All samples are kept.

Beside the time by the clock each block has its processor time. On a machine that others keep busy, a call
that lasts for longer than the system lets a process run (some 3 ms) takes now once, now three times as long
by the clock; its processor time varies by some percent. So what is to be spent on a candidate is counted
without what others did on its core, and where a block waited more are taken, until most did not.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planish.measure.samples import Samples
from planish.measure.timed_blocks import CLOCKS, Clocks, Runs, Took, filled, timed

_LONG = 10  # a first call of so many blocks is as telling as a later one
_WAITED = 1.5  # a block that lasted so many times as long as the processor worked on it had to wait
_PATIENCE = 20  # budgets by the clock, after which even blocks that waited must do


@dataclass(frozen=True)
class Timing:
    """How long to measure.

    The clock and the call from Python cost some 0.4 microseconds a block; in the shortest block of
    100 microseconds that is under half a percent.

    Args:
        budget_s: seconds of its own to spend on one candidate, the warm-up too; a candidate with slow calls
            may take more, to have the fewest samples.
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


Timer = Callable[[Runs], Samples]
"""A way to time."""


def time_call(
    run: Runs,
    timing: Timing = SEARCH_TIMING,
    best_s: float = math.inf,
    clocks: Clocks = CLOCKS,
) -> Samples:
    """Measure how long a call takes.

    Enter the stage "run" first: it keeps other timed runs off the machine.

    Args:
        run: native code that loops has the least overhead.
        timing: how long to measure.
        best_s: the best candidate's seconds a call.
        clocks: by which.

    Returns:
        The samples. The first call is none of them, unless it was long and showed by itself that the
        candidate is slow.
    """

    block, taken = timed(run, clocks), list[Took]()
    spent = 0.0

    def own(calls: int) -> float:
        nonlocal spent
        taken.append(block(calls))
        spent += _own(taken[-1])
        return _own(taken[-1])

    def over() -> bool:
        if len(taken) >= timing.most or clocks.wall() >= end:
            return True
        # One of two that waited would move their median by half of its wait.
        return spent >= timing.budget_s and 2 * sum(map(_waited, taken)) < len(taken)

    end = clocks.wall() + _PATIENCE * timing.budget_s * 1e9
    # Longer blocks where the budget would buy more samples than are of use.
    length = max(timing.block_s, timing.budget_s / timing.most)
    slow = timing.slow_factor * best_s
    own(1)
    # A slow candidate costs one call: to warm it up would take most of a search's time where most are slow.
    if _own(taken[-1]) > max(slow, _LONG * timing.block_s):
        return _samples(taken, 1, cut=True)
    calls = filled(length, own)
    del taken[:-1]  # of shorter blocks than the others
    # By the quickest block, for noise only adds time; by one alone it may: after a wait the caches are cold.
    while len(taken) < timing.fewest or min(map(_own, taken)) <= slow * calls:
        # The fewest even beyond the budget: of one sample nobody knows whether it was disturbed.
        if len(taken) >= timing.fewest and over():
            return _samples(taken, calls)
        own(calls)
    return _samples(taken, calls, cut=True)


def _waited(took: Took) -> bool:
    return took.wall > _WAITED * _own(took)


def _own(took: Took) -> float:
    """Give what a block took without what others did on its core meanwhile.

    A process that has to wait for its turn once, some milliseconds, must not look slow for that. Several
    threads have more processor time than the clock shows.
    """
    return min(took.wall, took.processor) if took.processor > 0 else took.wall


def _samples(blocks: Sequence[Took], calls: int, *, cut: bool = False) -> Samples:
    seconds, processor = (tuple(took / calls for took in clock) for clock in zip(*blocks, strict=True))
    # A clock that ticks seldom shows nothing of a short block.
    return Samples(seconds, calls, cut, processor if min(processor) > 0 else ())
