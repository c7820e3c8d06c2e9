"""Basic blocks: a list of element operations, the loads that they need, and registers for both.

Loads share registers; when these run out, the one whose next use is farthest is evicted (Belady). It can
always be loaded again, so nothing is ever spilled (thesis 3.4.2). A value that is used once, or for which
no register is free, becomes a memory operand of its instruction where the processor has such a form.
Element-wise functions that the processor lacks are expanded as `planish.levels.loops.lower.mathlib` says.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeGuard

from planish.core import TargetError
from planish.levels.loops.codegen.x86.assembler import Assembler, Imm
from planish.levels.loops.codegen.x86.isa import Isa
from planish.levels.loops.codegen.x86.pointers import Pointer, Pointers
from planish.levels.loops.codegen.x86.transfers import Transfers, gather_at, gather_at_whole
from planish.levels.loops.codegen.x86.vector_ops import MINMAX, TESTS, minmax, select
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
from planish.levels.loops.lang.program import Const
from planish.levels.loops.lower.mathlib import EXPANDED, Primitive, expansion

# Expanded functions

# To the nearest, ties to even, without a precision exception.
_NEAREST = Imm(8)
# The interval [0.75, 1.5), and NaN for negative numbers.
_MANTISSA_UP_TO_ONE_AND_A_HALF = Imm(0b1011)
_LESS, _EQUAL = Imm(1), Imm(0)


def expand(block: BasicBlock, function: str, argument: int) -> int:
    """Write a function of `planish.levels.loops.lower.mathlib.EXPANDED`.

    Args:
        block: gives the registers and takes the instructions.
        function: its name.
        argument: the register of its argument, which stays as it is.

    Returns:
        The register of the result; the caller gives it back.
    """
    operations = expansion(function, block.isa.dtype)
    last = {number: i for i, op in enumerate(operations) for number in op.args if isinstance(number, int)}
    registers = {0: argument}
    for i, operation in enumerate(operations):
        result = _primitive(block, operation, registers)
        # A set, and without 0: what an operation reads twice is given back once, and the argument never.
        for number in {n for n in operation.args if isinstance(n, int) and n and last[n] == i}:
            block.give(registers.pop(number))
        registers[i + 1] = result
    return registers[len(operations)]


def _primitive(block: BasicBlock, operation: Primitive, registers: dict[int, int]) -> int:
    """Write one operation; its result is in a new register."""
    loaded = [block.take() if isinstance(a, Const) else registers[a] for a in operation.args]
    constants = [(r, a.value) for r, a in zip(loaded, operation.args, strict=True) if isinstance(a, Const)]
    for register, value in constants:
        block.load_number(register, value)
    result = block.take()
    _instruct(block, operation.primitive, result, loaded)
    for register, _ in constants:
        block.give(register)
    return result


def _instruct(block: BasicBlock, primitive: str, result: int, args: list[int]) -> None:
    forms, emit = block.forms, block.asm.emit
    dst = block.isa.vector(result)
    v = [block.isa.vector(r) for r in args]
    if primitive.upper() in forms.arithmetic:
        emit(forms.arithmetic[primitive.upper()], dst, v[0], v[1])
    elif primitive == "fma":
        # The 231 form adds its product to the destination.
        emit(forms.copy, dst, v[2])
        emit(forms.fma, dst, v[0], v[1])
    elif primitive == "round":
        emit(forms.round, dst, v[0], _NEAREST)
    elif primitive == "neg":
        # The sign is turned, for 0 - x would give +0 for x = +0.
        block.load_number(result, -0.0)
        emit(forms.bit_xor, dst, dst, v[0])
    elif primitive == "abs":
        _load_bits(block, result, (1 << (8 * block.isa.itemsize - 1)) - 1)
        emit(forms.bit_and, dst, dst, v[0])
    elif primitive in TESTS:
        select(block.asm, block.isa, primitive, result, args)
    elif block.isa.wide:
        _wide(block, primitive, dst, v)
    else:
        _narrow(block, primitive, result, args)


def _wide(block: BasicBlock, primitive: str, dst: int, v: list[int]) -> None:
    forms, emit = block.forms, block.asm.emit
    if primitive == "ldexp":
        emit(forms.scale, dst, v[0], v[1])
    elif primitive == "exponent":
        emit(forms.exponent, dst, v[0])
    else:
        emit(forms.mantissa, dst, v[0], _MANTISSA_UP_TO_ONE_AND_A_HALF)


def _narrow(block: BasicBlock, primitive: str, result: int, args: list[int]) -> None:
    """Return the operations on exponents that AVX2 has no instruction for."""
    if primitive == "ldexp":
        _scale_by_halves(block, result, args[0], args[1])
    elif primitive == "exponent":
        _exponent(block, result, args[0])
    else:
        _mantissa(block, result, args[0])


def _bits(block: BasicBlock) -> tuple[int, int]:
    """Bits of the fraction, and the exponent's bias."""
    return (23, 127) if block.isa.itemsize == 4 else (52, 1023)


