"""Interpreter of annotated trees: slow and exact, the judge of decisions and of what carries them out.

It does what the annotations say, and nothing else: what is held is read from registers alone, a vector
computes all its lanes before it writes one, a loop that counts has the same registers in every iteration.
So a wrong decision gives a wrong answer here, or a `TreeFault`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.levels.loops.ir.annotated import (
    AnnotatedTree,
    Block,
    CellRegion,
    Function,
    Item,
    Lanes,
    Nest,
    Part,
    Piece,
    Region,
    Unrolled,
)
from planish.levels.loops.ir.tree import Call, Leaf, Loop, Node, Ref, Value, iterations, within
from planish.levels.loops.lang.program import Const
from planish.testing.annotated_registers import Cells, Numbered, Position, Vector
from planish.testing.interpreter import Storage, TreeFault, looked_up


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
        self.file: Numbered | Cells | None = None
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
            case Nest():
                self._nest(item)
            case Block():
                for inner in item.items:
                    self.item(inner)
            case Region():
                self._region(item)
            case CellRegion():
                self._cell_region(item)
            case Lanes():
                for leaf in item.loop.body:
                    assert isinstance(leaf, Leaf)
                    self._leaf(leaf)

    # Registers

    def _region(self, region: Region) -> None:
        if self.file is not None:
            raise TreeFault("a region inside a region")
        file = self.file = Numbered(region, self.annotated.vectors, self.storage, self.position)
        for item, made in zip(region.items, region.made, strict=True):
            self.item(item)
            file.make_whole(made)
        file.end()
        self.file = None

    def _cell_region(self, region: CellRegion) -> None:
        if self.file is not None:
            raise TreeFault("a region inside a region")
        file = self.file = Cells(region, self.storage, self.position)
        self.item(region.item)
        file.end()
        self.file = None

    # Loops

    def _nest(self, nest: Nest) -> None:
        loop, number, place = nest.loop, 0, self.position
        before = place.of(loop.id)
        for part in nest.parts:
            if part.lanes > self.annotated.vectors.lanes or part.width > part.lanes > 1:
                raise TreeFault(f"loop {loop.id} has vectors of {part.lanes} lanes for {part.width}")
            if isinstance(self.file, Cells) and part.kind == "counted":
                self.file.carried.append(frozenset(part.carried))
            for i in range(part.passes):
                # Passes that are left over follow the loop, unrolled.
                counted = part.kind == "counted" and i < part.passes // part.copies * part.copies
                copy = i % part.copies if counted else 0 if part.kind == "parallel" else i
                start = part.first + i * part.width
                # Where it is and what the code knows of it differ in a loop that counts: registers are named
                # by the latter.
                place.move(loop.id, before, start, part.first + copy * part.width)
                self._pass(loop, part, copy if counted else i, copy if counted else number + i)
            if isinstance(self.file, Cells) and part.kind == "counted":
                self.file.carried.pop()
            number += part.passes
        place.restore(loop.id, before)

    def _pass(self, loop: Loop, part: Part, i: int, number: int) -> None:
        body = part.body_of(i if part.others else 0)
        if part.kind == "parallel" or (self.storage.parallel is not None and len(self.position.at) == 1):
            self.storage.parallel = part.first + i
        if isinstance(body, Lanes):
            piece = Piece(self.position.known[loop.id], part.lanes, part.width)
            self.vector = Vector(loop, part.width, piece, number, body)
        elif part.lanes > 1:
            self.vector = None  # the leaves say themselves in whose vectors they are
        elif part.width == 1:
            self.storage.begin(loop, len(self.position.at))
        self.item(body)
        self.vector = None

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
        if isinstance(self.file, Numbered) and self.file.region.is_start(leaf):
            return
        lanes = range(self.vector.active if self.vector else 1)
        values = [self._value(leaf.value, lane) for lane in lanes]
        if self._in_registers(leaf.target):
            self._held(leaf, values)
            return
        # All values are computed before any is written: a vector's lanes do not see each other's results.
        elements = [self._element(leaf.target, lane) for lane in lanes]
        # A scatter's order is not defined, so code generators could not agree on who wins.
        if len(set(elements)) < len(elements):
            raise TreeFault(f"lanes of a vector write the same element of {leaf.target.buffer}")
        if leaf.reduce:
            old = [self.storage.read(leaf.target.buffer, element) for element in elements]
            values = [self.storage.applied(leaf.reduce, a, b) for a, b in zip(old, values, strict=True)]
        for element, value in zip(elements, values, strict=True):
            self.storage.write(leaf.target.buffer, element, value)

    def _held(self, leaf: Leaf, values: list[Any]) -> None:
        file = self.file
        if self.vector and self.vector.keeps(leaf.target.buffer):
            self.vector.write(leaf, values, self.position, self.storage)
        elif isinstance(file, Numbered | Cells):
            file.write(leaf, self.vector, values)

    def _in_registers(self, ref: Ref) -> bool:
        if self.vector and self.vector.keeps(ref.buffer):
            return True
        return self.file is not None and self.file.holds(ref.buffer)

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
        if self.vector and self.vector.keeps(ref.buffer):
            return self.vector.read(ref, lane, self.position)
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
