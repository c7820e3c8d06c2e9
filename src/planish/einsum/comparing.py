"""Whole calls of several ways, timed by turns, so that what disturbs them hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from planish.core import rng
from planish.einsum.ways import Way
from planish.measure import Clocks, delayed_since, repeated, rest
from planish.measure.timed_blocks import Took, timed

Array = NDArray[Any]
Block = Callable[[int], Took]
"""Makes n calls, and tells how long they took."""

ROUNDS = 12
"""How often the ways are timed by turns at most."""
LEAST_ROUNDS = 2
BLOCKS = 4
"""Times that each way is timed in a round, where calls are short; each time for `BLOCK_S`."""
BLOCK_S = 1e-3
"""Long enough that a kernel's threads, which still wait for work, are asleep for most of it."""
TURN_S = 0.01
"""A way's blocks of a round take no longer, unless a single call does; there are more rounds then."""
REST_S = 0.15
"""OpenBLAS's threads look for work no longer after a multiplication."""
SHARED = 1.2
"""Where the process uses so many times the processor time of the calling thread, several cores work."""

DISTURBED = 0.1
"""Where a thread had no core for so great a share of the time, the clock tells who had to wait."""


@dataclass(frozen=True)
class CallComparison:
    """How long calls took.

    Args:
        wall: seconds of a call in each block, by way; as many for each way, those at one place are of
            neighbouring moments.
        processor: the same by the calling thread's processor time.
        delayed: the share of the time in which a thread of this process had no core, because of others.
        one_core: whether the calling thread did all the work; its processor time tells how long that takes.
    """

    wall: Mapping[Way, Sequence[float]]
    processor: Mapping[Way, Sequence[float]]
    delayed: float
    one_core: bool


def block_of_calls(way: Way, operands: Sequence[Array]) -> Block:
    """Make of a way what times calls of it."""
    call = way.call
    return timed(repeated(lambda: call(*operands)), Clocks(time.perf_counter_ns, time.thread_time_ns))


def compare(blocks: Mapping[Way, Block], calls: Mapping[Way, int], turn: int, end: float) -> CallComparison:
    """Time ways by turns: kernels first, then NumPy's, whose threads go to sleep before the next round.

    Args:
        blocks: what times a way.
        calls: how many are timed at once.
        turn: blocks of each way in a round.
        end: begin no round later, by the monotonic clock; there are a few in any case.
    """
    wall: dict[Way, list[float]] = {way: [] for way in blocks}
    processor: dict[Way, list[float]] = {way: [] for way in blocks}
    kernels = [way for way in blocks if way.name == "kernel"]
    several = any(way.cores > 1 for way in kernels)
    groups = (kernels, [way for way in blocks if way not in kernels])
    delayed, ran = delayed_since(), [time.process_time(), time.thread_time()]
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS + (turn == 1) and time.monotonic() > end:
            break
        if number and several and delayed() > DISTURBED:
            break  # there is nothing to learn
        rest(REST_S)
        for group in groups:
            for way in _by_turns(group, turn, number):
                if calls[way] > 1:
                    blocks[way](1)  # wakes its threads
                took = blocks[way](calls[way])
                wall[way].append(took.wall / calls[way])
                processor[way].append(took.processor / calls[way])
    whole, own = time.process_time() - ran[0], time.thread_time() - ran[1]
    one_core = whole <= SHARED * own and not several
    return CallComparison(wall, processor, delayed(), one_core)


def _by_turns(ways: Sequence[Way], times: int, number: int) -> Sequence[Way]:
    """Give each way so many times, in an order that differs from time to time."""
    drawn = rng(0, number)
    return [ways[place] for _ in range(times) for place in drawn.permutation(len(ways)).tolist()]