def _scale_by_halves(block: BasicBlock, result: int, value: int, power: int) -> None:
    """value * 2**h * 2**(power - h): one factor alone could overflow.

    Adding 2**fraction + bias brings an integer's exponent field to the bottom of the word.
    """
    forms, emit, vector = block.forms, block.asm.emit, block.isa.vector
    fraction, bias = _bits(block)
    half, magic = block.take(), block.take()
    dst, h, m = vector(result), vector(half), vector(magic)
    block.load_number(magic, 0.5)
    emit(forms.arithmetic["MUL"], h, vector(power), m)
    emit(forms.round, h, h, _NEAREST)
    emit(forms.arithmetic["SUB"], dst, vector(power), h)
    block.load_number(magic, float(2**fraction + bias))
    for register in (h, dst):
        emit(forms.arithmetic["ADD"], register, register, m)
        emit(forms.shift_left, register, register, Imm(fraction))
    emit(forms.arithmetic["MUL"], h, h, vector(value))
    emit(forms.arithmetic["MUL"], dst, dst, h)
    block.give(half)
    block.give(magic)


def _load_bits(block: BasicBlock, register: int, bits: int) -> None:
    size = block.isa.itemsize
    data = struct.pack("<I" if size == 4 else "<Q", bits)
    block.asm.emit_constant(block.forms.broadcast, block.isa.vector(register), data=data)


def _normal(block: BasicBlock, result: int, value: int) -> int:
    """abs(value), times 2**(fraction + 1) if it is subnormal; also gives the mask of those lanes."""
    forms, emit, vector = block.forms, block.asm.emit, block.isa.vector
    fraction, bias = _bits(block)
    small, scaled = block.take(), block.take()
    dst, s, c = vector(result), vector(small), vector(scaled)
    # A subnormal number has no exponent in its field, and no leading one that is implied.
    _load_bits(block, result, (1 << (8 * block.isa.itemsize - 1)) - 1)
    emit(forms.bit_and, dst, dst, vector(value))
    block.load_number(scaled, 2.0 ** (1 - bias))
    emit(forms.compare, s, dst, c, _LESS)
    block.load_number(scaled, 2.0 ** (fraction + 1))
    emit(forms.arithmetic["MUL"], c, c, dst)
    emit(forms.blend, dst, dst, c, s)
    block.give(scaled)
    return small


def _exponent(block: BasicBlock, result: int, value: int) -> None:
    forms, emit, vector = block.forms, block.asm.emit, block.isa.vector
    fraction, bias = _bits(block)
    small, other = _normal(block, result, value), block.take()
    dst, s, o = vector(result), vector(small), vector(other)
    emit(forms.shift_right, dst, dst, Imm(fraction))
    # The exponent's bits in the fraction of 2 ** fraction make the number 2 ** fraction + exponent.
    block.load_number(other, float(2**fraction))
    emit(forms.bit_or, dst, dst, o)
    block.load_number(other, float(2**fraction + bias))
    emit(forms.arithmetic["SUB"], dst, dst, o)
    block.load_number(other, float(fraction + 1))
    emit(forms.bit_and, s, s, o)
    emit(forms.arithmetic["SUB"], dst, dst, s)
    # What AVX-512's instruction gives: -inf for 0.
    block.load_number(other, 0.0)
    emit(forms.compare, s, o, vector(value), _EQUAL)
    block.load_number(other, float("-inf"))
    emit(forms.blend, dst, dst, o, s)
    _pass_infinite(block, result, value, small, other)
    block.give(small)
    block.give(other)


