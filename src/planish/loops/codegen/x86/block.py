"""Straight-line code: a list of element operations, its loads, and the registers for them.

Loads share registers; when these run out, the one whose next use is farthest goes (Belady), and it can
always be loaded again, so nothing is ever spilled (thesis 3.4.2). A value that is used once, or for which
no register is free, becomes a memory operand of its instruction where the processor has such a form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from planish.core import TargetError
from planish.loops.codegen.x86.assembler import Assembler
from planish.loops.codegen.x86.choosing import TESTS, choose
from planish.loops.codegen.x86.extremes import EXTREMES, extreme
from planish.loops.codegen.x86.functions import expand
from planish.loops.codegen.x86.indexing import of_whole, to_place
from planish.loops.codegen.x86.isa import Isa
from planish.loops.codegen.x86.pointers import Pointer, Pointers
from planish.loops.codegen.x86.registers import Registers
from planish.loops.codegen.x86.transfers import Transfers
from planish.loops.codegen.x86.vectors import (
    Accumulator,
    Element,
    Gathered,
    Item,
    Loaded,
    Number,
    Operation,
    Product,
    Vector,
    loads_of,
)
from planish.loops.lower.mathlib import EXPANDED

# Items: so long before its first use a value is loaded.
LOOK_AHEAD = 6
REDUCE = {"add": "ADD", "max": "MAX", "min": "MIN", "mul": "MUL"}
_INSTRUCTION = {**REDUCE, "sub": "SUB", "div": "DIV"}


class Block:
    """Collects items and writes them as code.

    Args:
        asm: where the code goes.
        isa: instruction set and element type.
        pointers: where elements are.
        registers: how many vector registers it may use, from the first one.
        masks: lane count to opmask register; grows as counts turn up.
    """

    def __init__(
        self, asm: Assembler, isa: Isa, pointers: Pointers, registers: int, masks: dict[int, int]
    ) -> None:
        self.asm = asm
        self.isa = isa
        self.forms = isa.forms
        self._items: list[Item | Product] = []
        self._loads: list[tuple[Loaded, ...]] = []
        self._elements: dict[tuple[int, int, bool], dict[tuple[int, int], Element]] = {}
        self._numbers: dict[float, Number] = {}
        self._registers = Registers(registers, self._loads)
        self.transfers = Transfers(asm, isa, pointers, self._registers, masks)
        self.take, self.give = self._registers.take, self._registers.give
        self.load_number = self.transfers.load_number
        self._free = self._registers.free
        self._append = asm.append
        self._fma = isa.forms.fma
        self._first_vector = isa.vector(0)
        self._lanes = isa.lanes

    def elements(self, pointer: Pointer, stride: int, word: bool = False) -> dict[tuple[int, int], Element]:
        """The block's elements of one kind, by displacement and lanes; the caller adds to them."""
        return self._elements.setdefault((id(pointer), stride, word), {})

    def number(self, value: float) -> Number:
        """The block's object for a constant."""
        return self._numbers.setdefault(value, Number(value))

    def add(self, target: Accumulator | Element, reduce: str | None, value: Vector, lanes: int) -> None:
        """Append an item."""
        loads = tuple(loads_of(value))
        for load in loads:
            load.uses += 1
            load.last = len(self._items)
        self._loads.append(loads)
        self._items.append(Item(target, reduce, value, lanes))

    def add_products(
        self,
        registers: Sequence[int],
        lefts: Sequence[Loaded],
        rights: Sequence[Loaded],
        lanes: Sequence[int],
    ) -> None:
        """Append `register += left * right` for each of some registers, factors and lanes."""
        number = len(self._items)
        self._items.extend(zip(registers, lanes, strict=True))
        pairs = list(zip(lefts, rights, strict=True))
        self._loads.extend(pairs)
        for left, right in pairs:
            left.uses += 1
            right.uses += 1
            left.last = right.last = number
            number += 1

    def fill(self, registers: Sequence[int], value: float) -> None:
        """Put a constant into all lanes of registers."""
        self.transfers.load_numbers(registers, value)

    def flush(self) -> None:
        """Write the items; afterwards no loaded value is held."""
        if not self._items:
            return
        ahead, end, registers, coming = 0, len(self._items), self._registers, self._loads
        fma, first, full, append = self._fma, self._first_vector, self._lanes, self._append
        for number, item in enumerate(self._items):
            registers.now = number
            loads = coming[number]
            if ahead < end:
                # An item for which registers ran out loads for itself: it is not looked at again.
                ahead = max(self._load_early(ahead, min(end, number + LOOK_AHEAD)), number + 1)
            if isinstance(item, Item):
                self._write(item)
            else:
                left, right = loads
                if left.register >= 0 and right.register >= 0 and item[1] == full:
                    append((fma, first + item[0], first + left.register, first + right.register))
                else:
                    self._multiply_add(item, left, right)
            for load in loads:
                if load.last == number and load.register >= 0:
                    registers.let_go(load)
        self._clear()

    def _clear(self) -> None:
        """Forget the items, and what was loaded for them."""
        self._items.clear()
        self._loads.clear()
        self._registers.let_all_go()
        for table in self._elements.values():
            table.clear()
        self._numbers.clear()

    def _load_early(self, begin: int, end: int) -> int:
        """Load what these items and others too will need; gives the item for which registers run out."""
        for number in range(begin, end):
            for load in self._loads[number]:
                if load.register < 0 and load.uses > 1:
                    if len(self._free) < 2:  # one stays for what an item needs itself
                        return number
                    self._hold(load)
        return end

    def _hold(self, load: Loaded) -> int:
        """Load a value into a register that stays its own until its last use."""
        register = load.register
        if register < 0:
            register = self._free.pop() if self._free else self.take()
            if isinstance(load, Number):
                self.load_number(register, load.value)
            else:
                self.transfers.load(register, load)
            self._registers.hold(load, register)
        return register

    # Arithmetic

    def _write(self, item: Item) -> None:
        if isinstance(item.target, Accumulator):
            self._accumulate(item, item.target.register)
            return
        register = self._evaluate(item.value)
        # A store may take registers itself, for indices and masks.
        self._registers.pinned.add(register)
        self.transfers.store(register, item.target)
        self._registers.pinned.discard(register)
        self._release(item.value, register)

    def _accumulate(self, item: Item, target: int) -> None:
        value = item.value
        partial = item.lanes < self.isa.lanes and item.reduce is not None
        mask = self.transfers.mask(item.lanes) if partial and self.isa.wide else 0
        vector = self.isa.vector
        blended = partial and not self.isa.wide
        register = self._evaluate(value)
        if item.reduce:
            operand = self._neutral(register, item, target) if blended else register
            if item.reduce in EXTREMES:
                self._extreme(item.reduce, target, target, operand, mask)
            else:
                code = self.forms.arithmetic[REDUCE[item.reduce]]
                self.asm.emit(code, vector(target), vector(target), vector(operand), mask=mask)
            if operand != register:
                self.give(operand)
        elif register != target:
            self.asm.emit(self.forms.copy, vector(target), vector(register))
        self._release(value, register)

    def _extreme(self, function: str, target: int, old: int, new: int, mask: int = 0) -> None:
        spare, pinned = 0, self._registers.pinned
        if not self.isa.wide:
            held = {old, new} - pinned
            pinned.update(held)
            spare = self.take()
            pinned.difference_update(held)
        extreme(self.asm, self.isa, function, target, old, new, spare, mask)
        if not self.isa.wide:
            self.give(spare)

    def _extreme_of(self, function: str, result: int, args: tuple[Vector, ...], registers: list[int]) -> None:
        """Write max or min of two values; with a constant one instruction does, which has it first."""
        first, second = registers
        if isinstance(args[0], Number):
            self._instruct(function, result, [first, second])
        elif isinstance(args[1], Number):
            self._instruct(function, result, [second, first])
        else:
            self._extreme(function, result, first, second)

    def _neutral(self, register: int, item: Item, target: int) -> int:
        """AVX2: make the lanes beyond the vector's end harmless by repeating the accumulator's own."""
        if item.reduce in ("max", "min"):
            neutral = target
        else:
            self._registers.pinned.add(register)
            neutral = self.take()
            self.load_number(neutral, 0.0 if item.reduce == "add" else 1.0)
        self._registers.pinned.update((register, neutral))
        mask = self.transfers.lane_mask(item.lanes)
        result = self.take()
        self._registers.pinned.difference_update((register, neutral))
        v = self.isa.vector
        self.asm.emit(self.forms.blend, v(result), v(neutral), v(register), v(mask))
        self.give(mask)
        if neutral != target:
            self.give(neutral)
        return result

    def _multiply_add(self, item: Product, left: Loaded, right: Loaded) -> None:
        """Write a product that is masked, or whose factors are not in registers yet."""
        (register, lanes), first = item, self._first_vector
        mask = self.transfers.mask(lanes) if lanes < self._lanes else 0
        held, other = left.register, right.register
        # A product commutes: the factor that is better in memory is the second.
        if held < 0 and self._better_in_memory(left) and not self._better_in_memory(right):
            left, right, held, other = right, left, other, held
        if held < 0:
            held = self._hold(left)
            # Holding one factor may have evicted the other, or it is the other, in a square.
            other = right.register
        if other >= 0:
            operand = first + other
        elif self._better_in_memory(right):
            operand = self.transfers.address(right, right.stride == 0)
        else:
            self._registers.pinned.add(held)
            operand = first + self._hold(right)
            self._registers.pinned.discard(held)
        words = self._fma, first + register, first + held, operand
        self._append((words, mask, False) if mask else words)

    def _better_in_memory(self, load: Loaded) -> TypeGuard[Element]:
        """Whether a value should be a memory operand instead of taking a register."""
        return load.register < 0 and load.folds and (load.uses == 1 or not self._free)

    def _evaluate(self, value: Vector) -> int:
        """Bring a value into a register; `_release` gives it back if nothing else holds it."""
        match value:
            case Accumulator(register):
                return register
            case Operation(function, args):
                return self._operate(function, args)
            case Gathered():
                return self._gather(value)
            case _:
                return self._hold(value)

    def _gather(self, value: Gathered) -> int:
        """Load an element by an index that was computed."""
        if value.whole:
            result = self.take()
            of_whole(self.transfers, result, value)
            return result
        index = self._evaluate(value.place)
        pinned = index in self._registers.pinned
        self._registers.pinned.add(index)
        result = self.take()
        to_place(self.transfers, result, index, value)
        if not pinned:
            self._registers.pinned.discard(index)
        self._release(value.place, index)
        return result

    def _release(self, value: Vector, register: int) -> None:
        if isinstance(value, Operation | Gathered) and register not in self._registers.free:
            self.give(register)

    def _operate(self, function: str, args: tuple[Vector, ...]) -> int:
        registers: list[int] = []
        added: list[int] = []
        for arg in args:
            register = self._evaluate(arg)
            registers.append(register)
            if register not in self._registers.pinned:
                self._registers.pinned.add(register)
                added.append(register)
        if function in EXPANDED:
            result = expand(self, function, registers[0])
        else:
            result = self.take()
            if function in TESTS:
                choose(self.asm, self.isa, function, result, registers)
            elif function in EXTREMES:
                self._extreme_of(function, result, args, registers)
            else:
                self._instruct(function, result, registers)
        self._registers.pinned.difference_update(added)
        for arg, register in zip(args, registers, strict=True):
            if register != result:
                self._release(arg, register)
        return result

    def _instruct(self, function: str, result: int, args: list[int]) -> None:
        v = [self.isa.vector(r) for r in args]
        dst = self.isa.vector(result)
        emit = self.asm.emit
        if function in _INSTRUCTION:
            emit(self.forms.arithmetic[_INSTRUCTION[function]], dst, v[0], v[1])
        elif function == "words":
            emit(self.forms.words, dst, v[0], v[1])
        elif self.isa.whole and function == "neg":
            emit(self.forms.bit_xor, dst, dst, dst)
            emit(self.forms.arithmetic["SUB"], dst, dst, v[0])
        elif self.isa.whole and function == "abs":
            emit(self.forms.absolute, dst, v[0])
        elif function == "sqrt":
            emit(self.forms.sqrt, dst, v[0])
        elif function in ("neg", "abs"):
            sign = b"\0" * (self.isa.itemsize - 1) + b"\x80"
            keep = b"\xff" * (self.isa.itemsize - 1) + b"\x7f"
            data, code = (sign, self.forms.bit_xor) if function == "neg" else (keep, self.forms.bit_and)
            emit_constant = self.asm.emit_constant
            emit_constant(self.forms.broadcast, dst, data=data)
            emit(code, dst, dst, v[0])
        else:
            raise TargetError(f"no machine code for function '{function}'")
