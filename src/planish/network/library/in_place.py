"""Kernels that may write their result into the memory of an input, which nothing reads after them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
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
    written = [_extents(tree, site.loops, 0) for site in writers]
    # Every element is written, so each is written once if there are as many writes.
    if sum(prod(each.values()) if each is not None else 0 for each in written) != output.size:
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
    if ref is None or reader.path > writer.path:
        return False
    pairs = enumerate(zip(reader.path, writer.path, strict=False))
    common = next((depth for depth, (a, b) in pairs if a != b), len(writer.loops))
    if any(ref.stride.get(loop.id) != target.stride.get(loop.id) for loop in writer.loops[:common]):
        return False
    block, within = _span(tree, target, writer.loops, common), _span(tree, ref, reader.loops, common)
    if block is None or within is None:
        return False
    return block[1] - block[0] + 1 == block[2] and block[0] <= within[0] and within[1] <= block[1]


def _span(tree: LoopTree, ref: Ref, loops: Sequence[Loop], depth: int) -> tuple[int, int, int] | None:
    """Return the first and the last element of a reference within some loops, and its count of iterations."""
    extents = _extents(tree, loops, depth)
    if extents is None:
        return None
    first = last = ref.offset
    for axis, extent in extents.items():
        inner = [loop for loop in loops[depth:] if loop.axis == axis]
        unit = ref.stride.get((axis, 1), 0)
        if extent > 1 and any(ref.stride.get(loop.id, 0) != unit * loop.step for loop in inner):
            return None
        first, last = first + min(0, unit * (extent - 1)), last + max(0, unit * (extent - 1))
    return first, last, prod(extents.values())


def _extents(tree: LoopTree, loops: Sequence[Loop], depth: int) -> Mapping[str, int] | None:
    """Return the elements of each axis that loops walk within the outer ones; None where that varies."""
    found = dict[str, int]()
    for axis in dict.fromkeys(loop.axis for loop in loops[depth:]):
        outer = [tree.size.get(axis, 0), *(loop.step for loop in loops[:depth] if loop.axis == axis)]
        ends = min(loop.step for loop in loops if loop.axis == axis) == 1
        if axis in tree.window or not ends or any(a % b for a, b in pairwise(outer)):
            return None
        found[axis] = outer[-1]
    return found
