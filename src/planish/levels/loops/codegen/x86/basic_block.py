"""Basic blocks: a list of element operations, the loads that they need, and registers for both.

Loads share registers; when these run out, the one whose next use is farthest is evicted (Belady). It can
always be loaded again, so nothing is ever spilled (thesis 3.4.2). A value that is used once, or for which
no register is free, becomes a memory operand of its instruction where the processor has such a form.
Element-wise functions that the processor lacks are expanded as `planish.levels.loops.lower.mathlib` says.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import repeat
from types import MappingProxyType
from typing import TypeGuard

from planish.core import TargetError
from planish.levels.loops.codegen.x86.assembler import Assembler, Imm, Words
from planish.levels.loops.codegen.x86.exponents import EXPONENTS, NEAREST
from planish.levels.loops.codegen.x86.isa import DOT, MINMAX, TESTS, Isa, minmax, select
from planish.levels.loops.codegen.x86.pointers import Pointer, Pointers
from planish.levels.loops.codegen.x86.transfers import Transfers, gather_at, gather_at_integer
from planish.levels.loops.codegen.x86.vectors import (
    Accumulator,
    Element,
    Gathered,
    Item,
    Loaded,
    Number,
    Operation,
    Product,
    Registers,
    Vector,
    loads_of,
)
from planish.levels.loops.ir.tree import Call, Node, Value, leaves
from planish.levels.loops.lang.program import Const
from planish.levels.loops.lower.mathlib import EXPANDED, expansion

# Blocks

# Items: so long before its first use a value is loaded.
LOOK_AHEAD = 6
FEW = 8
"""Free registers below which a constant of a function stays in memory, if it is not in one already."""


NO_CONSTANTS: Mapping[bytes, int] = MappingProxyType({})
# The interval [0.75, 1.5), and NaN for negative numbers.
_MANTISSA_UP_TO_ONE_AND_A_HALF = Imm(0b1011)


class BasicBlock:
    """Collects items and writes them as code.

    Args:
        registers: how many vector registers it may use, from the first one.
        masks: lane count to opmask register; grows as counts turn up.
        constants: those of functions that other registers have in all lanes, as `constants_of` lists them.
    """

    def __init__(
        self,
        asm: Assembler,
        isa: Isa,
        pointers: Pointers,
        registers: int,
        masks: dict[int, int],
        constants: Mapping[bytes, int] = NO_CONSTANTS,
    ) -> None:
        self._fixed = constants
        self.asm = asm
        self.isa = isa
        self.forms = isa.forms
        self._items: list[Item | Product] = []
        self._loads: list[tuple[Loaded, ...]] = []
        self._elements: dict[tuple[int, int, bool], dict[tuple[int, int], Element]] = {}
        self._numbers: dict[float, Number] = {}
        self._registers = Registers(registers, self._loads)
        self.transfers = Transfers(asm, isa, pointers, self._registers, masks)
        self.take, self.release = self._registers.take, self._registers.release
        self.load_number = self.transfers.load_number
        self._pinned, self._free = self._registers.pinned, self._registers.free
        # Looked up once: products are written by the thousand.
        self._append = asm.append
        self._first_vector, self._lanes = isa.vector(0), isa.lanes

    def elements(self, pointer: Pointer, stride: int, word: bool = False) -> dict[tuple[int, int], Element]:
        """Return the block's elements of one kind, by displacement and lanes; the caller adds to them."""
        return self._elements.setdefault((id(pointer), stride, word), {})

    def number(self, value: float) -> Number:
        """Return the block's object for a constant."""
        return self._numbers.setdefault(value, Number(value))

    def add(self, target: Accumulator | Element, reduce: str | None, value: Vector, lanes: int) -> None:
        """Append an item."""
        loads = tuple(loads_of(value))
        for load in loads:
            load.uses += 1
            load.last = len(self._items)
        if isinstance(target, Element):
            target.stored = len(self._items)
        self._loads.append(loads)
        self._items.append(Item(target, reduce, value, lanes))

    def add_products(
        self,
        code: int,
        registers: Sequence[int],
        lefts: Sequence[Loaded],
        rights: Sequence[Loaded],
        lanes: Sequence[int],
    ) -> None:
        """Append `register += left * right` for each of some registers, factors and lanes, by a form."""
        number = len(self._items)
        self._items.extend(zip(repeat(code, len(lanes)), registers, lanes, strict=True))
        pairs = list(zip(lefts, rights, strict=True))
        self._loads.extend(pairs)
        for left, right in pairs:
            left.uses += 1
            right.uses += 1
            left.last = right.last = number
            number += 1

    def flush(self) -> None:
        """Write the items; afterwards no loaded value is held."""
        if not self._items:
            return
        ahead, end, registers, coming = 0, len(self._items), self._registers, self._loads
        first, full, append = self._first_vector, self._lanes, self._append
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
                if left.register >= 0 and right.register >= 0 and item[2] == full:
                    append((item[0], first + item[1], first + left.register, first + right.register))
                else:
                    self._multiply_add(item, left, right)
            for load in loads:
                if load.last == number and load.register >= 0:
                    registers.let_go(load)
        self._items.clear()
        self._loads.clear()
        registers.let_all_go()
        for table in self._elements.values():
            table.clear()
        self._numbers.clear()

    def _load_early(self, begin: int, end: int) -> int:
        """Load what these items and others too will need; returns the item for which registers run out."""
        for number in range(begin, end):
            for load in self._loads[number]:
                if load.register < 0 and load.uses > 1 and load.stored < self._registers.now:
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

    # Items

    def _write(self, item: Item) -> None:
        value, target = item.value, item.target
        if isinstance(target, Element):
            register = self._evaluate(value)
            # A store may take registers itself, for indices and masks.
            self._pinned.add(register)
            self.transfers.store(register, target)
            self._pinned.discard(register)
            if target.last > self._registers.now and isinstance(value, Operation):
                # What is stored is read again: it stays in its register as if it had been loaded.
                if target.register >= 0:
                    self._registers.let_go(target)
                self._registers.hold(target, register)
                return
        else:
            partial = item.lanes < self.isa.lanes and item.reduce is not None
            mask = self.transfers.mask(item.lanes) if partial and self.isa.wide else 0
            register = self._evaluate(value)
            self._accumulate(item, target.register, register, mask, blended=partial and not self.isa.wide)
        self._release(value, register)

    def _accumulate(self, item: Item, target: int, register: int, mask: int, *, blended: bool) -> None:
        """Set an accumulator to a value, or reduce into it."""
        if item.reduce:
            operand = self._neutral(register, item, target) if blended else register
            if item.reduce in MINMAX:
                self._minmax(item.reduce, target, target, operand, mask)
            else:
                self.emit(self.forms.functions[item.reduce], target, target, operand, mask=mask)
            if operand != register:
                self.release(operand)
        elif register != target:
            self.emit(self.forms.copy, target, register)

    def _neutral(self, register: int, item: Item, target: int) -> int:
        """AVX2: make the lanes beyond the vector's end harmless by repeating the accumulator's own."""
        if item.reduce in MINMAX:
            neutral = target
        else:
            self._pinned.add(register)
            neutral = self.take()
            self.load_number(neutral, 1.0 if item.reduce == "mul" else 0.0)
        self._pinned.update((register, neutral))
        mask = self.transfers.lane_mask(item.lanes)
        result = self.take()
        self._pinned.difference_update((register, neutral))
        self.emit(self.forms.blend, result, neutral, register, mask)
        self.release(mask)
        if neutral != target:
            self.release(neutral)
        return result

    def _multiply_add(self, item: Product, left: Loaded, right: Loaded) -> None:
        """Write a product that is masked, or whose factors are not in registers yet."""
        (code, register, lanes), first = item, self._first_vector
        mask = self.transfers.mask(lanes) if lanes < self._lanes else 0
        held, other = left.register, right.register
        # A product commutes, but not that of quads: the factor that is better in memory is the second.
        if (
            held < 0
            and code not in self.forms.dots.values()
            and self._better_in_memory(left)
            and not self._better_in_memory(right)
        ):
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
            self._pinned.add(held)
            operand = first + self._hold(right)
            self._pinned.discard(held)
        words = code, first + register, first + held, operand
        self._append((words, mask, False) if mask else words)

    def _better_in_memory(self, load: Loaded) -> TypeGuard[Element]:
        """Return whether a value should be a memory operand instead of taking a register."""
        return load.register < 0 and load.folds and (load.uses == 1 or not self._free)

    # Values

    def _evaluate(self, value: Vector) -> int:
        """Bring a value into a register; `_release` frees it if nothing else holds it."""
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
        if value.integer_bytes:
            result = self.take()
            gather_at_integer(self.transfers, result, value)
            return result
        index = self._evaluate(value.row)
        pinned = index in self._pinned
        self._pinned.add(index)
        result = self.take()
        gather_at(self.transfers, result, index, value)
        if not pinned:
            self._pinned.discard(index)
        self._release(value.row, index)
        return result

    def _release(self, value: Vector, register: int) -> None:
        if isinstance(value, Operation | Gathered) and register not in self._free:
            self.release(register)

    def _operate(self, function: str, args: tuple[Vector, ...]) -> int:
        registers: list[int] = []
        added: list[int] = []
        for arg in args:
            register = self._evaluate(arg)
            registers.append(register)
            if register not in self._pinned:
                self._pinned.add(register)
                added.append(register)
        if function in EXPANDED:
            result = self._expand(function, registers[0])
        else:
            result = self.take()
            # Of max and min with a constant, which comes first, one instruction does.
            if function not in MINMAX or isinstance(args[0], Number):
                self._instruct(function, result, registers)
            elif isinstance(args[1], Number):
                self._instruct(function, result, registers[::-1])
            else:
                self._minmax(function, result, *registers)
        self._pinned.difference_update(added)
        for arg, register in zip(args, registers, strict=True):
            if register != result:
                self._release(arg, register)
        return result

    def _minmax(self, function: str, target: int, old: int, new: int, mask: int = 0) -> None:
        spare = 0
        if not self.isa.wide:
            held = {old, new} - self._pinned
            self._pinned.update(held)
            spare = self.take()
            self._pinned.difference_update(held)
        minmax(self.asm, self.isa, function, target, old, new, spare, mask)
        if not self.isa.wide:
            self.release(spare)

    # Functions

    def emit(self, code: int, *operands: int | Imm, mask: int = 0) -> None:
        """Append an instruction on whole vector registers, given by their numbers."""
        first = self._first_vector
        words: Words = (code, *[first + o if type(o) is int else o for o in operands])
        self._append((words, mask, False) if mask else words)

    def _expand(self, function: str, argument: int) -> int:
        """Write a function of `EXPANDED`; its result is in a new register."""
        registers = {0: argument}
        for number, (primitive, args, done) in enumerate(_operations(function, self.isa.dtype), 1):
            write = self._fused if primitive == "fma" else partial(self._primitive, primitive)
            result = write(args, done, registers)
            for register in {registers.pop(value) for value in done}:
                if register != result:
                    self.release(register)
            registers[number] = result
        return registers.popitem()[1]

    def _primitive(
        self, name: str, args: Sequence[Operand], done: Sequence[int], registers: Mapping[int, int]
    ) -> int:
        """Write an operation of an expansion; one instruction may overwrite an operand that ends there."""
        if code := self.forms.functions.get(name):
            result = registers[done[0]] if done else self.take()
            self._emit_with(code, result, args, registers)
            return result
        result, constants = self.take(), [self._constant(arg) for arg in args if isinstance(arg, Const)]
        known = iter(constants)
        operands = [next(known)[0] if isinstance(arg, Const) else registers[arg] for arg in args]
        self._instruct(name, result, operands)
        for constant in constants:
            self._give_back(*constant)
        return result

    def _fused(self, args: Sequence[Operand], done: Sequence[int], registers: Mapping[int, int]) -> int:
        """Write a * b + c of an expansion, over an operand that ends there, if there is one."""
        # A constant factor comes last, where it may stay in memory.
        factors, addend = sorted(args[:2], key=lambda arg: isinstance(arg, Const)), args[2]
        ends = [arg for arg in factors if arg in done]
        if ends:
            result = registers[_number_of(ends[0])]
            factors.remove(ends[0])
            self._emit_with(self.forms.fma_to_factor, result, (*factors, addend), registers)
        elif addend not in done and isinstance(addend, Const) and isinstance(factors[1], Const):
            result = self.take()
            self._copy(result, factors[1], registers)
            self._emit_with(self.forms.fma_to_factor, result, (factors[0], addend), registers)
        else:
            result = registers[_number_of(addend)] if addend in done else self.take()
            if addend not in done:
                self._copy(result, addend, registers)
            self._emit_with(self.forms.fma, result, factors, registers)
        return result

    def _copy(self, result: int, operand: Operand, registers: Mapping[int, int]) -> None:
        """Put an operand of an expansion into a register."""
        if not isinstance(operand, Const):
            self.emit(self.forms.copy, result, registers[operand])
        elif (register := self._known(self._bytes(operand))) is not None:
            self.emit(self.forms.copy, result, register)
        else:
            self.load_number(result, operand.value)

    def _emit_with(
        self, code: int, result: int, operands: Sequence[Operand], registers: Mapping[int, int]
    ) -> None:
        """Append an instruction of an expansion; its last operand stays in memory if registers are few."""
        named, constants = list[int](), list[tuple[int, bytes]]()
        last = operands[-1]
        for operand in operands[:-1] if self._stays_in_memory(last) else operands:
            if isinstance(operand, Const):
                constants.append(self._constant(operand))
                named.append(constants[-1][0])
            else:
                named.append(registers[operand])
        if len(named) == len(operands):
            self.emit(code, result, *named)
        elif isinstance(last, Const):
            first = self._first_vector
            vectors = [first + register for register in (result, *named)]
            self.asm.emit_constant(code, *vectors, data=self._bytes(last), broadcast=True)
        for constant in constants:
            self._give_back(*constant)

    def _stays_in_memory(self, operand: Operand) -> bool:
        if not isinstance(operand, Const) or not self.isa.wide:
            return False
        return len(self._free) < FEW and self._known(self._bytes(operand)) is None

    def _known(self, data: bytes) -> int | None:
        """Return a register that has a constant already."""
        return self._fixed.get(data, self._registers.constants.get(data))

    def _constant(self, constant: Const) -> tuple[int, bytes]:
        """Return a register with a constant, which is to be given back with these bytes."""
        data = self._bytes(constant)
        register = self._known(data)
        if register is None:
            register = self.take()
            self.load_number(register, constant.value)
        self._registers.constants.pop(data, None)
        return register, data

    def _give_back(self, register: int, data: bytes) -> None:
        if data not in self._fixed:
            self._registers.keep(register, data)

    def _bytes(self, constant: Const) -> bytes:
        return _bytes(constant, self.isa.itemsize)

    def _instruct(self, function: str, result: int, args: Sequence[int]) -> None:  # noqa: C901 (one case for each)
        """Write a function that is a few instructions at most, or one of `EXPONENTS`."""
        forms, emit = self.forms, self.emit
        if function in forms.functions:
            emit(forms.functions[function], result, *args)
        elif function in TESTS:
            select(self.asm, self.isa, function, result, args)
        elif function == "fma":
            # The 231 form adds its product to the destination.
            emit(forms.copy, result, args[2])
            emit(forms.fma, result, args[0], args[1])
        elif function in DOT.values():
            self.load_number(result, 0.0)
            emit(next(code for dtype, code in forms.dots.items() if DOT[dtype] == function), result, *args)
        elif function == "round":
            emit(forms.round, result, args[0], NEAREST)
        elif function == "neg" and self.isa.is_integer:
            self.load_number(result, 0)
            emit(forms.functions["sub"], result, result, args[0])
        elif function == "neg":
            # The sign is turned, for 0 - x would be +0 for x = +0.
            self.load_number(result, -0.0)
            emit(forms.bit_xor, result, result, args[0])
        elif function == "abs":
            self.load_magnitude(result, args[0])
        elif function == "mantissa" and self.isa.wide:
            emit(forms.mantissa, result, args[0], _MANTISSA_UP_TO_ONE_AND_A_HALF)
        elif function in EXPONENTS:
            EXPONENTS[function](self, result, *args)
        else:
            raise TargetError(f"no machine code for function '{function}'")

    def load_bits(self, register: int, bits: int) -> None:
        """Put an element of these bits into all lanes."""
        data = bits.to_bytes(self.isa.itemsize, "little")
        self.asm.emit_constant(self.forms.broadcast, self.isa.vector(register), data=data)

    def load_magnitude(self, result: int, value: int) -> None:
        """Clear the sign of a value."""
        self.load_bits(result, (1 << (8 * self.isa.itemsize - 1)) - 1)
        self.emit(self.forms.bit_and, result, result, value)