def _pass_infinite(block: BasicBlock, result: int, value: int, mask: int, other: int) -> None:
    """Pass abs(value) through where it is infinite or NaN."""
    forms, emit, vector = block.forms, block.asm.emit, block.isa.vector
    _load_bits(block, other, (1 << (8 * block.isa.itemsize - 1)) - 1)
    emit(forms.bit_and, vector(other), vector(other), vector(value))
    block.load_number(mask, float("inf"))
    # Not less, instead of equal: it holds for what is not a number, too.
    emit(forms.compare, vector(mask), vector(other), vector(mask), Imm(_NOT_LESS))
    emit(forms.blend, vector(result), vector(result), vector(other), vector(mask))


_NOT_LESS = 5


def _mantissa(block: BasicBlock, result: int, value: int) -> None:
    forms, emit, vector = block.forms, block.asm.emit, block.isa.vector
    fraction, _ = _bits(block)
    small, other = _normal(block, result, value), block.take()
    dst, s, o = vector(result), vector(small), vector(other)
    _load_bits(block, other, (1 << fraction) - 1)
    emit(forms.bit_and, dst, dst, o)
    block.load_number(other, 1.0)
    emit(forms.bit_or, dst, dst, o)
    block.load_number(other, 1.5)
    emit(forms.compare, s, dst, o, Imm(_NOT_LESS))
    block.load_number(other, 0.5)
    emit(forms.arithmetic["MUL"], o, o, dst)
    emit(forms.blend, dst, dst, o, s)
    # The square root is not a number exactly where the value is negative or not one.
    emit(forms.sqrt, s, vector(value))
    emit(forms.compare, s, s, s, Imm(_UNORDERED))
    emit(forms.bit_or, dst, dst, s)
    block.give(small)
    block.give(other)


_UNORDERED = 3


# Blocks

# Items: so long before its first use a value is loaded.
LOOK_AHEAD = 6
REDUCE = {"add": "ADD", "max": "MAX", "min": "MIN", "mul": "MUL"}
_INSTRUCTION = {**REDUCE, "sub": "SUB", "div": "DIV"}


class BasicBlock:
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
            if item.reduce in MINMAX:
                self._minmax(item.reduce, target, target, operand, mask)
            else:
                code = self.forms.arithmetic[REDUCE[item.reduce]]
                self.asm.emit(code, vector(target), vector(target), vector(operand), mask=mask)
            if operand != register:
                self.give(operand)
        elif register != target:
            self.asm.emit(self.forms.copy, vector(target), vector(register))
        self._release(value, register)

    def _minmax(self, function: str, target: int, old: int, new: int, mask: int = 0) -> None:
        spare, pinned = 0, self._registers.pinned
        if not self.isa.wide:
            held = {old, new} - pinned
            pinned.update(held)
            spare = self.take()
            pinned.difference_update(held)
        minmax(self.asm, self.isa, function, target, old, new, spare, mask)
        if not self.isa.wide:
            self.give(spare)

    def _minmax_of(self, function: str, result: int, args: tuple[Vector, ...], registers: list[int]) -> None:
        """Write max or min of two values; with a constant one instruction does, which has it first."""
        first, second = registers
        if isinstance(args[0], Number):
            self._instruct(function, result, [first, second])
        elif isinstance(args[1], Number):
            self._instruct(function, result, [second, first])
        else:
            self._minmax(function, result, first, second)

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
        """Return whether a value should be a memory operand instead of taking a register."""
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
            gather_at_whole(self.transfers, result, value)
            return result
        index = self._evaluate(value.row)
        pinned = index in self._registers.pinned
        self._registers.pinned.add(index)
        result = self.take()
        gather_at(self.transfers, result, index, value)
        if not pinned:
            self._registers.pinned.discard(index)
        self._release(value.row, index)
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
                select(self.asm, self.isa, function, result, registers)
            elif function in MINMAX:
                self._minmax_of(function, result, args, registers)
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
