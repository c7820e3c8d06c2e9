"""Interpreter of annotated trees: slow and exact, the oracle for decisions and for what carries them out.

It does what the annotations say, and nothing else: what is held is read from registers alone, a vector
computes all its lanes before it writes one, a loop that counts has the same registers in every iteration.
So a wrong decision gives a wrong answer here, or a `TreeFault`.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planish.levels.loops.ir.annotated import (
    AnnotatedLoop,
    AnnotatedTree,
    Block,
    Function,
    Item,
    Part,
    Region,
    Slot,
    Unrolled,
    Vectors,
)
from planish.levels.loops.ir.tree import Call, Leaf, Loop, LoopId, Node, Ref, Value, iterations, within
from planish.levels.loops.lang.program import IDENTITY, Const
from planish.levels.loops.testing.interpreter import Storage, TreeFault, looked_up


class Position:
    """Position of an executor in the tree.

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
        """Put a loop back to where it was before."""
        if before is None:
            self.at.pop(loop, None)
            self.known.pop(loop, None)
        else:
            self.at[loop], self.known[loop] = before


class Vector(NamedTuple):
    """A pass of a vector loop.

    Args:
        loop: the loop.
        active: how many lanes count.
    """

    loop: Loop
    active: int


class Entry(NamedTuple):
    """Iterations of the loops around a region when it began."""

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


class RegisterFile:
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
        """Return whether a buffer's elements are in registers."""
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


def emulate(annotated: AnnotatedTree, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Execute an annotated tree.

    Args:
        annotated: the whole kernel; its ahead part is executed first.
        arrays: input to its elements, in any shape of the right size.

    Returns:
        Output to its elements, flat and in its own type; NaN, or `UNWRITTEN`, where
        nothing was written.

    Raises:
        TreeFault: the tree or an annotation breaks a rule.
    """
    storage = Storage(annotated.tree, arrays, annotated.spaces)
    with np.errstate(all="ignore"):
        for function in (*annotated.ahead, *annotated.body):
            _Emulator(annotated, storage).function(function)
    return storage.outputs()


class _Emulator:
    def __init__(self, annotated: AnnotatedTree, storage: Storage) -> None:
        self.annotated = annotated
        self.tree = annotated.tree
        self.storage = storage
        self.position = Position()
        self.file: RegisterFile | None = None
        self.vector: Vector | None = None
        """The pass of a vector loop that is being executed."""

    def function(self, function: Function) -> None:
        self.storage.begin_root()
        self.storage.parallel = None
        self.item(function.item)

    def item(self, item: Item) -> None:
        match item:
            case Unrolled():
                self._unrolled(item)
            case AnnotatedLoop():
                self._annotated_loop(item)
            case Block():
                for inner in item.items:
                    self.item(inner)
            case Region():
                self._region(item)

    # Registers

    def _region(self, region: Region) -> None:
        if self.file is not None:
            raise TreeFault("a region inside a region")
        file = self.file = RegisterFile(region, self.annotated.vectors, self.storage, self.position)
        for item, made in zip(region.items, region.made, strict=True):
            self.item(item)
            file.make_whole(made)
        file.end()
        self.file = None

    # Loops

    def _annotated_loop(self, item: AnnotatedLoop) -> None:
        loop, position = item.loop, self.position
        before = position.of(loop.id)
        for part in item.parts:
            if part.lanes > self.annotated.vectors.lanes or part.width > part.lanes > 1:
                raise TreeFault(f"loop {loop.id} has vectors of {part.lanes} lanes for {part.width}")
            for i in range(part.passes):
                # Passes that are left over follow the loop, unrolled.
                counted = part.kind == "counted" and i < part.passes // part.copies * part.copies
                copy = i % part.copies if counted else 0 if part.kind == "parallel" else i
                start = part.first + i * part.width
                # Where it is and what the code knows of it differ in a loop that counts: registers are named
                # by the latter.
                position.move(loop.id, before, start, part.first + copy * part.width)
                self._pass(loop, part, copy if counted else i)
        position.restore(loop.id, before)

    def _pass(self, loop: Loop, part: Part, i: int) -> None:
        if part.kind == "parallel" or (self.storage.parallel is not None and len(self.position.at) == 1):
            self.storage.parallel = part.first + i
        if part.lanes == 1 == part.width:
            self.storage.begin(loop, len(self.position.at))
        self.item(part.body)

    def _unrolled(self, item: Unrolled) -> None:
        node, inside, vector = item
        if isinstance(node, Loop):
            self._walk(node, inside)
            return
        self.vector = Vector(vector, inside[vector.axis]) if vector else None
        self._leaf(node)
        self.vector = None

    def _walk(self, node: Node, inside: Mapping[str, int]) -> None:
        """Execute a nest all of which is unrolled."""
        if isinstance(node, Leaf):
            self._leaf(node)
            return
        before, lanes = self.position.of(node.id), self.annotated.vectors.lanes
        full, tail = iterations(self.tree, inside, node)
        vectors = node.side_by_side
        here = full * node.step + tail
        for number, first in enumerate(range(0, here, lanes if vectors else node.step)):
            start = first if vectors else number
            self.position.move(node.id, before, start, start)
            if vectors:
                self.vector = Vector(node, min(lanes, here - first))
            else:
                self.storage.begin(node, len(self.position.at))
            inner = within(inside, node.axis, min(node.step, here - first))
            for child in node.body:
                self._walk(child, inner)
            self.vector = None
        self.position.restore(node.id, before)

    # Leaves

    def _leaf(self, leaf: Leaf) -> None:
        if self.file is not None and self.file.region.is_start(leaf):
            return
        lanes = range(self.vector.active if self.vector else 1)
        values = [self._value(leaf.value, lane) for lane in lanes]
        if self.file is not None and self.file.holds(leaf.target.buffer):
            self.file.write(leaf, self.vector, values)
            return
        # All values are computed before any is written: a vector's lanes do not see each other's results.
        elements = [self._element(leaf.target, lane) for lane in lanes]
        # A scatter's order is not defined, so code generators could not agree on the element that wins.
        if len(set(elements)) < len(elements):
            raise TreeFault(f"lanes of a vector write the same element of {leaf.target.buffer}")
        if leaf.reduce:
            old = [self.storage.read(leaf.target.buffer, element) for element in elements]
            values = [self.storage.applied(leaf.reduce, a, b) for a, b in zip(old, values, strict=True)]
        for element, value in zip(elements, values, strict=True):
            self.storage.write(leaf.target.buffer, element, value)

    def _value(self, value: Value, lane: int) -> Any:
        match value:
            case Const():
                return self.storage.number(value.value)
            case Ref():
                return self._read(value, lane)
            case Call("gather", (Ref() as base, index, Const(stride), Const(extent))):
                return self._read(looked_up(base, self._value(index, lane), stride, extent), lane)
            case _:
                return self.storage.applied(value.function, *[self._value(v, lane) for v in value.args])

    def _read(self, ref: Ref, lane: int) -> Any:
        if self.file is not None and self.file.holds(ref.buffer):
            return self.file.read(ref, self.vector, lane)
        return self.storage.read(ref.buffer, self._element(ref, lane))

    def _element(self, ref: Ref, lane: int) -> int:
        missing = [loop for loop, _ in ref.strides if loop not in self.position.at]
        if missing:
            raise TreeFault(f"{ref.buffer} moves with {missing[0]}, which does not enclose it")
        step = ref.stride.get(self.vector.loop.id, 0) if self.vector else 0
        at = self.position.at
        return ref.offset + step * lane + sum(stride * at[loop] for loop, stride in ref.strides)
