"""The named values of an interpreter of annotated trees."""

from __future__ import annotations

from typing import Any

from planish.loops.ir.annotated import CellRegion
from planish.loops.ir.cells import Cell, Piece, cell, summed
from planish.loops.ir.position import Entry, Position, Vector
from planish.loops.ir.storage import Storage, TreeFault
from planish.loops.ir.tree import Leaf, Ref
from planish.loops.lang.program import IDENTITY


class Cells:
    """The named values of a region; see `planish.loops.ir.annotated.CellRegion`.

    Attributes:
        carried: for each loop that counts around this place, the cells that it may touch.
    """

    def __init__(self, region: CellRegion, storage: Storage, position: Position) -> None:
        self.region = region
        self.carried: list[frozenset[Cell]] = []
        self._storage = storage
        self._position = position
        self._entry = Entry(dict(position.at), dict(position.known))
        self._values: dict[Cell, list[Any]] = {}
        self._changed: set[Cell] = set()

    def holds(self, buffer: str) -> bool:
        """Whether a buffer's elements are in registers."""
        return buffer in self.region.held

    def read(self, ref: Ref, vector: Vector | None, lane: int) -> Any:
        """Give a lane of what a reference names."""
        name = self._name(ref, vector)
        return self._value(name)[lane if name.stride else 0]

    def _name(self, ref: Ref, vector: Vector | None) -> Cell:
        inside = self._entry.inside(self._position)
        if vector is None:
            return cell(ref, inside, None, Piece(0, 1, 1))
        return cell(ref, inside, vector.loop, vector.piece)

    def _value(self, name: Cell) -> list[Any]:
        self._check(name)
        if name not in self._values:
            if name.reduce:
                # Parts begin with what changes nothing; memory's own value is added once, at the end.
                self._values[name] = [self._storage.number(IDENTITY[name.reduce])] * name.lanes
            else:
                elements = self._elements(name)
                self._values[name] = [self._storage.read(name.buffer, element) for element in elements]
        return self._values[name]

    def _check(self, name: Cell) -> None:
        for carried in self.carried:
            if name not in carried:
                raise TreeFault(f"a loop that counts does not carry {name}")

    def _elements(self, name: Cell) -> list[int]:
        start = self._entry.home(self.region.homes[name.buffer], name.offset)
        return [start + lane * name.stride for lane in range(name.active if name.stride else 1)]

    def write(self, leaf: Leaf, vector: Vector | None, values: list[Any]) -> None:
        """Set, or reduce into, what a leaf's target names."""
        sums = vector is not None and leaf.target.buffer in vector.lanes.summed
        if vector and sums:
            inside = self._entry.inside(self._position)
            # By turns, as code does it, so that additions to one register need not wait for each other.
            name = summed(leaf, inside, vector.piece, vector.number % self.region.parts)
        else:
            name = self._name(leaf.target, vector)
            if len(values) > 1 and not name.stride:
                raise TreeFault(f"the lanes of a vector go into one of {leaf.target.buffer}")
        old = self._value(name) if leaf.reduce else []
        self._check(name)
        if leaf.reduce:
            values = [self._storage.applied(leaf.reduce, a, b) for a, b in zip(old, values, strict=False)]
        # Lanes that are off keep their parts.
        self._values[name] = values + old[len(values) :]
        self._changed.add(name)

    def end(self) -> None:
        """Bring memory up to date."""
        for name, values in self._values.items():
            if name.reduce:
                element = self._entry.home(self.region.homes[name.buffer], name.offset)
                total = self._storage.read(name.buffer, element)
                for value in values:
                    total = self._storage.applied(name.reduce, total, value)
                self._storage.write(name.buffer, element, total)
            # What was only read may be an input.
            elif name in self._changed and name.buffer not in self.region.local:
                for element, value in zip(self._elements(name), values, strict=True):
                    self._storage.write(name.buffer, element, value)
