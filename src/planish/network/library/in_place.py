"""Kernels that may write their result into the memory of an input, which nothing reads after them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from planish.levels.loops.ir.tree import Call, Leaf, Loop, LoopTree, Node, Ref, Value, refs


def overwritable_inputs(tree: LoopTree) -> list[str]:
    """Return the inputs in whose memory a tree's output may be, each by itself.

    What a leaf reads of such an input is written by the same leaf or a later one: in the same iteration of
    the loops around both, by which both are moved alike. It is an element, or within a block, such as a row.
    As each element is written once, nothing is overwritten before it is read, by threads neither. Code
    generators keep this order: they load nothing after, and store nothing before, the tree does.

    Args:
        tree: with one output.
    """
    (output,) = [buffer for buffer in tree.buffers if buffer.kind == "output"]
    sites = list(_sites(tree.body, ()))
    writers = [site for site in sites if site.leaf.target.buffer == output.name]
    # Every element is written, so each is written once if there are as many writes.
    if sum(prod(tree.size.get(axis, 0) for axis in site.axes) for site in writers) != output.size:
        return []
    found = list[str]()
    for buffer in tree.buffers:
        if buffer.kind == "input" and (buffer.dtype, buffer.size) == (output.dtype, output.size):
            reads = [(site, ref) for site in sites for ref in _reads(site.leaf.value, buffer.name)]
            if all(any(_is_before(tree, read, writer) for writer in writers) for read in reads):
                found.append(buffer.name)
    return found


class _Site(NamedTuple):
    """A leaf, the loops around it from the root on, and its position in each of them."""

    leaf: Leaf
    loops: tuple[Loop, ...]
    path: tuple[int, ...]

    @property
    def axes(self) -> set[str]:
        """Return the axes of its loops."""
        return {loop.axis for loop in self.loops}


def _sites(nodes: Sequence[Node], loops: tuple[Loop, ...], path: tuple[int, ...] = ()) -> Iterator[_Site]:
    for number, node in enumerate(nodes):
        if isinstance(node, Leaf):
            yield _Site(node, loops, (*path, number))
        else:
            yield from _sites(node.body, (*loops, node), (*path, number))


def _reads(value: Value, buffer: str) -> Iterator[Ref | None]:
    """Yield the references to a buffer; None for elements that are looked up."""
    if isinstance(value, Call) and value.function == "gather":
        yield from [None for ref in refs(value) if ref.buffer == buffer]
    elif isinstance(value, Call):
        for arg in value.args:
            yield from _reads(arg, buffer)
    elif isinstance(value, Ref) and value.buffer == buffer:
        yield value


def _is_before(tree: LoopTree, read: tuple[_Site, Ref | None], writer: _Site) -> bool:
    """Return whether all that is read in an iteration of common loops is written later in that iteration."""
    (reader, ref), target = read, writer.leaf.target
    known = tree.size.keys() - tree.window.keys()
    if ref is None or reader.path > writer.path or not known >= reader.axes | writer.axes:
        return False
    pairs = enumerate(zip(reader.path, writer.path, strict=False))
    common = next((depth for depth, (a, b) in pairs if a != b), len(writer.loops))
    if any(ref.stride.get(loop.id) != target.stride.get(loop.id) for loop in writer.loops[:common]):
        return False
    for extents in _extents(tree, writer.loops[:common]):
        block = _span(target, writer.loops[common:], extents)
        within = _span(ref, reader.loops[common:], extents)
        if block is None or within is None or block[1] - block[0] + 1 != block[2]:
            return False
        if within[0] < block[0] or within[1] > block[1]:
            return False
    return True


def _extents(tree: LoopTree, loops: Sequence[Loop]) -> Iterator[Mapping[str, int]]:
    """Yield what may remain of each axis within loops: a step of theirs, or what is left at an end."""
    possible = {axis: {size} for axis, size in tree.sizes}
    for loop in loops:
        rests = [(loop.step if here >= loop.step else 0, here % loop.step) for here in possible[loop.axis]]
        possible[loop.axis] = {rest for pair in rests for rest in pair if rest}
    for values in product(*possible.values()):
        yield dict(zip(possible, values, strict=True))


def _span(ref: Ref, loops: Sequence[Loop], extents: Mapping[str, int]) -> tuple[int, int, int] | None:
    """Return the first and the last element of a reference in some loops, and its count of iterations.

    None where the loops of an axis move it in different ways.
    """
    first = last = ref.offset
    axes = dict.fromkeys(loop.axis for loop in loops)
    for axis in axes:
        unit = ref.stride.get((axis, 1), 0)
        moves = [(loop.step, ref.stride.get(loop.id, 0)) for loop in loops if loop.axis == axis]
        if extents[axis] > 1 and (moves[-1][0] > 1 or any(move != unit * step for step, move in moves)):
            return None
        distance = unit * (extents[axis] - 1)
        first, last = first + min(0, distance), last + max(0, distance)
    return first, last, prod(extents[axis] for axis in axes)
