"""The numbered registers of an interpreter of annotated trees."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from planish.loops.ir.annotated import Place, Region, Vectors
from planish.loops.ir.position import Entry, Position, Vector
from planish.loops.ir.storage import Storage, TreeFault
from planish.loops.ir.tree import Leaf, Ref
from planish.loops.lang.program import IDENTITY

Values = list[Any]
"""Those of the lanes of a register."""


class Numbered:
    """The register file of a region; see `planish.loops.ir.annotated.Region`."""

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
        for place, (first, *parts) in self._table[buffer].items():
            for number in parts:
                self._file[number] = [identity] * self._lanes
            # To lanes that become one element, memory's value comes then.
            if buffer in self.region.fresh or buffer in self.region.lanewise:
                self._file[first] = [identity] * self._lanes
            else:
                for lane, element in enumerate(self._elements(buffer, place)):
                    self._file[first][lane] = self._storage.read(buffer, element)

    def _elements(self, buffer: str, place: Place) -> list[int]:
        """List where a vector's lanes are in memory."""
        offset, lanes = place
        start, stride = self._entry.home(self.region.homes[buffer][place], offset), self.region.stride
        return [start + lane * stride.get(buffer, 1) for lane in range(lanes)]

    def _numbers(self, ref: Ref, vector: Vector | None) -> list[int]:
        stride = ref.stride.get(vector.loop.id, 0) if vector else 0
        inside = self._entry.inside(self._position)
        offset = ref.offset + sum(s * inside[loop] for loop, s in ref.strides if loop in inside)
        place = offset, vector.active if vector and stride else 1
        if place not in self._table[ref.buffer]:
            raise TreeFault(f"no register holds {place} of {ref.buffer}")
        if stride and stride != self.region.stride.get(ref.buffer, 1):
            raise TreeFault(f"the lanes of {ref.buffer} are {stride} elements apart")
        return self._table[ref.buffer][place]

    def read(self, ref: Ref, vector: Vector | None, lane: int) -> Any:
        """Give a lane of what a reference names."""
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
            for place, numbers in self._table[buffer].items():
                first, *parts = numbers
                del numbers[1:]
                for number in parts:
                    self._file[first] = self._joined(function, first, number)
                if buffer in self.region.lanewise:
                    self._file[first] = [self._one(buffer, function, place, first)] * self._lanes

    def _joined(self, function: str, first: int, number: int) -> Values:
        pairs = zip(self._file[first], self._file[number], strict=True)
        return [None if None in (a, b) else self._storage.applied(function, a, b) for a, b in pairs]

    def _one(self, buffer: str, function: str, place: Place, number: int) -> Any:
        values = [v for v in self._file[number] if v is not None]
        if buffer not in self.region.fresh:
            values.append(self._storage.read(buffer, self._elements(buffer, place)[0]))
        total = values[0]
        for value in values[1:]:
            total = self._storage.applied(function, total, value)
        return total

    def end(self) -> None:
        """Bring memory up to date."""
        for buffer in self._table.keys() - self.region.local:
            for place, (number, *parts) in self._table[buffer].items():
                values = self._file[number]
                if parts:
                    raise TreeFault(f"{buffer} is stored before its parts are put together")
                for value, element in zip(values, self._elements(buffer, place), strict=False):
                    if value is None:
                        raise TreeFault(f"register {number} of {buffer} is stored before it is written")
                    self._storage.write(buffer, element, value)
