"""What memory makes of a nest: operands scattered over pages, streamed once, or in each other's way.

As `planish.loops.space.estimate`, it only ranks and tells what to try first.
"""

from __future__ import annotations

from math import gcd, prod

from planish.loops.space.facts import Facts, Moves

PAGE = 4096
"""Bytes of a page; lines as far apart as that share a set of the first cache, too."""
PAGES_NEAR = 96
"""Pages whose addresses the processor has at hand, in its first-level TLB."""
WAYS = 10
"""Lines of one set that stay in the first-level cache beside what flows through it."""
SHARE = 1 / 6
"""The share of the second-level cache that a panel may take."""
REUSES = 192
"""An operand that is used less often is not worth a copy."""

REDUCE_TILES = (64, 128, 256, 512, 1024)
"""Steps of a reduction that is split for a cache."""
SECOND_CACHE = 1 << 20
"""A usual size, in bytes, for a target that does not tell its own."""


def second_cache(facts: Facts) -> int:
    """Bytes of the target's second cache."""
    cache = facts.machine.cache(2)
    return cache.size if cache else SECOND_CACHE


def item_bytes(facts: Facts) -> int:
    """Bytes of an element."""
    return facts.vector_bytes // facts.lanes


def is_scattered(facts: Facts, operand: Moves, vector: str) -> bool:
    """Tell whether a reduction walks an operand over so many pages that a packed copy pays.

    It is so for the rows of large matrices: each vector of a column of tiles lies on a page of its own.
    """
    return _wanders(facts, operand, vector) and _reuses(facts, operand) >= REUSES


def _wanders(facts: Facts, operand: Moves, vector: str) -> bool:
    """Tell whether a reduction walks an operand, which could be packed, over many pages."""
    # What the vector axis does not walk in sequence is packed for that reason, if at all.
    if operand.strides.get(vector) != 1 or not operand.single or vector not in operand.alone:
        return False
    pages = 1.0
    for axis in facts.reduced_axes:
        apart = operand.strides.get(axis, 0) * item_bytes(facts)
        if axis != vector and apart:
            # Steps shorter than a page share one.
            pages *= max(1.0, facts.size[axis] * min(1.0, apart / PAGE))
    return pages > PAGES_NEAR


def is_large(facts: Facts, operand: Moves) -> bool:
    """Tell whether an operand does not fit the second cache."""
    return operand.elements * item_bytes(facts) > second_cache(facts)


def is_beyond(facts: Facts, operand: Moves) -> bool:
    """Tell whether an operand's copy with edges is too large for the second cache, unless made in parts."""
    return operand.padded and operand.single and is_large(facts, operand)


def spilled(facts: Facts, operand: Moves, vector: str, vectors: int) -> float:
    """Give which share of the second cache a register tile's panel takes, beyond what does no harm."""
    if not _wanders(facts, operand, vector) or _reuses(facts, operand) <= 1:
        return 0.0
    steps = prod(facts.size[axis] for axis in facts.reduced_axes if axis in operand.strides)
    return max(0.0, steps * vectors * facts.vector_bytes / second_cache(facts) - SHARE)


def is_memory_bound(facts: Facts) -> bool:
    """Tell whether memory sets a nest's pace: what it touches is used about once, and fits no near cache."""
    touched = sum(moves.elements for moves in (*facts.operands, facts.output))
    return prod(facts.size.values()) <= touched and touched * item_bytes(facts) > second_cache(facts)


def is_beyond_caches(facts: Facts) -> bool:
    """Tell whether a nest without reductions writes more than the largest known cache holds."""
    largest = max((cache.size for cache in facts.machine.caches), default=None)
    written = facts.output.elements * item_bytes(facts)
    return largest is not None and not facts.reduced_axes and written > largest


def streamed(facts: Facts, vector: str) -> str | None:
    """Find the reduced axis to walk a few rows at a time, where a matrix that is used once is read by rows.

    The results, which each row adds to, stay in a cache; a column of tiles would read a piece of every row.
    """
    for operand in facts.operands:
        if operand.strides.get(vector) != 1 or _reuses(facts, operand) > 1:
            continue
        if not is_large(facts, operand) or len(facts.reduced_axes) != 1:
            continue
        axis = facts.reduced_axes[0]
        if axis != vector and operand.strides.get(axis, 0) * item_bytes(facts) >= PAGE // 4:
            return axis
    return None


def slab(facts: Facts, vector: str) -> tuple[str, int] | None:
    """Find the split of a reduction that goes outside all else, where what all panels read is too large.

    Each panel of a tensor that vectors are loaded from is multiplied by all of another tensor. If that does
    not stay in the third cache, it comes from memory for each panel; its columns of one split do stay.

    Returns:
        A reduced axis and a step; None where everything stays, or nothing would.
    """
    cache, axes = facts.machine.cache(3), [axis for axis in facts.reduced_axes if axis != vector]
    if cache is None or not axes:
        return None
    axis, most = max(axes, key=lambda each: facts.size[each]), cache.size / 2
    panels = {each for m in facts.operands if vector in m.strides for each in m.strides}
    for operand in facts.operands:
        if vector not in operand.strides and axis in operand.strides:
            # What moves both, as the number of a batch, is outside, and counts for neither.
            moved = [each for each in operand.strides if each in facts.reduced or each not in panels]
            elements = min(operand.elements, prod(facts.size.get(each, 1) for each in moved))
            whole = elements * item_bytes(facts)
            steps = [n for n in REDUCE_TILES if whole * n <= most * facts.size[axis] and facts.fits(axis, n)]
            if whole > most and steps:
                return axis, steps[-1]
    return None


def flows(facts: Facts, vector: str) -> bool:
    """Tell whether large tensors are passed through once, each in sequence, so that memory sets the pace."""
    tensors = (facts.output, *facts.operands)
    through = all(m.strides.get(vector, 1) == 1 and _reuses(facts, m) <= 1 for m in tensors)
    return through and not facts.reduced_axes and is_large(facts, facts.output)


def conflicts(facts: Facts, operand: Moves, rows: dict[str, int]) -> bool:
    """Tell whether the rows of a tile are so far apart that their lines drive each other from the cache."""
    for axis, count in rows.items():
        apart = operand.strides.get(axis, 0) * item_bytes(facts)
        # Such rows are in PAGE / gcd different sets of the cache, each of which keeps WAYS lines.
        if apart >= PAGE and count > WAYS * (PAGE // gcd(apart, PAGE)):
            return True
    return False


def _reuses(facts: Facts, operand: Moves) -> int:
    return prod(facts.size.values()) // max(1, operand.elements)
