"""Blocks of calls: long enough for the clock, and timed by two of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from planish.core import PlanishError

Runs = Callable[[int], object]
"""Makes n calls."""

_GROWTH = 10  # a block grows by no more at once: one short reading of the clock would mislead


_STILL = 1000
"""Calls in which every clock advances."""


class ClockError(PlanishError):
    """The clock does not advance, so nothing can be timed by it."""

    exit_code = 5


class Clocks(NamedTuple):
    """What tells how long something took.

    Args:
        wall: the time, in nanoseconds.
        processor: the processor time of this process, or of whoever does the work, in nanoseconds.
    """

    wall: Callable[[], int] = time.perf_counter_ns
    processor: Callable[[], int] = time.process_time_ns


CLOCKS = Clocks()
"""For what runs in this process."""


class Took(NamedTuple):
    """How long something took, in seconds, by each clock."""

    wall: float
    processor: float


def repeated(call: Callable[[], object]) -> Runs:
    """Turn one call into what makes n calls, as `time_call` takes it."""

    def run(calls: int) -> None:
        for _ in range(calls):
            call()

    return run


def timed(run: Runs, clocks: Clocks) -> Callable[[int], Took]:
    """Turn what makes n calls into what also tells how long they took, by both clocks."""

    def block(calls: int) -> Took:
        # The wall clock is read innermost: processor time is a system call, whose cost is not the block's.
        before, start = clocks.processor(), clocks.wall()
        run(calls)
        end, after = clocks.wall(), clocks.processor()
        return Took((end - start) * 1e-9, (after - before) * 1e-9)

    return block


def calls_of(block: Callable[[int], float], length: float) -> int:
    """Warm up, and give how many calls fill so many seconds.

    Args:
        block: makes n calls and gives the seconds they took.
        length: seconds to fill.
    """
    block(1)  # what is cold may take a thousand times as long, and does not tell how short a call is
    return filled(length, block)


def filled(length: float, block: Callable[[int], float]) -> int:
    """Find how many calls fill a block, which warms up; the last block is one of so many.

    Raises:
        ClockError: the clock does not advance.
    """
    calls, least = 1, block(1)  # of a call; one interruption shall not make short blocks look long enough
    while calls * least < length:
        # Twice as many at least, or the estimate would creep up on the length block by block.
        calls = math.ceil(calls * min(_GROWTH, max(2, length / max(calls * least, 1e-9))))
        took = block(calls)
        if took <= 0 and calls >= _STILL:
            raise ClockError(
                f"the clock does not advance: {calls} calls took {took:g} s",
                "Check the machine's clock source.",
            )
        least = min(least, took / calls)
    return calls
