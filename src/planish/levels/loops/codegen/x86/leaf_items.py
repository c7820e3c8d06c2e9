"""Leaves of a region as items of a basic block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, repeat
from typing import TypeGuard

from planish.levels.loops.codegen.x86.basic_block import BasicBlock
from planish.levels.loops.codegen.x86.isa import Isa
from planish.levels.loops.codegen.x86.pointers import Pointers
from planish.levels.loops.codegen.x86.vectors import Accumulator, Element, Gathered, Operation, Vector
from planish.levels.loops.ir.annotated import Region, Slot
from planish.levels.loops.ir.tree import Call, Leaf, Loop, Ref, Value
from planish.levels.loops.lang.program import DTYPES, INDICES, Const

Lanes = Sequence[int]
"""How many lanes each unrolled iteration of a leaf has."""
Moves = Sequence[Sequence[int]]
"""For each reference of a leaf, its target first: how far each of these iterations has moved it, in bytes."""
Registers = Mapping[str, Mapping[Slot, Sequence[int]]]
"""Buffer to its vectors, each with the numbers of its registers."""
Make = Callable[[Lanes, Moves], None]
"""Appends a leaf's items for some unrolled iterations."""
Numbers = Callable[[Lanes, Moves], list[int]]
"""Returns the register of each iteration's target."""
Vectors = Callable[[Lanes, Moves], Sequence[Vector]]
"""Returns each iteration's value."""


