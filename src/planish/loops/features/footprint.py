"""How many elements of a buffer a part of a loop tree touches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import NamedTuple


class Footprint(NamedTuple):
    """Elements of a buffer, `unit` apart or a multiple of it.

    Args:
        elements: how many they are; where loops move a reference onto elements it was at before, in a way
            that leaves gaps, perhaps fewer.
        low: the first.
        high: the last.
        unit: 0 for a single element.
    """

    elements: int
    low: int
    high: int
    unit: int


def footprint(offset: int, moves: Sequence[tuple[int, int]]) -> Footprint:
    """Give what a reference touches.

    Args:
        offset: where it begins.
        moves: for each loop that moves it, (elements a step, steps), in any order.
    """
    count, span, unit = 1, 0, 0
    # The smallest strides first: what they reach is a piece, dense or not, that the next one repeats.
    for stride, steps in sorted([(abs(stride), steps) for stride, steps in moves if steps > 1]):
        # All that is touched lies at multiples of the strides' greatest common divisor.
        joined = gcd(unit, stride)
        dense = span // joined + 1 == count and stride <= span + joined
        span += stride * (steps - 1)
        # Pieces that overlap or touch are one piece; else each is new, as far as there is room.
        count = span // joined + 1 if dense else min(count * steps, span // joined + 1)
        unit = joined
    low = offset + sum([stride * (steps - 1) for stride, steps in moves if stride < 0])
    return Footprint(count, low, low + span, unit)


def union(parts: Iterable[Footprint]) -> int:
    """Count the elements of several references together; at most, where they overlap."""
    found = list(dict.fromkeys(parts))
    if len(found) == 1:
        return found[0].elements
    low, high = min([part.low for part in found]), max([part.high for part in found])
    unit = gcd(*[part.unit for part in found], *[part.low - low for part in found])
    room = (high - low) // unit + 1 if unit else 1
    # No more than there is room for, where they overlap.
    return min(sum([part.elements for part in found]), room)
