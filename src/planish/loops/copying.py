"""The loops that fill a packed buffer, its padded edges included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planish.loops.layout import Location
from planish.loops.packing import Packed, Run
from planish.loops.program import Const, Index
from planish.loops.tree import Leaf, Loop, LoopId, Node, Ref

_Range = tuple[LoopId, int, int]
"""A loop, its iterations if they are fixed (else 0), and where in the run it begins."""


def copy_nodes(packed: Packed, source: Location) -> tuple[tuple[Node, ...], dict[str, int]]:
    """Make the nests that fill a buffer.

    Edges that lie outside the tensor are filled by nests of their own, so that no element's copy depends
    on a condition.

    Returns:
        The nests, and the extents of the fixed axes that they walk.
    """
    nodes: list[Node] = []
    sizes: dict[str, int] = {}
    for ranges, inside in _slabs(packed.runs):
        value = (
            source.ref(_source_index(packed, ranges), _path(packed, ranges)) if inside else Const(packed.pad)
        )
        node: Node = Leaf(_target(packed, ranges), None, value)
        for (axis, step), extent, _ in reversed(ranges):
            if extent != 1:
                node = Loop(axis, step, (node,))
            if extent > 1:
                sizes[axis] = extent
        nodes.append(node)
    return tuple(nodes), sizes


def _slabs(runs: Sequence[Run]) -> Iterator[tuple[list[_Range], bool]]:
    """Split the buffer into slabs outside the tensor and the part inside, each an independent nest."""
    edges = [i for i, run in enumerate(runs) if run.edge]
    for count, i in enumerate(edges):
        edge = runs[i].edge
        assert edge is not None
        for extent, start, word in ((edge.low, 0, "low"), (edge.high, edge.low + edge.inner, "high")):
            if extent:
                ranges = [_whole(run) for run in runs]
                for j in edges[:count]:
                    ranges[j] = _inner(runs[j])
                ranges[i] = ((f"{runs[i].loop[0]}.{word}", 1), extent, start)
                yield ranges, False
        if not edge.inner:
            return
    yield [_inner(run) for run in runs], True


def _whole(run: Run) -> _Range:
    axis, step = run.loop
    return ((f"{axis}.all", 1), run.extent, 0) if run.edge else ((axis, step), 0, 0)


def _inner(run: Run) -> _Range:
    return (run.loop, run.edge.inner, run.edge.low) if run.edge else (run.loop, 0, 0)


def _path(packed: Packed, ranges: Sequence[_Range]) -> tuple[LoopId, ...]:
    return (*packed.around, *(loop for loop, extent, _ in ranges if extent != 1))


def _target(packed: Packed, ranges: Sequence[_Range]) -> Ref:
    offset = sum(start * stride for (_, _, start), stride in zip(ranges, packed.strides, strict=True))
    pairs = zip(ranges, packed.strides, strict=True)
    strides = tuple((loop, stride) for (loop, extent, _), stride in pairs if extent != 1)
    return Ref(packed.name, offset, strides)


def _source_index(packed: Packed, ranges: Sequence[_Range]) -> tuple[Index, ...]:
    """Subscript the tensor by the copying loops: a window by its own axis, besides the loops around."""
    index = list(packed.access.index)
    for run, ((axis, _), extent, start) in zip(packed.runs, ranges, strict=True):
        if run.edge:
            index[run.dim] = Index(((axis, 1),) if extent > 1 else (), run.edge.start + start)
        elif run.derived:
            index[run.dim] = Index((*run.derived, (axis, 1)), index[run.dim].offset)
    return tuple(index)
