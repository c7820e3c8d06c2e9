"""Selection of an einsum's backend by the time of whole calls, interleaved with each other."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from planish.core import rng
from planish.einsum.backends import Contraction, Way
from planish.measure import Clocks, repeated, runqueue_delay, wait_for_idle_threads
from planish.measure.intervals import ratio
from planish.measure.timing import Took, timed

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
    delayed, ran = runqueue_delay(), [time.process_time(), time.thread_time()]
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS + (turn == 1) and time.monotonic() > end:
            break
        if number and several and delayed() > DISTURBED:
            break  # there is nothing to learn
        wait_for_idle_threads(REST_S)
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
    """Return each way so many times, in an order that differs from time to time."""
    drawn = rng(0, number)
    return [ways[place] for _ in range(times) for place in drawn.permutation(len(ways)).tolist()]


SAMPLE = 1 << 20
"""Multiplications of the part of an einsum that tells whether NumPy's own loop is worth a whole call."""
PAUSE_S = 2 * BLOCK_S
"""The threads of a kernel wait for work no longer: those of the next way would have to wait for them."""
LONG_S = 0.02
"""A call of so many seconds shows at once how long it is."""
HOPELESS = 1.5
"""A way whose shortest call is so many times as long as the best one's is timed no further."""
WORTH = 0.97
"""A kernel that takes more than this share of the time of NumPy's best way is not taken: it may be luck."""
DOUBT = 2
"""On a busy machine NumPy's loop is taken where it seems so many times as fast as its multiplication."""


@dataclass(frozen=True)
class Choice:
    """What is taken.

    Args:
        way: the fastest; NumPy's better one where that is in doubt.
        samples: seconds of a call in each block, by way; of those that are hopeless, what showed it.
        sure: whether it holds from now on. It does not where others disturbed the comparison.
    """

    way: Way
    samples: Mapping[Way, Sequence[float]]
    sure: bool = True


def fastest(
    ways: Sequence[Way], contraction: Contraction, operands: Sequence[Array], seconds: float
) -> Choice:
    """Find the way whose whole call takes the least time.

    Args:
        ways: NumPy's einsum first.
        contraction: what they compute.
        operands: to compute it of.
        seconds: to spend; every way that is not hopeless takes a few blocks all the same.
    """
    end = time.monotonic() + seconds
    wait_for_idle_threads(REST_S)  # the caller may have multiplied just now
    delayed = runqueue_delay()
    # Kernels first: after a multiplication, OpenBLAS's threads still look for work.
    own, *others = sorted(ways, key=lambda way: (way is not ways[0], way.name != "kernel"))
    blocks = {way: block_of_calls(way, operands) for way in others}
    shortest = {way: _least(block, after_s=PAUSE_S) for way, block in blocks.items()}
    by_part = _seconds_by_part(own, contraction, operands)
    least = {**{way: took.wall for way, took in shortest.items()}, own: by_part}
    processor = {**{way: [took.processor] for way, took in shortest.items()}, own: [by_part]}
    best = min(least.values())
    if by_part < HOPELESS * best:
        blocks[own] = block_of_calls(own, operands)
    kept = {way: blocks[way] for way in blocks if least[way] <= max(HOPELESS * best, BLOCK_S)}
    known = {way: [seconds] for way, seconds in least.items()}
    before = delayed()
    numpys = _numpys((way for way in ways if way.name != "kernel"), processor)
    if not _kernels(ways):
        return Choice(numpys if before > DISTURBED else _best(kept, known), known)
    if before > DISTURBED:
        # What several cores do says nothing now; what one core does, processor time tells.
        one = {way: block for way, block in blocks.items() if way.cores == 1}
        most = max(HOPELESS * min(least[way] for way in one), BLOCK_S)
        kept = {way: block for way, block in one.items() if way.name != "kernel" or least[way] <= most}
        if not _kernels(kept):
            return Choice(numpys, known, sure=all(way.cores == 1 for way in ways))
    if len(kept) == 1:
        return Choice(next(iter(kept)), known)
    return decide(_compared(kept, least, end), known, before)


