"""Plan of a network's memory: which bytes of one arena each tensor has, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

ALIGNMENT = 64
"""Alignment of each tensor, in bytes."""


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


def align_up(value: int, alignment: int = ALIGNMENT) -> int:
    """Return the next multiple of an alignment, from a size or an address on."""
    return -(-value // alignment) * alignment


TRIES = 200
"""Orders that are tried at most."""
PLACEMENTS = 20_000
"""Tensors that are placed at most, in all tries together: some tenths of a second."""


def plan_arena(lifetimes: Sequence[Lifetime], overwrites: Mapping[str, str] | None = None) -> Arena:
    """Place tensors so that those that live at the same time do not overlap, in little memory.

    Args:
        lifetimes: of all tensors.
        overwrites: names of tensors that may be written into the memory of another one of their size, at the
            last step of that one, and the names of these. A plan without that is taken where it is smaller.
    """
    if not overwrites:
        return _plan(lifetimes)
    owners, merged = dict[str, str](), dict[str, Lifetime]()
    for each in sorted(lifetimes, key=lambda each: each.first):
        owner = owners[each.name] = owners.get(overwrites.get(each.name, ""), each.name)
        merged[owner] = replace(merged.get(owner, each), last=each.last)
    plan = _plan(list(merged.values()))
    plan = replace(plan, offsets={name: plan.offsets[owner] for name, owner in owners.items()})
    return plan if plan.size == plan.least else min(plan, _plan(lifetimes), key=lambda each: each.size)


def _plan(lifetimes: Sequence[Lifetime]) -> Arena:
    """Place tensors, each in memory of its own as long as it lives.

    They are placed one by one, each in the smallest gap that is large enough. The order decides: first the
    largest, or those of the steps that need most, come first; then what ends highest is placed before all
    others, again and again, while that is not known to be in vain.
    """
    steps = range(max((each.last for each in lifetimes), default=0) + 1)
    needs = [sum(align_up(e.size) for e in lifetimes if e.first <= s <= e.last) for s in steps]
    least = max(needs, default=0)
    beside = [
        [j for j, other in enumerate(lifetimes) if j != i and _at_once(each, other)]
        for i, each in enumerate(lifetimes)
    ]
    numbers = range(len(lifetimes))
    widest = [max(needs[each.first : each.last + 1]) for each in lifetimes]
    orders = [
        sorted(numbers, key=lambda i: (-lifetimes[i].size, lifetimes[i].first)),
        sorted(numbers, key=lambda i: (-widest[i], -lifetimes[i].size)),
    ]
    best, best_size = list[int](), -1
    for order in orders:
        for _ in range(min(TRIES, max(1, PLACEMENTS // max(1, len(lifetimes))))):
            offsets = _place(order, lifetimes, beside)
            ends = [offset + align_up(each.size) for offset, each in zip(offsets, lifetimes, strict=True)]
            size = max(ends, default=0)
            if best_size < 0 or size < best_size:
                best, best_size = offsets, size
            if size == least:
                break
            highest = ends.index(size)
            if order[0] == highest:
                break
            order.remove(highest)
            order.insert(0, highest)
    return Arena({each.name: offset for each, offset in zip(lifetimes, best, strict=True)}, best_size, least)


def _at_once(one: Lifetime, other: Lifetime) -> bool:
    return one.first <= other.last and other.first <= one.last


def _place(order: Sequence[int], lifetimes: Sequence[Lifetime], beside: Sequence[Sequence[int]]) -> list[int]:
    """Place tensors in an order; return the offset of each."""
    offsets = [-1] * len(lifetimes)
    for number in order:
        taken = sorted(
            (offsets[other], offsets[other] + align_up(lifetimes[other].size))
            for other in beside[number]
            if offsets[other] >= 0
        )
        # The smallest gap that is large enough: larger ones stay for others.
        gaps, end, size = list[tuple[int, int]](), 0, align_up(lifetimes[number].size)
        for start, after in taken:
            if start - end >= size:
                gaps.append((start - end, end))
            end = max(end, after)
        offsets[number] = min(gaps)[1] if gaps else end
    return offsets
