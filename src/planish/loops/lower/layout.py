"""Where values lie in memory, and how a subscript becomes an offset and strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planish.loops.ir.tree import LoopId, Ref
from planish.loops.lang.program import Index


@dataclass(frozen=True, eq=False)
class Location:
    """How a tensor, or a tile of it, lies in a buffer.

    Args:
        buffer: its name.
        strides: for each dimension of the tensor, elements between neighbours.
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
        """Give elements for each unit of an axis, by the subscripts of some dimensions."""
        moves: dict[str, int] = {}
        for d in dims:
            stride = self.strides[d]
            for axis, coefficient in index[d].terms:
                # Added up, for an axis may stand in several subscripts, as on a diagonal.
                moves[axis] = moves.get(axis, 0) + coefficient * stride
        return moves


def _along(moves: Mapping[str, int], path: Sequence[LoopId]) -> tuple[tuple[LoopId, int], ...]:
    """Give each loop's elements for each iteration, from elements for each unit of its axis; none is zero."""
    return tuple([(loop, loop[1] * moves[loop[0]]) for loop in path if loop[0] in moves])


def tile(axis: str, loops: Sequence[LoopId], extent: int) -> int:
    """Give how much of an axis remains inside some loops: the least of their steps over it."""
    # The least, since each loop over an axis leaves its step to those inside.
    return min((step for name, step in loops if name == axis), default=extent)


def row_major(extents: Sequence[int], order: Sequence[int] | None = None) -> tuple[int, ...]:
    """Give each dimension's stride where the dimensions lie in an order, the last one contiguous."""
    strides = [0] * len(extents)
    n = 1
    for d in reversed(range(len(extents)) if order is None else order):
        strides[d] = n
        n *= extents[d]
    return tuple(strides)
