"""The loops that fill a packed buffer, its padded edges included."""

from __future__ import annotations

from collections.abc import Sequence

from planish.loops.ir.tree import Leaf, Loop, LoopId, Node, Ref
from planish.loops.lang.program import Const, Index
from planish.loops.lower.layout import Location
from planish.loops.lower.pack import Packed, Run

_Range = tuple[LoopId, int, int]
"""A loop, its iterations if they are fixed (else 0), and where in the run it begins."""


def copy_nodes(packed: Packed, source: Location) -> tuple[tuple[Node, ...], dict[str, int]]:
    """Make the nests that fill a buffer.

    Edges that lie outside the tensor are filled by loops of their own beside the loops of the inside, so that
    no element's copy depends on a condition:

        for c:
          for x in whole row: buffer[c, first row, x] = pad
          for x in whole row: buffer[c, last row, x] = pad
          for y in inner rows:
            buffer[c, y, first column] = pad
            buffer[c, y, last column] = pad
            for x in inner columns: buffer[c, y, x] = tensor[c, y - 1, x - 1]

    Returns:
        The nests, and the extents of the fixed axes that they walk.
    """
    copier = _Copier(packed, source)
    return copier.nodes([]), copier.sizes


class _Copier:
    def __init__(self, packed: Packed, source: Location) -> None:
        self.packed = packed
        self.source = source
        self.sizes: dict[str, int] = {}

    def nodes(self, outer: list[_Range]) -> tuple[Node, ...]:
        """Copy what the outer runs' ranges select, the edges first."""
        runs = self.packed.runs
        if len(outer) == len(runs):
            return (self._copy(outer),)
        run = runs[len(outer)]
        if run.edge is None:
            inner: _Range = (run.loop, 0, 0)
            return self._loop(inner, self.nodes([*outer, inner]))
        edge, rest = run.edge, [_whole(r) for r in runs[len(outer) + 1 :]]
        nodes: tuple[Node, ...] = ()
        for extent, start, word in ((edge.low, 0, "low"), (edge.high, edge.low + edge.inner, "high")):
            if extent:
                margin = ((f"{run.loop[0]}.{word}", 1), extent, start)
                # Outside the tensor there is nothing to copy: all inner dimensions are filled whole, edges
                # and all.
                nodes += self._fill([*outer, margin, *rest], len(outer))
        # A window that lies wholly outside the tensor has no inside.
        if edge.inner:
            inner = (run.loop, edge.inner, edge.low)
            nodes += self._loop(inner, self.nodes([*outer, inner]))
        return nodes

    def _loop(self, walked: _Range, body: tuple[Node, ...]) -> tuple[Node, ...]:
        """Walk a range; one of a single element needs no loop."""
        (axis, step), extent, _ = walked
        if extent == 1:
            return body
        if extent:
            self.sizes[axis] = extent
        return (Loop(axis, step, body),)

    def _fill(self, ranges: Sequence[_Range], depth: int) -> tuple[Node, ...]:
        """Fill what lies outside the tensor, inside the loops of the first `depth` ranges."""
        nodes: tuple[Node, ...] = (Leaf(_target(self.packed, ranges), None, Const(self.packed.pad)),)
        for walked in reversed(ranges[depth:]):
            nodes = self._loop(walked, nodes)
        return nodes

    def _copy(self, ranges: Sequence[_Range]) -> Leaf:
        packed = self.packed
        path = (*packed.around, *(loop for loop, extent, _ in ranges if extent != 1))
        return Leaf(_target(packed, ranges), None, self.source.ref(_source_index(packed, ranges), path))


def _whole(run: Run) -> _Range:
    axis, step = run.loop
    return ((f"{axis}.all", 1), run.extent, 0) if run.edge else ((axis, step), 0, 0)


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
            # From the tensor's own start: the buffer begins with the edge, the tensor does not.
            index[run.dim] = Index(((axis, 1),) if extent > 1 else (), run.edge.start + start)
        elif run.derived:
            index[run.dim] = Index((*run.derived, (axis, 1)), index[run.dim].offset)
    return tuple(index)
