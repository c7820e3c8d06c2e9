"""Where an interpreter of annotated trees is: iterations of the loops around, and lanes of a vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from planish.loops.ir.annotated import Lanes
from planish.loops.ir.cells import Cell, Piece, cell
from planish.loops.ir.storage import Storage, TreeFault
from planish.loops.ir.tree import Leaf, Loop, LoopId, Ref


class Position:
    """Where an executor is.

    Attributes:
        at: enclosing loop to its iteration.
        known: the same as the code knows it: in a loop that counts, the iteration of the copy of its body.
    """

    def __init__(self) -> None:
        self.at: dict[LoopId, int] = {}
        self.known: dict[LoopId, int] = {}

    def of(self, loop: LoopId) -> tuple[int, int] | None:
        """Give where a loop is, before it goes on from there; None if it does not enclose this place."""
        return (self.at[loop], self.known[loop]) if loop in self.at else None

    def move(self, loop: LoopId, before: tuple[int, int] | None, at: int, known: int) -> None:
        """Set where a loop is, from where it was before."""
        start, start_known = before or (0, 0)
        self.at[loop], self.known[loop] = start + at, start_known + known

    def restore(self, loop: LoopId, before: tuple[int, int] | None) -> None:
        """Let a loop be where it was before."""
        if before is None:
            self.at.pop(loop, None)
            self.known.pop(loop, None)
        else:
            self.at[loop], self.known[loop] = before


class Vector:
    """A pass of a vector loop.

    Args:
        loop: the loop.
        active: how many lanes count.
        piece: which iterations, by their number in the code, where values have names.
        number: of the pass.
        lanes: what the pass does, where values have names.
    """

    def __init__(
        self, loop: Loop, active: int, piece: Piece | None = None, number: int = 0, lanes: Lanes | None = None
    ) -> None:
        self.loop = loop
        self.active = active
        self.piece = piece or Piece(0, active, active)
        self.number = number
        self.lanes = lanes or Lanes(loop)
        self._private: dict[Cell, list[Any]] = {}

    def keeps(self, buffer: str) -> bool:
        """Whether a buffer lives in registers, for this pass only."""
        return buffer in self.lanes.private

    def write(self, leaf: Leaf, values: list[Any], position: Position, storage: Storage) -> None:
        """Set what a leaf writes for this pass only."""
        name = cell(leaf.target, position.known, self.loop, self.piece)
        if leaf.reduce:
            old = [self.read(leaf.target, lane, position) for lane in range(self.active)]
            values = [storage.applied(leaf.reduce, a, b) for a, b in zip(old, values, strict=True)]
        self._private[name] = values

    def read(self, ref: Ref, lane: int, position: Position) -> Any:
        """Give what an earlier leaf of this pass wrote."""
        name = cell(ref, position.known, self.loop, self.piece)
        # Each pass begins anew: what another pass wrote is in no register any more.
        if name not in self._private:
            raise TreeFault(f"{ref.buffer} is read in a pass that has not written it")
        return self._private[name][lane]


class Entry(NamedTuple):
    """Where the loops around a region were when it began."""

    at: Mapping[LoopId, int]
    known: Mapping[LoopId, int]

    def inside(self, position: Position) -> dict[LoopId, int]:
        """Give how far loops have gone since, as the code knows it."""
        return {loop: place - self.known.get(loop, 0) for loop, place in position.known.items()}

    def home(self, ref: Ref, offset: int) -> int:
        """Give the element at an offset that counts from where the reference was."""
        return offset + sum(stride * self.at[loop] for loop, stride in ref.strides if loop in self.at)
