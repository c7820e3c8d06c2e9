"""Deciding how an einsum is computed from now on: by the time of whole calls, in turns."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from planish.core import rng
from planish.einsum.contraction import Contraction
from planish.einsum.ways import Way
from planish.measure.blocks import block_of, repeated

Array = NDArray[Any]
Block = Callable[[int], float]
"""Makes n calls, and gives the seconds that they took."""

ROUNDS = 25
"""How often each way is timed at most; each time for `BLOCK_S`."""
LEAST_ROUNDS = 3
BLOCK_S = 1e-3
"""Long enough that threads of the way before, which still wait for work, are asleep for most of it."""
SAMPLE = 1 << 20
"""Multiplications of the part of an einsum that tells whether NumPy's own loop is worth a whole call."""
LONG_S = 0.02
"""A call of so many seconds shows at once how long it is."""
HOPELESS = 1.5
"""A way whose shortest call is so many times as long as the best one's is timed no further."""


def fastest(
    ways: Sequence[Way], contraction: Contraction, operands: Sequence[Array], seconds: float
) -> tuple[Way, Mapping[Way, Sequence[float]]]:
    """Find the way whose whole call takes the least time.

    Args:
        ways: NumPy's einsum first.
        contraction: what they compute.
        operands: to compute it of.
        seconds: to spend; every way that is not hopeless takes `LEAST_ROUNDS` blocks all the same.

    Returns:
        The way, and the seconds of a call in each round, by way; of those that are hopeless, those that
        showed it.
    """
    end = time.monotonic() + seconds
    own, *others = ways
    blocks = {way: _block(way, operands) for way in others}
    least = {way: _least(block) for way, block in blocks.items()}
    best = min(least.values(), default=math.inf)
    by_part = _seconds_by_part(own, contraction, operands)
    if by_part < HOPELESS * best:
        blocks[own] = _block(own, operands)
        best = min(best, by_part)
    least[own] = by_part
    kept = {way: blocks[way] for way in blocks if least[way] <= max(HOPELESS * best, BLOCK_S)}
    known = {way: [seconds] for way, seconds in least.items()}
    if len(kept) == 1:
        return next(iter(kept)), known
    samples = _in_turns(kept, {way: math.ceil(BLOCK_S / least[way]) for way in kept}, end)
    return min(samples, key=lambda way: statistics.median(samples[way])), {**known, **samples}


def _least(block: Block) -> float:
    """Give the seconds of a short call; one that takes long is made once."""
    first = block(1)
    return min([first, *(block(1) for _ in range(4 if first < LONG_S else 0))])


def _block(way: Way, operands: Sequence[Array]) -> Block:
    call = way.call
    return block_of(repeated(lambda: call(*operands)), time.perf_counter_ns)


def _in_turns(
    blocks: Mapping[Way, Block], calls: Mapping[Way, int], end: float
) -> Mapping[Way, Sequence[float]]:
    """Time each by turns, in an order that differs from round to round."""
    samples: dict[Way, list[float]] = {way: [] for way in blocks}
    ways = list(blocks)
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for place in rng(0, number).permutation(len(ways)).tolist():
            way = ways[place]
            if calls[way] > 1:
                blocks[way](1)  # wakes its threads
            samples[way].append(blocks[way](calls[way]) / calls[way])
    return samples


def _seconds_by_part(way: Way, contraction: Contraction, operands: Sequence[Array]) -> float:
    """Estimate a call from one on a part of the operands: NumPy's loop may take minutes for all of them."""
    sizes = dict(contraction.sizes)
    whole = math.prod(sizes.values())
    while math.prod(sizes.values()) > SAMPLE:
        longest = max(sizes, key=lambda letter: sizes[letter])
        sizes[longest] = -(-sizes[longest] // 2)
    parts = [
        array[tuple(slice(sizes[letter]) for letter in term)]
        for array, term in zip(operands, contraction.terms, strict=True)
    ]
    block = _block(way, parts)
    block(1)
    return min(block(1) for _ in range(3)) * whole / math.prod(sizes.values())
