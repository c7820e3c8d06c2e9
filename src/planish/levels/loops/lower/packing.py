"""Packing: how a tile of a tensor lies in a contiguous buffer of its own, and the loops that fill it.

The buffer's dimensions are in the order of use, so that the innermost loops read it in sequence: a
dimension of the tensor that is subscripted by one axis alone has one buffer dimension for each loop of that
axis (the panels of BLIS), without the gaps of a stride; any other (a window, a padded edge) has one, as wide
as what is touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from planish.levels.loops.ir.tree import Leaf, Loop, LoopId, Node, Ref
from planish.levels.loops.lang.program import Access, Const, Index, lazy

# Layout in memory


@dataclass(frozen=True, eq=False)
class Location:
    """Layout of a tensor, or of a tile of it, in a buffer.

    Args:
        buffer: its name.
        strides: for each dimension of the tensor, elements between neighbors.
        depth: how many loops are around the buffer's lifetime.
        relative: for each dimension, whether it holds a tile: its subscripts then count from where those
            loops stand.
        origin: for each other dimension, the subscript that lies at offset 0; empty where all are 0.
    """

    buffer: str
    strides: tuple[int, ...]
    depth: int = 0
    relative: tuple[bool, ...] = ()
    origin: tuple[int, ...] = ()

    def ref(self, index: Sequence[Index], path: Sequence[LoopId]) -> Ref:
        """Subscript the tensor inside the loops of a path, outermost first."""
        dims = range(len(self.strides))
        whole = [d for d in dims if not self.relative[d]] if self.relative else dims
        origin = self.origin
        offset = 0
        for d in whole:
            offset += (index[d].offset - origin[d] if origin else index[d].offset) * self.strides[d]
        moves = self._moves(index, dims)
        if len(whole) == len(dims):
            return Ref(self.buffer, offset, _along(moves, path))
        # Loops around the buffer's lifetime move whole dimensions only: a tile is always at the buffer's
        # start.
        outer = _along(self._moves(index, whole), path[: self.depth])
        return Ref(self.buffer, offset, outer + _along(moves, path[self.depth :]))

    def _moves(self, index: Sequence[Index], dims: Sequence[int]) -> dict[str, int]:
        """Return elements for each unit of an axis, by the subscripts of some dimensions."""
        moves: dict[str, int] = {}
        for d in dims:
            stride = self.strides[d]
            for axis, coefficient in index[d].terms:
                # Added up, for an axis may stand in several subscripts, as on a diagonal.
                moves[axis] = moves.get(axis, 0) + coefficient * stride
        return moves


def _along(moves: Mapping[str, int], path: Sequence[LoopId]) -> tuple[tuple[LoopId, int], ...]:
    """Return each loop's elements per iteration, from elements per unit of its axis; none is zero."""
    return tuple([(loop, loop[1] * moves[loop[0]]) for loop in path if loop[0] in moves])


def tile(axis: str, loops: Sequence[LoopId], extent: int) -> int:
    """Return how much of an axis remains inside some loops: the least of their steps over it."""
    # The least, since each loop over an axis leaves its step to those inside.
    return min((step for name, step in loops if name == axis), default=extent)