class Items:
    """Makes the items of one region; what does not depend on the iteration is worked out once for each leaf.

    Args:
        region: which vectors are held in registers.
        registers: in which, as it stands when items are made.
        block: takes the items.
        pointers: where elements are; as they stand now, at the region's beginning.
    """

    def __init__(
        self, region: Region, registers: Registers, block: BasicBlock, pointers: Pointers, isa: Isa
    ) -> None:
        self._registers = registers
        self._region = region
        self._block = block
        self._pointers = pointers
        self._isa = isa
        self._made: dict[tuple[int, int], Make | None] = {}
        self._turns: dict[tuple[str, Slot], int] = {}

    def maker(self, leaf: Leaf, inner: Loop | None) -> Make | None:
        """Prepare a leaf, vectorised along the loop `inner`; None if it has nothing to do."""
        key = id(leaf), id(inner)
        if key not in self._made:
            self._made[key] = None if self._region.is_start(leaf) else self._maker(leaf, inner)
        return self._made[key]

    def _maker(self, leaf: Leaf, inner: Loop | None) -> Make:
        reduce, full, add = leaf.reduce, self._isa.lanes, self._block.add
        if leaf.target.buffer not in self._registers:
            targets = self._elements(leaf.target, inner, 1, 0)
            values = self._vectors(leaf.value, inner, count(1))

            def write(lanes: Lanes, moves: Moves) -> None:
                for target, value in zip(targets(lanes, moves), values(lanes, moves), strict=True):
                    add(target, None, Operation(reduce, (target, value)) if reduce else value, full)

            return write
        lanewise = leaf.target.buffer in self._region.lanewise
        held = self._targets(leaf.target, inner)
        # Part of a vector is added with a mask, which AVX2 has not.
        if self._is_product(leaf) and (self._isa.wide or not lanewise):
            return self._product(leaf, inner, held, lanewise)
        # The target is number 0 of the references.
        values = self._vectors(leaf.value, inner, count(1))

        def accumulate(lanes: Lanes, moves: Moves) -> None:
            # What is beyond the result's end is never stored, and may be anything; where lanes are summed, it
            # counts.
            counts = lanes if lanewise else repeat(full)
            for register, value, n in zip(held(lanes, moves), values(lanes, moves), counts, strict=False):
                add(Accumulator(register), reduce, value, n)

        return accumulate

    def _is_product(self, leaf: Leaf) -> bool:
        """Return whether one instruction multiplies two elements in memory and adds."""
        if self._isa.is_integer:
            return leaf.reduce == "add" and self._isa.forms.fma > 0 and self._of_words(leaf.value)
        return leaf.reduce == "add" and self._multiplies(leaf.value)

    def _multiplies(self, value: Value) -> TypeGuard[Call]:
        """Return whether a value is a product of two elements in memory."""
        return (
            isinstance(value, Call)
            and value.function == "mul"
            and all(isinstance(arg, Ref) and arg.buffer not in self._registers for arg in value.args)
        )

    def _of_words(self, value: Value) -> bool:
        """Return whether it is a product of two elements of int8: 16 bits of either are enough."""
        if not self._multiplies(value):
            return False
        return all(self._pointers.of(f).dtype == "int8" for f in value.args if isinstance(f, Ref))

    def _product(self, leaf: Leaf, inner: Loop | None, held: Numbers, lanewise: bool) -> Make:
        full, add = self._isa.lanes, self._block.add_products
        _, a, b = leaf.refs
        first = self._isa.is_integer and inner is not None and inner.id in a.stride
        left = self._elements(a, inner, full, 1, word=first)
        right = self._elements(b, inner, full, 2, word=self._isa.is_integer and not first)

        def multiply_add(lanes: Lanes, moves: Moves) -> None:
            counts = lanes if lanewise else [full] * len(lanes)
            add(held(lanes, moves), left(lanes, moves), right(lanes, moves), counts)

        return multiply_add

    def _targets(self, ref: Ref, inner: Loop | None) -> Numbers:
        """Prepare which registers a target has; sums that are kept in parts take theirs by turns."""
        slots, table = self._slots(ref, inner, 0), self._registers[ref.buffer]
        pointer, buffer, turns = self._pointers.of(ref), ref.buffer, self._turns
        asked: tuple[int, Moves] | None = None
        same: list[int] = []

        def registers(lanes: Lanes, moves: Moves) -> list[int]:
            nonlocal asked, same
            # Iterations of a reduction share their targets. `Unroller` keeps its lists, so that the same
            # iterations have the same one.
            if asked is None or asked[0] != pointer.unroll_offset or asked[1] is not moves:
                asked = pointer.unroll_offset, moves
                same = [table[slot][0] for slot in slots(lanes, moves)]
            return same

        def by_turns(lanes: Lanes, moves: Moves) -> list[int]:
            found: list[int] = []
            for slot in slots(lanes, moves):
                turn, parts = 0, table[slot]
                if len(parts) > 1:
                    turn = turns[buffer, slot] = turns.get((buffer, slot), -1) + 1
                found.append(parts[turn % len(parts)])
            return found

        return registers if self._region.copies == 1 else by_turns

    def _slots(self, ref: Ref, inner: Loop | None, number: int) -> Callable[[Lanes, Moves], list[Slot]]:
        """Prepare which held vectors a reference names."""
        pointer = self._pointers.of(ref)
        size = DTYPES[pointer.dtype]
        start = ref.offset * size - pointer.unroll_offset
        moving = inner is not None and inner.id in ref.stride

        def slots(lanes: Lanes, moves: Moves) -> list[Slot]:
            base = start + pointer.unroll_offset
            offsets = [(base + move) // size for move in moves[number]]
            return list(zip(offsets, lanes if moving else repeat(1), strict=False))

        return slots

    def _elements(
        self, ref: Ref, inner: Loop | None, still: int, number: int, *, word: bool = False
    ) -> Callable[[Lanes, Moves], list[Element]]:
        """Prepare where a reference is; it has `still` lanes if the vector's loop does not move it."""
        pointer = self._pointers.of(ref)
        offset = ref.offset * DTYPES[pointer.dtype]
        stride = ref.stride.get(inner.id, 0) if inner else 0
        known = self._block.elements(pointer, stride, word)
        wide, full = self._isa.wide, self._isa.lanes
        plain = pointer.dtype == self._isa.dtype

        def new(slot: tuple[int, int]) -> Element:
            disp, lanes = slot
            # An instruction takes a whole vector from memory, or with EVEX one element for all lanes.
            folds = plain and (wide if stride == 0 else stride == 1 and lanes == full)
            element = known[slot] = Element(pointer, disp, stride, lanes, folds, word)
            return element

        def elements(lanes: Lanes, moves: Moves) -> list[Element]:
            base = offset + pointer.unroll_offset - pointer.offset
            counts = lanes if stride else repeat(still)
            slots = zip([base + move for move in moves[number]], counts, strict=False)
            return [known.get(slot) or new(slot) for slot in slots]

        return elements

    def _vectors(
        self, value: Value, inner: Loop | None, numbers: Iterator[int], *, word: bool = False
    ) -> Vectors:
        """Prepare a leaf's value; `numbers` are the indices of its references among the moves."""
        full, block = self._isa.lanes, self._block
        match value:
            case Const(number):
                return lambda lanes, _moves: [block.number(number)] * len(lanes)
            case Call("gather", (Ref() as base, index, Const(stride), Const(extent))):
                # The base before its index, as `Leaf.refs` lists them: the moves come in that order.
                elements = self._elements(base, inner, full, next(numbers))
                indices = self._vectors(index, None, numbers)
                dtype = self._pointers.of(index).dtype if isinstance(index, Ref) else ""
                integer_bytes = DTYPES[dtype] if dtype in INDICES else 0
                size = int(stride) * DTYPES[self._pointers.of(base).dtype], int(extent), integer_bytes
                return lambda lanes, moves: [
                    Gathered(element, row, *size)
                    for element, row in zip(elements(lanes, moves), indices(lanes, moves), strict=True)
                ]
            case Call():
                words = self._isa.is_integer and self._of_words(value)
                function = "words" if words else value.function
                parts = [
                    self._vectors(arg, inner, numbers, word=words and i == 0)
                    for i, arg in enumerate(value.args)
                ]
                return lambda lanes, moves: [
                    Operation(function, found)
                    for found in zip(*[part(lanes, moves) for part in parts], strict=True)
                ]
            case Ref():
                number = next(numbers)
                if value.buffer not in self._registers:
                    return self._elements(value, inner, full, number, word=word)
                slots, table = self._slots(value, inner, number), self._registers[value.buffer]
                return lambda lanes, moves: [Accumulator(table[p][0]) for p in slots(lanes, moves)]
