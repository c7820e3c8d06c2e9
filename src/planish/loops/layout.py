"""Where values lie in memory, and how a subscript becomes an offset and strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planish.loops.program import Index
from planish.loops.tree import LoopId, Ref


@dataclass(frozen=True)
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
        offset = 0
        moves: dict[str, int] = {}
        outer = moves if not any(self.relative) else dict[str, int]()
        for d, (subscript, stride) in enumerate(zip(index, self.strides, strict=True)):
            tile = bool(self.relative) and self.relative[d]
            if not tile:
                offset += (subscript.offset - (self.origin[d] if self.origin else 0)) * stride
            for axis, coefficient in subscript.terms:
                moves[axis] = moves.get(axis, 0) + coefficient * stride
                if not tile and outer is not moves:
                    outer[axis] = outer.get(axis, 0) + coefficient * stride
        if outer is moves:
            strides = tuple((loop, loop[1] * moves[loop[0]]) for loop in path if moves.get(loop[0]))
        else:
            strides = strides_along(outer, path[: self.depth]) + strides_along(moves, path[self.depth :])
        return Ref(self.buffer, offset, strides)


def strides_along(moves: Mapping[str, int], path: Sequence[LoopId]) -> tuple[tuple[LoopId, int], ...]:
    """Give each loop's elements per iteration, from elements per unit of its axis; none is zero."""
    return tuple((loop, loop[1] * moves[loop[0]]) for loop in path if moves.get(loop[0]))


def tile(axis: str, loops: Sequence[LoopId], extent: int) -> int:
    """Give how much of an axis remains inside some loops: the least of their steps over it."""
    return min((step for name, step in loops if name == axis), default=extent)


def row_major(extents: Sequence[int], order: Sequence[int] | None = None) -> tuple[int, ...]:
    """Give each dimension's stride where the dimensions lie in an order, the last one contiguous."""
    strides = [0] * len(extents)
    n = 1
    for d in reversed(range(len(extents)) if order is None else order):
        strides[d] = n
        n *= extents[d]
    return tuple(strides)
