"""Element-wise functions that take several instructions, written from their expansions."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from planish.loops.codegen.x86.choosing import TESTS, choose
from planish.loops.codegen.x86.encoding import Imm
from planish.loops.lang.program import Const
from planish.loops.lower.mathlib import Operation, expansion

if TYPE_CHECKING:
    from planish.loops.codegen.x86.block import Block

# To the nearest, ties to even, without a precision exception.
_NEAREST = Imm(8)
# The interval [0.75, 1.5), and NaN for negative numbers.
_MANTISSA_UP_TO_ONE_AND_A_HALF = Imm(0b1011)
_LESS, _EQUAL = Imm(1), Imm(0)


def expand(block: Block, function: str, argument: int) -> int:
    """Write a function of `planish.loops.lower.mathlib.EXPANDED`.

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


def _primitive(block: Block, operation: Operation, registers: dict[int, int]) -> int:
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


def _instruct(block: Block, primitive: str, result: int, args: list[int]) -> None:
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
        choose(block.asm, block.isa, primitive, result, args)
    elif block.isa.wide:
        _wide(block, primitive, dst, v)
    else:
        _narrow(block, primitive, result, args)


def _wide(block: Block, primitive: str, dst: int, v: list[int]) -> None:
    forms, emit = block.forms, block.asm.emit
    if primitive == "ldexp":
        emit(forms.scale, dst, v[0], v[1])
    elif primitive == "exponent":
        emit(forms.exponent, dst, v[0])
    else:
        emit(forms.mantissa, dst, v[0], _MANTISSA_UP_TO_ONE_AND_A_HALF)


def _narrow(block: Block, primitive: str, result: int, args: list[int]) -> None:
    """The operations on exponents that AVX2 has no instruction for."""
    if primitive == "ldexp":
        _scale_by_halves(block, result, args[0], args[1])
    elif primitive == "exponent":
        _exponent(block, result, args[0])
    else:
        _mantissa(block, result, args[0])


def _bits(block: Block) -> tuple[int, int]:
    """Bits of the fraction, and the exponent's bias."""
    return (23, 127) if block.isa.itemsize == 4 else (52, 1023)


def _scale_by_halves(block: Block, result: int, value: int, power: int) -> None:
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


def _load_bits(block: Block, register: int, bits: int) -> None:
    size = block.isa.itemsize
    data = struct.pack("<I" if size == 4 else "<Q", bits)
    block.asm.emit_constant(block.forms.broadcast, block.isa.vector(register), data=data)


def _normal(block: Block, result: int, value: int) -> int:
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


def _exponent(block: Block, result: int, value: int) -> None:
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


def _pass_infinite(block: Block, result: int, value: int, mask: int, other: int) -> None:
    """Let abs(value) through where it is infinite or not a number."""
    forms, emit, vector = block.forms, block.asm.emit, block.isa.vector
    _load_bits(block, other, (1 << (8 * block.isa.itemsize - 1)) - 1)
    emit(forms.bit_and, vector(other), vector(other), vector(value))
    block.load_number(mask, float("inf"))
    # Not less, instead of equal: it holds for what is not a number, too.
    emit(forms.compare, vector(mask), vector(other), vector(mask), Imm(_NOT_LESS))
    emit(forms.blend, vector(result), vector(result), vector(other), vector(mask))


_NOT_LESS = 5


def _mantissa(block: Block, result: int, value: int) -> None:
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