def decide(found: CallComparison, known: Mapping[Way, Sequence[float]], before: float = 0.0) -> Choice:
    """Choose by a comparison: a kernel only where it is clearly better, NumPy's way in doubt.

    A comparison that others disturbed counts where one core does all the work, by processor time. Where only
    NumPy's way uses several, a kernel is taken for now whose processor time is below the best that NumPy did.

    Args:
        found: of the ways that are not hopeless.
        known: seconds of a call of each way, as they were seen first.
        before: the share of the time in which a thread had no core when they were.
    """
    disturbed = max(found.delayed, before) > DISTURBED
    samples = found.processor if disturbed and found.one_core else found.wall
    seen = {**known, **samples}
    kernels = _kernels(samples)
    others = [way for way in samples if way not in kernels]
    if not (kernels and others):
        return Choice(_best(samples, samples), seen)
    kernel = _best(kernels, samples)
    numpys = _numpys(others, found.processor) if disturbed else _best(others, samples)
    over = ratio([samples[kernel]], [samples[numpys]])
    if not disturbed:
        return Choice(kernel if over.value < WORTH else numpys, seen)
    if found.one_core and over.high < 1:
        return Choice(kernel, seen)
    ahead = None if found.one_core else _ahead(kernels, others, found)
    if ahead is not None:
        return Choice(ahead, seen, sure=False)
    return Choice(numpys, seen, sure=found.one_core and over.low > WORTH)


def _ahead(kernels: Iterable[Way], numpys: Iterable[Way], found: CallComparison) -> Way | None:
    """Give the kernel on one core that takes less than the best block of NumPy's threads, if there is one."""
    shortest = min(min(found.wall[way]) for way in numpys)
    took = {way: statistics.median(found.processor[way]) for way in kernels if way.cores == 1}
    best = min(took, key=lambda way: took[way], default=None)
    return best if best is not None and took[best] < WORTH * shortest else None


def _kernels(ways: Iterable[Way]) -> Sequence[Way]:
    return [way for way in ways if way.name == "kernel"]


def _best(ways: Iterable[Way], samples: Mapping[Way, Sequence[float]]) -> Way:
    return min(ways, key=lambda way: statistics.median(samples[way]))


def _numpys(ways: Iterable[Way], processor: Mapping[Way, Sequence[float]]) -> Way:
    """Give NumPy's better way by the calling thread's processor time: its multiplication where that is near.

    The thread's share of a multiplication tells roughly how long that takes on cores that nobody else wants.
    """
    return min(
        ways, key=lambda way: (DOUBT if way.name == "einsum" else 1) * statistics.median(processor[way])
    )


def _compared(blocks: Mapping[Way, Block], least: Mapping[Way, float], end: float) -> CallComparison:
    calls = {way: math.ceil(BLOCK_S / least[way]) for way in blocks}
    longest = max(BLOCK_S, *(least[way] for way in blocks))
    return compare(blocks, calls, max(1, min(BLOCKS, int(TURN_S / longest))), end)


def _least(block: Block, after_s: float) -> Took:
    """Return the seconds of a short call by each clock, after a pause; one that takes long is made once."""
    time.sleep(after_s)
    first = block(1)
    found = [first, *(block(1) for _ in range(4 if first.wall < LONG_S else 0))]
    return Took(min(took.wall for took in found), min(took.processor for took in found))


def _seconds_by_part(way: Way, contraction: Contraction, operands: Sequence[Array]) -> float:
    """Estimate a call from one on a part of the operands: NumPy's loop may take minutes for all of them.

    One core does it, and processor time tells it however busy the machine is.
    """
    sizes = dict(contraction.sizes)
    whole = math.prod(sizes.values())
    while math.prod(sizes.values()) > SAMPLE:
        longest = max(sizes, key=lambda letter: sizes[letter])
        sizes[longest] = -(-sizes[longest] // 2)
    parts = [
        array[tuple(slice(sizes[letter]) for letter in term)]
        for array, term in zip(operands, contraction.terms, strict=True)
    ]
    block = block_of_calls(way, parts)
    block(1)  # warms up
    return min(block(1).processor for _ in range(3)) * whole / math.prod(sizes.values())
