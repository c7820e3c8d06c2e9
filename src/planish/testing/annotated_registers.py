"""Registers of the interpreter of annotated trees: where it is, numbered registers, and named values."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from planish.levels.loops.ir.annotated import (
    Cell,
    CellRegion,
    Lanes,
    Piece,
    Region,
    Slot,
    Vectors,
    cell,
    summed,
)
from planish.levels.loops.ir.tree import Leaf, Loop, LoopId, Ref
from planish.levels.loops.lang.program import IDENTITY
from planish.testing.interpreter import Storage, TreeFault


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
        """Return where a loop is, before it goes on from there; None if it does not enclose this slot."""
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
        """Return what an earlier leaf of this pass wrote."""
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
        """Return how far loops have gone since, as the code knows it."""
        return {loop: slot - self.known.get(loop, 0) for loop, slot in position.known.items()}

    def home(self, ref: Ref, offset: int) -> int:
        """Return the element at an offset that counts from where the reference was."""
        return offset + sum(stride * self.at[loop] for loop, stride in ref.strides if loop in self.at)


Values = list[Any]
"""Those of the lanes of a register."""


class Numbered:
    """The register file of a region; see `planish.levels.loops.ir.annotated.Region`."""

    def __init__(self, region: Region, vectors: Vectors, storage: Storage, position: Position) -> None:
        self.region = region
        self._lanes = vectors.lanes
        self._storage = storage
        self._position = position
        self._entry = Entry(dict(position.at), dict(position.known))
        # Copied: once parts are put together, only the first register of each is left in it.
        self._table = {b: {p: [*numbers] for p, numbers in t.items()} for b, t in region.registers.items()}
        used = [n for table in self._table.values() for numbers in table.values() for n in numbers]
        if len(set(used)) < len(used) or not all(region.free <= n < vectors.registers for n in used):
            raise TreeFault(f"registers {sorted(used)} are not of one vector each, from {region.free}")
        self._file: dict[int, Values] = {n: [None] * self._lanes for n in used}
        self._lanewise = set(region.lanewise)
        self._turn = 0
        for buffer in self._table:
            self._begin(buffer)

    def holds(self, buffer: str) -> bool:
        """Whether a buffer's elements are in registers."""
        return buffer in self._table

    def _begin(self, buffer: str) -> None:
        reduce = self.region.reduce.get(buffer)
        if reduce is None:
            return
        identity = self._storage.number(IDENTITY[reduce])
        for slot, (first, *parts) in self._table[buffer].items():
            for number in parts:
                self._file[number] = [identity] * self._lanes
            # To lanes that become one element, memory's value comes then.
            if buffer in self.region.fresh or buffer in self.region.lanewise:
                self._file[first] = [identity] * self._lanes
            else:
                for lane, element in enumerate(self._elements(buffer, slot)):
                    self._file[first][lane] = self._storage.read(buffer, element)

    def _elements(self, buffer: str, slot: Slot) -> list[int]:
        """List where a vector's lanes are in memory."""
        offset, lanes = slot
        start, stride = self._entry.home(self.region.homes[buffer][slot], offset), self.region.stride
        return [start + lane * stride.get(buffer, 1) for lane in range(lanes)]

    def _numbers(self, ref: Ref, vector: Vector | None) -> list[int]:
        stride = ref.stride.get(vector.loop.id, 0) if vector else 0
        inside = self._entry.inside(self._position)
        offset = ref.offset + sum(s * inside[loop] for loop, s in ref.strides if loop in inside)
        slot = offset, vector.active if vector and stride else 1
        if slot not in self._table[ref.buffer]:
            raise TreeFault(f"no register holds {slot} of {ref.buffer}")
        if stride and stride != self.region.stride.get(ref.buffer, 1):
            raise TreeFault(f"the lanes of {ref.buffer} are {stride} elements apart")
        return self._table[ref.buffer][slot]

    def read(self, ref: Ref, vector: Vector | None, lane: int) -> Any:
        """Return a lane of what a reference names."""
        number, *parts = self._numbers(ref, vector)
        if parts or ref.buffer in self._lanewise:
            raise TreeFault(f"{ref.buffer} is read before its parts are put together")
        found = self._file[number][lane if vector and vector.loop.id in ref.stride else 0]
        if found is None:
            raise TreeFault(f"register {number} of {ref.buffer} is read before it is written")
        return found

    def write(self, leaf: Leaf, vector: Vector | None, values: list[Any]) -> None:
        """Set, or reduce into, what a leaf's target names."""
        numbers = self._numbers(leaf.target, vector)
        self._turn += 1
        register = self._file[numbers[self._turn % len(numbers)]]
        moving = vector is not None and vector.loop.id in leaf.target.stride
        if len(values) > 1 and not moving and leaf.target.buffer not in self.region.lanewise:
            raise TreeFault(f"the lanes of a vector go into one of {leaf.target.buffer}")
        for lane, value in enumerate(values):
            old = register[lane]
            if leaf.reduce and old is None:
                raise TreeFault(f"{leaf.target.buffer} is reduced before it has begun")
            register[lane] = (
                self._storage.applied(leaf.reduce, old, value) if leaf.reduce and old is not None else value
            )

    def make_whole(self, buffers: AbstractSet[str]) -> None:
        """Put together what was kept in parts, or lane by lane."""
        for buffer in self._table.keys() & buffers:
            self._lanewise.discard(buffer)
            function = self.region.reduce[buffer]
            for slot, numbers in self._table[buffer].items():
                first, *parts = numbers
                del numbers[1:]
                for number in parts:
                    self._file[first] = self._joined(function, first, number)
                if buffer in self.region.lanewise:
                    self._file[first] = [self._one(buffer, function, slot, first)] * self._lanes

    def _joined(self, function: str, first: int, number: int) -> Values:
        pairs = zip(self._file[first], self._file[number], strict=True)
        return [None if None in (a, b) else self._storage.applied(function, a, b) for a, b in pairs]

    def _one(self, buffer: str, function: str, slot: Slot, number: int) -> Any:
        values = [v for v in self._file[number] if v is not None]
        if buffer not in self.region.fresh:
            values.append(self._storage.read(buffer, self._elements(buffer, slot)[0]))
        total = values[0]
        for value in values[1:]:
            total = self._storage.applied(function, total, value)
        return total

    def end(self) -> None:
        """Bring memory up to date."""
        for buffer in self._table.keys() - self.region.local:
            for slot, (number, *parts) in self._table[buffer].items():
                values = self._file[number]
                if parts:
                    raise TreeFault(f"{buffer} is stored before its parts are put together")
                for value, element in zip(values, self._elements(buffer, slot), strict=False):
                    if value is None:
                        raise TreeFault(f"register {number} of {buffer} is stored before it is written")
                    self._storage.write(buffer, element, value)


class Cells:
    """The named values of a region; see `planish.levels.loops.ir.annotated.CellRegion`.

    Attributes:
        carried: for each loop that counts around this slot, the cells that it may touch.
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
        """Return a lane of what a reference names."""
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
