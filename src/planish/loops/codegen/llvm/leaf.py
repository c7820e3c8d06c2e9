"""Writes leaves as IR: an expression and what becomes of its value."""

from __future__ import annotations

from typing import NamedTuple

from planish.loops.codegen.llvm.arithmetic import Arithmetic
from planish.loops.codegen.llvm.held import Held
from planish.loops.codegen.llvm.ir_writer import Val, Writer
from planish.loops.codegen.llvm.memory import Memory
from planish.loops.ir.annotated import Lanes
from planish.loops.ir.cells import Cell, Piece, cell, summed
from planish.loops.ir.tree import Call, Leaf, Loop, LoopId, Ref, Value
from planish.loops.lang.program import Const


class Place(NamedTuple):
    """Where a leaf is written.

    Args:
        loop: the vectorised loop around it; None if a single element is computed.
        piece: which iterations of that loop.
        number: the piece's number, from 0.
        lanes: what the loop's passes do.
    """

    loop: Loop | None = None
    piece: Piece = Piece(0, 1, 1)
    number: int = 0
    lanes: Lanes | None = None


class Leaves:
    """Writes the leaves of one function.

    Args:
        writer: of the function.
        memory: of the function.
    """

    def __init__(self, writer: Writer, memory: Memory) -> None:
        self.writer = writer
        self.memory = memory
        self.arithmetic = Arithmetic(writer)
        self.at: dict[LoopId, int] = {}
        """The enclosing loops' positions, as far as they are known; from the counter where one counts."""
        self.held: Held | None = None
        """What registers hold here."""
        self._private: dict[Cell, Val] = {}

    def piece(self, lanes: Lanes, piece: Piece, number: int) -> None:
        """Write all leaves of a vectorised loop for some of its iterations."""
        self._private = {}
        for leaf in lanes.loop.body:
            assert isinstance(leaf, Leaf)
            self.leaf(leaf, Place(lanes.loop, piece, number, lanes))

    def leaf(self, leaf: Leaf, place: Place) -> None:
        """Write one leaf."""
        if place.lanes and leaf.target.buffer in place.lanes.summed:
            self._accumulate(leaf, place)
        elif leaf.reduce is None:
            self._write(leaf.target, place, self._value(leaf.value, place))
        else:
            old = self._read(leaf.target, place)
            self._write(leaf.target, place, self._reduced(leaf.reduce, old, leaf.value, place))

    def _accumulate(self, leaf: Leaf, place: Place) -> None:
        """Reduce lane by lane; lanes that do not count keep what they have."""
        assert self.held is not None
        assert leaf.reduce is not None
        piece = place.piece
        # By turns, so that a piece does not wait for the sum of the one before.
        accumulator = summed(leaf, self.at, piece, place.number % self.held.region.parts)
        old = self.held.value(accumulator)
        new = self._reduced(leaf.reduce, old, leaf.value, place)
        # Other lanes read zeros, which need not be neutral: exp(0) is 1, and 0 may be the greatest.
        if piece.active < piece.lanes:
            bits = ", ".join(f"i1 {int(i < piece.active)}" for i in range(piece.lanes))
            t = self.writer.type(piece.lanes)
            text = f"select <{piece.lanes} x i1> <{bits}>, {t} {new.name}, {t} {old.name}"
            new = Val(self.writer.define(text), piece.lanes)
        self.held.change(accumulator, new)

    def _reduced(self, reduce: str, old: Val, value: Value, place: Place) -> Val:
        if reduce == "add" and isinstance(value, Call) and value.function == "mul":
            return self._fused(value, old, place)
        return self.arithmetic.combine(reduce, old, self._value(value, place))

    def _value(self, value: Value, place: Place) -> Val:
        if isinstance(value, Const):
            return self.writer.number(value.value)
        if isinstance(value, Ref):
            return self._read(value, place)
        if value.function == "gather":
            return self._gathered(value, place)
        if value.function == "add":
            for product, rest in (value.args, value.args[::-1]):
                if isinstance(product, Call) and product.function == "mul":
                    return self._fused(product, self._value(rest, place), place)
        return self.arithmetic.apply(value.function, [self._value(a, place) for a in value.args])

    def _gathered(self, value: Call, place: Place) -> Val:
        """Load an element by an index, which is the same in all lanes."""
        base, index, stride, extent = value.args
        assert isinstance(base, Ref)
        assert isinstance(stride, Const)
        assert isinstance(extent, Const)
        found = self._value(index, place)
        if isinstance(index, Ref) and self.memory.is_whole(index):
            whole = self.arithmetic.within(found, extent.value)
        else:
            whole = self.arithmetic.index(self.arithmetic.first(found), extent.value)
        c = cell(base, self.at, place.loop, place.piece)
        return self.memory.load_behind(base, c, place.piece.lanes, whole, int(stride.value))

    def _fused(self, product: Call, addend: Val, place: Place) -> Val:
        """Write product + addend as one operation."""
        factors = [self._value(a, place) for a in product.args]
        return self.arithmetic.apply("fma", [*factors, addend])

    def _lane_private(self, ref: Ref, place: Place) -> bool:
        return place.lanes is not None and ref.buffer in place.lanes.private

    def _read(self, ref: Ref, place: Place) -> Val:
        c = cell(ref, self.at, place.loop, place.piece)
        if self._lane_private(ref, place):
            return self._private[c]
        if self.held and ref.buffer in self.held.region.held:
            return self.held.value(c)
        return self.memory.load(ref, c, place.piece.lanes)

    def _write(self, ref: Ref, place: Place, value: Val) -> None:
        c = cell(ref, self.at, place.loop, place.piece)
        if self._lane_private(ref, place):
            self._private[c] = value
        elif self.held and ref.buffer in self.held.region.held:
            self.held.change(c, value)
        else:
            self.memory.store(ref, c, value)
