"""Plan of a network's memory: which bytes of one arena each tensor has, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ALIGNMENT = 64
"""Each tensor begins at a multiple of so many bytes."""


@dataclass(frozen=True)
class Lifetime:
    """Bytes that are needed for some steps.

    Args:
        name: of what needs them.
        size: in bytes.
        first: the step that writes them.
        last: the last step that reads them.
    """

    name: str
    size: int
    first: int
    last: int


@dataclass(frozen=True)
class Arena:
    """Offsets in one block of memory.

    Args:
        offsets: name to byte.
        size: of the block, in bytes.
        least: bytes that are needed at the same time at some step: no plan takes less.
    """

    offsets: Mapping[str, int]
    size: int
    least: int


def rounded(size: int) -> int:
    """Return a size up to the next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def plan_arena(lifetimes: Sequence[Lifetime]) -> Arena:
    """Place tensors so that those that live at the same time do not overlap; the largest are placed first."""
    placed, offsets = list[tuple[int, Lifetime]](), dict[str, int]()
    for each in sorted(lifetimes, key=lambda each: (-each.size, each.first)):
        beside = sorted(
            (start, start + rounded(other.size))
            for start, other in placed
            if other.first <= each.last and each.first <= other.last
        )
        # The smallest gap that is large enough: larger ones stay for others.
        gaps, end = list[tuple[int, int]](), 0
        for start, behind in beside:
            if start - end >= rounded(each.size):
                gaps.append((start - end, end))
            end = max(end, behind)
        offset = min(gaps)[1] if gaps else end
        offsets[each.name] = offset
        placed.append((offset, each))
    steps = range(max((each.last for each in lifetimes), default=0) + 1)
    least = max((sum(rounded(e.size) for e in lifetimes if e.first <= s <= e.last) for s in steps), default=0)
    size = max((offset + rounded(each.size) for offset, each in placed), default=0)
    return Arena(offsets, size, least)
