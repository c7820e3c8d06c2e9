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
from planish.measure.timing import block_of, calls_of, repeated

Array = NDArray[Any]

ROUNDS = 15
"""How often each way is timed at most; each time for `BLOCK_S`."""
LEAST_ROUNDS = 3
BLOCK_S = 1e-3
"""Long enough that threads of the way before, which still wait for work, are asleep for most of it."""
SAMPLE = 1 << 20
"""Multiplications of the part of an einsum that tells whether NumPy's own loop is worth a whole call."""
HOPELESS = 2.0
"""A way that is so many times slower than the best is timed no further."""


def fastest(
    ways: Sequence[Way], contraction: Contraction, operands: Sequence[Array], seconds: float
) -> tuple[Way, Mapping[str, list[float]]]:
    """Find the way whose whole call takes the least time.

    Args:
        ways: NumPy's einsum first.
        contraction: what they compute.
        operands: to compute it of.
        seconds: to spend; every way that is not hopeless takes `LEAST_ROUNDS` blocks all the same.

    Returns:
        The way, and the seconds of a call in each round, by the ways' names and cores.
    """
    own, *others = ways
    end = time.monotonic() + seconds
    blocks = {label(way): _block(way, operands) for way in others}
    first = {name: block(1) for name, block in blocks.items()}
    best = min(first.values(), default=math.inf)
    if _seconds_by_part(own, contraction, operands) < HOPELESS * best:
        blocks[label(own)] = _block(own, operands)
    calls = {
        name: calls_of(block, BLOCK_S)
        for name, block in blocks.items()
        if first.get(name, 0.0) < HOPELESS * max(best, BLOCK_S)
    }
    samples = _in_turns({name: blocks[name] for name in calls}, calls, end)
    chosen = min(samples, key=lambda name: statistics.median(samples[name]))
    return next(way for way in ways if label(way) == chosen), samples


def label(way: Way) -> str:
    """Name a way among others."""
    schedule = f" {way.candidate.hash[:8]}" if way.candidate else ""
    return f"{way.name}{schedule} on {way.cores}"


def _block(way: Way, operands: Sequence[Array]) -> Callable[[int], float]:
    call = way.call
    return block_of(repeated(lambda: call(*operands)), time.perf_counter_ns)


def _in_turns(
    blocks: Mapping[str, Callable[[int], float]], calls: Mapping[str, int], end: float
) -> dict[str, list[float]]:
    """Time each by turns, in an order that differs from round to round."""
    samples: dict[str, list[float]] = {name: [] for name in blocks}
    names = list(blocks)
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for place in rng(0, number).permutation(len(names)).tolist():
            name = names[place]
            if calls[name] > 1:
                blocks[name](1)  # wakes its threads
            samples[name].append(blocks[name](calls[name]) / calls[name])
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
