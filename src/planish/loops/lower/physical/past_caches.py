"""Which results are written past the caches: large ones, of which nothing is read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planish.loops.ir.annotated import Vectors
from planish.loops.ir.tree import Leaf, Loop, LoopTree, Node
from planish.loops.lang.program import DTYPES
from planish.loops.lower.physical.region import LINE

PAST_FROM = 1 << 26
"""Bytes of a result from which on no usual cache would keep it for its reader."""


def past_caches(tree: LoopTree, vectors: Vectors) -> frozenset[str]:
    """Name the outputs whose stores go past the caches.

    An ordinary store first reads the line that it writes to: of what `A + B` moves, that is a quarter. Stores
    past the caches need whole vectors at multiples of their size, and pay where a line is filled at once.

    Args:
        tree: what is executed.
        vectors: of the machine.
    """
    large = {
        buffer.name: DTYPES[buffer.dtype]
        for buffer in tree.buffers
        if buffer.kind == "output" and buffer.size * DTYPES[buffer.dtype] >= PAST_FROM
    }
    if not large:
        return frozenset()
    found = list(_leaves(tree.body, ()))
    read = {ref.buffer for leaf, _ in found for ref in leaf.refs[1:]}
    written = [(leaf, around) for leaf, around in found if leaf.target.buffer in large]
    targets = [leaf.target.buffer for leaf, _ in written]
    return frozenset(
        leaf.target.buffer
        for leaf, around in written
        if targets.count(leaf.target.buffer) == 1
        and leaf.target.buffer not in read
        and leaf.reduce is None
        and _fills_lines(leaf, around, large[leaf.target.buffer], vectors)
    )


def _leaves(nodes: Iterable[Node], around: tuple[Loop, ...]) -> Iterator[tuple[Leaf, tuple[Loop, ...]]]:
    for node in nodes:
        if isinstance(node, Loop):
            yield from _leaves(node.body, (*around, node))
        else:
            yield node, around


def _fills_lines(leaf: Leaf, around: tuple[Loop, ...], itemsize: int, vectors: Vectors) -> bool:
    """Tell whether the innermost loop walks the target in sequence, from whole vectors to whole vectors."""
    target = leaf.target
    if not around or target.stride.get(around[-1].id) != 1 or target.offset:
        return False
    for loop in around[:-1]:
        # The loops around a vector loop of the same axis move by whole lines, which are written at once.
        unit = LINE if loop.axis == around[-1].axis else vectors.lanes * itemsize
        if target.stride.get(loop.id, 0) * itemsize % unit:
            return False
    return True
