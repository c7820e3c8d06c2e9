"""Vectors and scalars of memory that registers hold, by the names that references give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planish.loops.ir.tree import Leaf, Loop, LoopId, Ref

Positions = Mapping[LoopId, int]
"""Loop to its iteration number, as far as it is known when code is written."""


class Cell(NamedTuple):
    """One vector or scalar of memory that a register holds.

    Args:
        buffer: where it is.
        offset: of its first element, from the buffer's pointer.
        stride: elements between lanes; 0 for a scalar.
        lanes: of the vector.
        active: lanes that count.
        reduce: set if the lanes are parts of the one element at the offset, reduced so at the end.
        part: number of the accumulator, where several serve one element.
    """

    buffer: str
    offset: int
    stride: int = 0
    lanes: int = 1
    active: int = 1
    reduce: str = ""
    part: int = 0


class Piece(NamedTuple):
    """Some consecutive iterations of an innermost loop, as one vector; one lane may stand for a single leaf.

    Args:
        start: the first iteration.
        lanes: of the vector, a power of 2.
        active: how many of them count.
    """

    start: int
    lanes: int
    active: int


def position(ref: Ref, at: Positions) -> int:
    """Sum what is known of a reference's offset."""
    return ref.offset + sum(stride * at[loop] for loop, stride in ref.strides if loop in at)


def cell(ref: Ref, at: Positions, loop: Loop | None, piece: Piece) -> Cell:
    """Name what a reference is held as in a piece of a vectorised loop; None for no such loop."""
    stride = ref.stride.get(loop.id, 0) if loop and piece.lanes > 1 else 0
    if stride == 0:
        return Cell(ref.buffer, position(ref, at))
    return Cell(ref.buffer, position(ref, at), stride, piece.lanes, piece.active)


def summed(leaf: Leaf, at: Positions, piece: Piece, part: int) -> Cell:
    """Name the accumulator of a leaf that reduces along a vectorised loop."""
    target = leaf.target
    return Cell(target.buffer, position(target, at), 0, piece.lanes, piece.lanes, leaf.reduce or "", part)