def row_major(extents: Sequence[int], order: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return each dimension's stride where the dimensions lie in an order, the last one contiguous."""
    strides = [0] * len(extents)
    n = 1
    for d in reversed(range(len(extents)) if order is None else order):
        strides[d] = n
        n *= extents[d]
    return tuple(strides)


# Packed tiles


@dataclass(frozen=True)
class Edge:
    """A window that may leave the tensor, along one dimension.

    Args:
        start: the tensor's subscript that the window begins at; may be negative.
        low: elements of the window before the tensor.
        inner: elements inside the tensor; 0 where the window lies wholly outside.
        high: elements after the tensor.
    """

    start: int
    low: int
    inner: int
    high: int


class Run(NamedTuple):
    """One dimension of the buffer.

    Args:
        dim: the tensor's dimension.
        loop: the copying nest's loop along it.
        extent: of the buffer, in iterations of that loop.
        uses: the reading nest's loops that move along it, each with how far.
        last: the reading nest's innermost loop that does, counted from outside.
        derived: (axis, coefficient) of the window that the loop walks; empty where it walks a loop of an axis
            or a fixed range.
        edge: the fixed range, for a run that does not move with the loops around.
    """

    dim: int
    loop: LoopId
    extent: int
    uses: tuple[tuple[LoopId, int], ...] = ()
    last: int = -1
    derived: tuple[tuple[str, int], ...] = ()
    edge: Edge | None = None


@dataclass(frozen=True, eq=False)
class Packed:
    """The layout of a packed tile.

    Args:
        name: of the buffer.
        access: what is copied, as the reading statement subscripts it.
        around: the loops around the copy.
        runs: the buffer's dimensions, outermost first.
        pad: the value of what lies outside the tensor.
    """

    name: str
    access: Access
    around: tuple[LoopId, ...]
    runs: tuple[Run, ...]
    pad: float

    @lazy
    def strides(self) -> tuple[int, ...]:
        """Elements between neighbors, for each run."""
        return row_major([run.extent for run in self.runs])

    @property
    def size(self) -> int:
        """Elements of the buffer."""
        return prod(run.extent for run in self.runs)

    def use(self, path: Sequence[LoopId]) -> Ref:
        """Return the element that the reading nest needs, inside all its loops."""
        moves: dict[LoopId, int] = {}
        for run, stride in zip(self.runs, self.strides, strict=True):
            for loop, distance in run.uses:
                moves[loop] = moves.get(loop, 0) + distance * stride
        return Ref(self.name, 0, tuple((loop, moves[loop]) for loop in path if loop in moves))


def tile_of(
    name: str,
    access: Access,
    order: Sequence[LoopId],
    depth: int,
    shape: Sequence[int],
    size: Mapping[str, int],
) -> Packed:
    """Lay out the tile that a nest's inner loops touch.

    Args:
        name: of the buffer, and of the axes that copy it.
        access: how the nest subscripts the tensor.
        order: the nest's loops.
        depth: how many of them are around the copy.
        shape: the tensor's.
        size: axis to extent.
    """
    # Axes of extent 1 move nothing, so a subscript beside one of them is still alone.
    walked = [[axis for axis, _ in index.terms if size[axis] > 1] for index in access.index]
    used = [axis for axes in walked for axis in axes]
    runs: list[Run] = []
    for d, index in enumerate(access.index):
        # An axis that stands in two subscripts moves both at once: panels of one of them would not hold the
        # other's.
        alone = len(walked[d]) == 1 and used.count(walked[d][0]) == 1
        padded = access.pad is not None and _leaves(index, shape[d], size)
        if alone and not padded:
            runs += _panels(d, walked[d][0], order, depth, size[walked[d][0]])
        else:
            edge = edge_of(index, shape[d], size) if padded else None
            runs += _window(name, d, index, order, depth, size, edge)
    # What the innermost loop moves lies side by side.
    runs.sort(key=lambda run: run.last)
    return Packed(name, access, tuple(order[:depth]), tuple(runs), access.pad or 0.0)


def whole_view(name: str, access: Access, shape: Sequence[int], size: Mapping[str, int]) -> Packed:
    """Lay out all that an access may touch, padding included, row-major.

    Args:
        name: of the buffer, and of the axes that copy it.
        access: how a statement subscripts the tensor.
        shape: the tensor's.
        size: axis to extent.
    """
    runs: list[Run] = []
    for d, index in enumerate(access.index):
        edge = edge_of(index, shape[d], size)
        runs.append(Run(d, (f"{name}.{d}", 1), edge.low + edge.inner + edge.high, edge=edge))
    return Packed(name, access, (), tuple(runs), access.pad or 0.0)


def same_view(a: Packed, b: Packed) -> bool:
    """Return whether two whole views of one tensor hold the same elements."""
    return a.pad == b.pad and [run.edge for run in a.runs] == [run.edge for run in b.runs]


def edge_of(index: Index, extent: int, size: Mapping[str, int]) -> Edge:
    """Find how the window of a subscript lies over a dimension of the tensor."""
    first, last = index.bounds(size)
    # A window wholly outside is all low, or all high: neither exceeds its width.
    low = min(max(-first, 0), last - first + 1)
    high = min(max(last - extent + 1, 0), last - first + 1 - low)
    return Edge(first, low, last - first + 1 - low - high, high)


def leaving_dimensions(access: Access, shape: Sequence[int], size: Mapping[str, int]) -> list[int]:
    """List the dimensions along which a padded access leaves its tensor."""
    if access.pad is None:
        return []
    return [d for d, index in enumerate(access.index) if _leaves(index, shape[d], size)]


def moved(access: Access, dimensions: Sequence[int], loops: Sequence[LoopId]) -> bool:
    """Return whether any of these loops moves any of these dimensions of an access."""
    axes = {axis for axis, _ in loops}
    return any(axis in axes for d in dimensions for axis, _ in access.index[d].terms)


def _leaves(index: Index, extent: int, size: Mapping[str, int]) -> bool:
    first, last = index.bounds(size)
    return first < 0 or last >= extent


def _panels(dim: int, axis: str, order: Sequence[LoopId], depth: int, extent: int) -> list[Run]:
    remaining = tile(axis, order[:depth], extent)
    runs: list[Run] = []
    for i, loop in enumerate(order):
        if i >= depth and loop[0] == axis:
            # Rounded up, since the last panel may be a tail.
            runs.append(Run(dim, loop, -(-remaining // loop[1]), ((loop, 1),), i))
            remaining = loop[1]
    return runs


def _window(
    name: str,
    dim: int,
    index: Index,
    order: Sequence[LoopId],
    depth: int,
    size: Mapping[str, int],
    edge: Edge | None,
) -> list[Run]:
    coefficient = dict(index.terms)
    inner = [(i, loop) for i, loop in enumerate(order) if i >= depth and loop[0] in coefficient]
    # From the first element to the last that the inner loops touch, gaps of a coefficient included.
    extent = 1 + sum(c * (tile(axis, order[:depth], size[axis]) - 1) for axis, c in index.terms)
    if extent == 1 and edge is None:
        return []
    uses = tuple((loop, coefficient[loop[0]] * loop[1]) for _, loop in inner)
    last = inner[-1][0] if inner else -1
    derived = () if edge else index.terms
    return [Run(dim, (f"{name}.{dim}", 1), extent, uses, last, derived, edge)]


# Loops that fill a packed buffer

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
        packed, runs = self.packed, self.packed.runs
        if len(outer) == len(runs):
            path = (*packed.around, *(loop for loop, extent, _ in outer if extent != 1))
            value = self.source.ref(_source_index(packed, outer), path)
            return (Leaf(_target(packed, outer), None, value),)
        run = runs[len(outer)]
        if run.edge is None:
            inner: _Range = (run.loop, 0, 0)
            return self._loop(inner, self.nodes([*outer, inner]))
        edge, nodes = run.edge, list[Node]()
        # Outside the tensor there is nothing to copy: all inner dimensions are filled whole, edges and all.
        rest = [
            ((f"{r.loop[0]}.all", 1), r.extent, 0) if r.edge else (r.loop, 0, 0)
            for r in runs[len(outer) + 1 :]
        ]
        for extent, start, word in ((edge.low, 0, "low"), (edge.high, edge.low + edge.inner, "high")):
            if extent:
                filled = [((f"{run.loop[0]}.{word}", 1), extent, start), *rest]
                fill: tuple[Node, ...] = (Leaf(_target(packed, [*outer, *filled]), None, Const(packed.pad)),)
                for walked in reversed(filled):
                    fill = self._loop(walked, fill)
                nodes += fill
        # A window that lies wholly outside the tensor has no inside.
        if edge.inner:
            inner = (run.loop, edge.inner, edge.low)
            nodes += self._loop(inner, self.nodes([*outer, inner]))
        return tuple(nodes)

    def _loop(self, walked: _Range, body: tuple[Node, ...]) -> tuple[Node, ...]:
        """Walk a range; one of a single element needs no loop."""
        (axis, step), extent, _ = walked
        if extent == 1:
            return body
        if extent:
            self.sizes[axis] = extent
        return (Loop(axis, step, body),)


def _target(packed: Packed, ranges: Sequence[_Range]) -> Ref:
    pairs = list(zip(ranges, packed.strides, strict=True))
    offset = sum(start * stride for (_, _, start), stride in pairs)
    return Ref(
        packed.name, offset, tuple((loop, stride) for (loop, extent, _), stride in pairs if extent != 1)
    )


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
