"""From the leaves of a region to the items of its straight-line code."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planish.loops.program import Const
from planish.loops.tree import Call, Leaf, Loop, Ref, Value
from planish.loops.x86.block import Block
from planish.loops.x86.isa import Isa
from planish.loops.x86.pointers import Pointers
from planish.loops.x86.region import Key, Region
from planish.loops.x86.vectors import Accumulator, Element, Operation, Vector

Deltas = tuple[int, ...]
"""How far unrolled iterations have moved a leaf's references, in bytes: its target, then what it reads."""
Make = Callable[[int, Deltas], None]
"""Appends a leaf's item for so many lanes, at a place."""


class Items:
    """Makes the items of one region; what does not depend on the iteration is worked out once for each leaf.

    Args:
        region: which vectors are held in registers.
        block: takes the items.
        pointers: where elements are; as they stand now, at the region's beginning.
        isa: instruction set and element type.
    """

    def __init__(self, region: Region, block: Block, pointers: Pointers, isa: Isa) -> None:
        self._region = region
        self._block = block
        self._pointers = pointers
        self._isa = isa
        self._made: dict[tuple[int, int], Make | None] = {}
        self._turns: dict[Key, int] = {}

    def maker(self, leaf: Leaf, inner: Loop | None) -> Make | None:
        """Prepare a leaf, vectorised along the loop `inner`; None if it has nothing to do."""
        key = id(leaf), id(inner)
        if key not in self._made:
            self._made[key] = None if self._is_start(leaf) else self._maker(leaf, inner)
        return self._made[key]

    def _is_start(self, leaf: Leaf) -> bool:
        """Whether the leaf gives held vectors their first value, which they have from the beginning."""
        buffer = leaf.target.buffer
        held = buffer in self._region.fresh and buffer in self._region.reduce
        return held and isinstance(leaf.value, Const)

    def _maker(self, leaf: Leaf, inner: Loop | None) -> Make:
        region, full = self._region, self._isa.lanes
        buffer = leaf.target.buffer
        add, reduce = self._block.add, leaf.reduce
        if buffer not in region.reduce and buffer not in region.local:
            value = self._vector(leaf.value, inner, iter(range(1, 100)))
            place = self._element(leaf.target, inner, 1, 0)
            if reduce is not None:
                return self._in_memory(reduce, place, value)
            return lambda lanes, deltas: add(place(lanes, deltas), None, value(lanes, deltas), full)
        lanewise = buffer in region.lanewise
        if self._is_product(leaf) and (self._isa.wide or not lanewise):
            return self._product(leaf, inner, lanewise)
        value = self._vector(leaf.value, inner, iter(range(1, 100)))
        held = self._register(leaf.target, inner)

        def accumulate(lanes: int, deltas: Deltas) -> None:
            target = Accumulator(held(lanes, deltas))
            add(target, reduce, value(lanes, deltas), lanes if lanewise else full)

        return accumulate

    def _in_memory(
        self, reduce: str, place: Callable[[int, Deltas], Element], value: Callable[[int, Deltas], Vector]
    ) -> Make:
        """Reduce into an element that no register holds."""
        add, full = self._block.add, self._isa.lanes

        def make(lanes: int, deltas: Deltas) -> None:
            target = place(lanes, deltas)
            add(target, None, Operation(reduce, (target, value(lanes, deltas))), full)

        return make

    def _is_held(self, ref: Ref) -> bool:
        return ref.buffer in self._region.reduce or ref.buffer in self._region.local

    def _is_product(self, leaf: Leaf) -> bool:
        value = leaf.value
        return (
            leaf.reduce == "add"
            and isinstance(value, Call)
            and value.function == "mul"
            and all(isinstance(arg, Ref) and not self._is_held(arg) for arg in value.args)
        )

    def _product(self, leaf: Leaf, inner: Loop | None, lanewise: bool) -> Make:
        assert isinstance(leaf.value, Call)
        a, b = leaf.value.args
        assert isinstance(a, Ref)
        assert isinstance(b, Ref)
        full, add = self._isa.lanes, self._block.add_product
        held = self._register(leaf.target, inner)
        left, right = self._element(a, inner, full, 1), self._element(b, inner, full, 2)

        def multiply_add(lanes: int, deltas: Deltas) -> None:
            add(held(lanes, deltas), left(lanes, deltas), right(lanes, deltas), lanes if lanewise else full)

        return multiply_add

    def _register(self, ref: Ref, inner: Loop | None) -> Callable[[int, Deltas], int]:
        """Prepare which register a target has; sums that are kept in parts take their registers by turns."""
        key, registers, turns = self._key(ref, inner, 0), self._region.registers, self._turns

        def register(lanes: int, deltas: Deltas) -> int:
            here = key(lanes, deltas)
            parts = registers[here]
            if len(parts) == 1:
                return parts[0]
            turn = turns[here] = turns.get(here, -1) + 1
            return parts[turn % len(parts)]

        return register

    def _key(self, ref: Ref, inner: Loop | None, number: int) -> Callable[[int, Deltas], Key]:
        """Prepare which held vector a reference names."""
        pointer, size = self._pointers.of(ref), self._isa.itemsize
        start = ref.offset * size - pointer.shift
        moving = inner is not None and inner.id in ref.stride
        buffer = ref.buffer

        def key(lanes: int, deltas: Deltas) -> Key:
            return buffer, (start + pointer.shift + deltas[number]) // size, lanes if moving else 1

        return key

    def _element(
        self, ref: Ref, inner: Loop | None, still: int, number: int
    ) -> Callable[[int, Deltas], Element]:
        """Prepare where a reference is; it has `still` lanes if the vector's loop does not move it."""
        pointer = self._pointers.of(ref)
        offset = ref.offset * self._isa.itemsize
        stride = ref.stride.get(inner.id, 0) if inner else 0
        elements = self._block.elements
        tables: dict[int, dict[int, Element]] = {}

        def element(lanes: int, deltas: Deltas) -> Element:
            count = lanes if stride else still
            known = tables.get(count)
            if known is None:
                known = tables[count] = elements(pointer, stride, count)
            disp = offset + pointer.shift - pointer.drift + deltas[number]
            found = known.get(disp)
            if found is None:
                found = known[disp] = Element(pointer, disp, stride, count)
            return found

        return element

    def _vector(
        self, value: Value, inner: Loop | None, numbers: Iterator[int]
    ) -> Callable[[int, Deltas], Vector]:
        """Prepare a leaf's value; `numbers` are the places of its references among the deltas."""
        match value:
            case Const(number):
                return lambda _lanes, _deltas: self._block.number(number)
            case Call(function, args):
                parts = [self._vector(arg, inner, numbers) for arg in args]
                return lambda lanes, deltas: Operation(function, tuple([p(lanes, deltas) for p in parts]))
            case Ref():
                place = next(numbers)
                if not self._is_held(value):
                    return self._element(value, inner, self._isa.lanes, place)
                key, held = self._key(value, inner, place), self._region.registers
                return lambda lanes, deltas: Accumulator(held[key(lanes, deltas)][0])