Operand = int | Const
"""Of an operation of an expansion: the number of a value, or a constant."""


def _bytes(constant: Const, itemsize: int) -> bytes:
    return struct.pack("<f" if itemsize == 4 else "<d", constant.value)


def constants_of(nodes: tuple[Node, ...], isa: Isa) -> list[bytes]:
    """List the constants of the functions in some leaves, each once."""
    functions = [function for leaf in leaves(nodes) for function in _functions(leaf.value)]
    operands = [arg for f in functions for _, args, _ in _operations(f, isa.dtype) for arg in args]
    return list(dict.fromkeys([_bytes(arg, isa.itemsize) for arg in operands if isinstance(arg, Const)]))


def _functions(value: Value) -> Iterator[str]:
    if isinstance(value, Call):
        if value.function in EXPANDED:
            yield value.function
        for arg in value.args:
            yield from _functions(arg)


def _number_of(operand: Operand) -> int:
    assert isinstance(operand, int)
    return operand


@cache
def _operations(function: str, dtype: str) -> list[tuple[str, tuple[int | Const, ...], tuple[int, ...]]]:
    """List the operations of a function, their operands, and the values that nothing after them needs."""
    operations = expansion(function, dtype)
    last = {number: i for i, op in enumerate(operations) for number in op.args if isinstance(number, int)}
    # A set, and without 0: what an operation reads twice is released once, and the argument never.
    return [
        (name, args, tuple({n for n in args if isinstance(n, int) and n and last[n] == i}))
        for i, (name, args) in enumerate(operations)
    ]
