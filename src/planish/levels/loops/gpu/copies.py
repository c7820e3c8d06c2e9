"""Copies to shared memory: several elements at once, and iterations ahead of their use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile
from math import prod

from planish.core import ScheduleError
from planish.levels.loops.gpu.kernels import (
    ALIGNED_BYTES,
    Compute,
    Condition,
    Cooperative,
    Counts,
    Item,
    Mma,
    Pipelined,
    Serial,
    Single,
    computations,
)
from planish.levels.loops.gpu.layout import KernelOptions
from planish.levels.loops.ir.tree import Call, Leaf, LoopId, Ref, Value, refs

WIDTHS = (8, 4, 2)
"""Elements that are copied at once, if they are 4 bytes together at least."""
LEAST_BYTES = 4

# Several elements at once


def wide_copy(loops: Counts, item: Compute, itemsize: int, block_size: int) -> Cooperative:
    """Share a copy among the threads of a block, several neighboring elements at once where that is right.

    They must be aligned to this number of elements in both buffers, and there must be work for all threads.

    Args:
        loops: of the copy, in the order of its source, outermost first.
        item: copies an element as it is.
        itemsize: bytes of an element.
        block_size: threads of the block.
    """
    source = item.leaf.value
    assert isinstance(source, Ref)
    moves = [dict(ref.strides) for ref in (item.leaf.target, source)]
    moves += [dict(each.terms) for each in item.conditions]
    merged = _merged(loops, moves)
    if not merged:
        return Cooperative(loops, (item,))
    width = _width(merged, item, source, moves, itemsize, block_size)
    loop, count = merged[-1]
    if width > 1:
        outer = f"{loop[0]}.vector", width
        for own in moves:
            if loop in own:
                own[outer] = own[loop] * width
        merged = (*merged[:-1], (outer, count // width))
    target, value = (
        Ref(ref.buffer, ref.offset, tuple(own.items()))
        for ref, own in zip((item.leaf.target, source), moves, strict=False)
    )
    conditions = tuple(
        Condition(tuple(own.items()), each.limit)
        for each, own in zip(item.conditions, moves[2:], strict=True)
    )
    lanes = (loop, width) if width > 1 else None
    return Cooperative(merged, (Compute(Leaf(target, None, value), conditions, lanes, width > 1),))


def _merged(loops: Counts, moves: Sequence[dict[LoopId, int]]) -> Counts:
    """Walk loops as one where all references and conditions move by them as by one; `moves` is changed."""
    kept: list[tuple[LoopId, int]] = []
    for loop, count in reversed(loops):
        if kept:
            inner, n = kept[-1]
            if all(own.get(loop, 0) == own.get(inner, 0) * n for own in moves):
                for own in moves:
                    own.pop(loop, None)
                kept[-1] = inner, n * count
                continue
        kept.append((loop, count))
    return tuple(reversed(kept))


def _width(
    loops: Counts,
    item: Compute,
    source: Ref,
    moves: Sequence[dict[LoopId, int]],
    itemsize: int,
    block_size: int,
) -> int:
    """Count the elements that are copied at once."""
    (loop, count), total = loops[-1], prod(n for _, n in loops)
    if any(own.get(loop) != 1 for own in moves[:2]):
        return 1
    numbers = [count, item.leaf.target.offset, source.offset]
    numbers += [stride for own in moves[:2] for other, stride in own.items() if other != loop]
    for each, own in zip(item.conditions, moves[2:], strict=True):
        if loop in own:
            numbers += [each.limit, *(stride for other, stride in own.items() if other != loop)]
            numbers += [1] * (own[loop] != 1)
    for width in WIDTHS:
        fits = LEAST_BYTES <= width * itemsize <= ALIGNED_BYTES and total // width >= block_size
        if fits and all(number % width == 0 for number in numbers):
            return width
    return 1


# Ahead of their use


def pipelined(
    items: tuple[Item, ...], shared: frozenset[str], options: KernelOptions, elements: Callable[[str], int]
) -> tuple[tuple[Item, ...], dict[str, int]]:
    """Copy tiles ahead of their use in the loops that begin with copies to shared memory.

    Args:
        items: of a kernel.
        shared: the buffers of a block.
        options: with the number of tiles of each buffer.
        elements: counts those of a tile.

    Returns:
        The items, and buffer to its elements, of all tiles together.

    Raises:
        ScheduleError: there is no such loop.
    """
    found = _Pipeline(items, shared, options, elements)
    items = tuple(map(found.item, items))
    if not found.sizes:
        raise ScheduleError("no loop of the nest copies shared tiles alone", "Leave PipelineCopies out.")
    return items, found.sizes


class _Pipeline:
    def __init__(
        self,
        whole: tuple[Item, ...],
        shared: frozenset[str],
        options: KernelOptions,
        elements: Callable[[str], int],
    ) -> None:
        self.whole, self.shared, self.elements = whole, shared, elements
        self.stages, self.unfinished = options.stages, options.unfinished
        self.sizes: dict[str, int] = {}

    def item(self, item: Item) -> Item:
        """Pipeline an item, or what is inside."""
        if not isinstance(item, Serial):
            return item
        copies = tuple(takewhile(self._is_copy, item.body))
        body = item.body[len(copies) :]
        filled = {each.leaf.target.buffer for each in computations(copies)}
        read, written = set[str](), set[str]()
        for each in computations(body):
            written.add(each.leaf.target.buffer)
            read |= {ref.buffer for ref in refs(each.leaf.value)}
        outside = filled & self._touched_outside(self.whole, item.loop)
        if not filled or outside or item.last - item.first < 2 or self.shared & (read - filled | written):
            return replace(item, body=tuple(map(self.item, item.body)))
        sizes = {name: self.elements(name) for name in filled}
        self.sizes |= {name: size * self.stages for name, size in sizes.items()}
        tile = f"{item.loop[0]}.tile", item.loop[1]

        def moved(ref: Ref) -> Ref:
            size = sizes.get(ref.buffer)
            return replace(ref, strides=(*ref.strides, (tile, size))) if size else ref

        copies, body = (tuple(with_refs(each, moved) for each in found) for found in (copies, body))
        return Pipelined(item.loop, item.first, item.last, self.stages, tile, copies, body, self.unfinished)

    def _touched_outside(self, items: tuple[Item, ...], loop: LoopId) -> set[str]:
        """Return the buffers that are touched where the loop does not fill them: no tile has all of those.

        The loop's last, shorter iteration is a loop of its own, which fills them, too.
        """
        found = set[str]()
        for item in items:
            inner = item.body if isinstance(item, Serial) else (item,)
            copies = tuple(takewhile(self._is_copy, inner)) if isinstance(item, Serial) else ()
            if isinstance(item, Serial) and not (item.loop == loop and copies):
                found |= self._touched_outside(inner, loop)
                continue
            filled = {each.leaf.target.buffer for each in computations(copies)}
            found |= {ref.buffer for each in computations(inner) for ref in each.leaf.refs} - filled
        return found

    def _is_copy(self, item: Item) -> bool:
        """Return whether threads share a copy from global memory."""
        found = [each.leaf for each in computations((item,))]
        return isinstance(item, Cooperative) and all(
            leaf.target.buffer in self.shared
            and not any(ref.buffer in self.shared for ref in refs(leaf.value))
            for leaf in found
        )


def with_refs(item: Item, change: Callable[[Ref], Ref]) -> Item:
    """Return an item with other references."""
    match item:
        case Compute() | Mma():
            leaf = item.leaf
            return replace(item, leaf=Leaf(change(leaf.target), leaf.reduce, _with_refs(leaf.value, change)))
        case Serial() | Cooperative() | Single():
            return replace(item, body=tuple(with_refs(each, change) for each in item.body))
        case _:
            return item


def _with_refs(value: Value, change: Callable[[Ref], Ref]) -> Value:
    match value:
        case Ref():
            return change(value)
        case Call(function, args):
            return Call(function, tuple([_with_refs(arg, change) for arg in args]))
        case _:
            return value
