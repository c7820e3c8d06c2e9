"""Operations on the exponents of floating-point numbers, which AVX2 has no instruction for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from planish.levels.loops.codegen.x86.assembler import Imm
from planish.levels.loops.codegen.x86.isa import UNORDERED

if TYPE_CHECKING:
    from planish.levels.loops.codegen.x86.basic_block import BasicBlock

NEAREST = Imm(8)
"""Round to the nearest, ties to even, without a precision exception."""
_EQUAL, _LESS, _NOT_LESS = Imm(0), Imm(1), Imm(5)


def _field(block: BasicBlock) -> tuple[int, int]:
    """Return the bits of the fraction, and the exponent's bias."""
    return (23, 127) if block.isa.itemsize == 4 else (52, 1023)


def _scale(block: BasicBlock, result: int, value: int, power: int) -> None:
    """value * 2**power, for an exponent of normal numbers; see `_ldexp`."""
    forms, emit = block.forms, block.emit
    fraction, bias = _field(block)
    block.load_number(result, float(2**fraction + bias))
    emit(forms.functions["add"], result, result, power)
    emit(forms.shift_left, result, result, Imm(fraction))
    emit(forms.functions["mul"], result, result, value)


def _ldexp(block: BasicBlock, result: int, value: int, power: int) -> None:
    """value * 2**h * 2**(power - h): one factor alone could overflow.

    Adding 2**fraction + bias brings an integer's exponent field to the bottom of the word.
    """
    forms, emit = block.forms, block.emit
    fraction, bias = _field(block)
    half, magic = block.take(), block.take()
    block.load_number(magic, 0.5)
    emit(forms.functions["mul"], half, power, magic)
    emit(forms.round, half, half, NEAREST)
    emit(forms.functions["sub"], result, power, half)
    block.load_number(magic, float(2**fraction + bias))
    for register in (half, result):
        emit(forms.functions["add"], register, register, magic)
        emit(forms.shift_left, register, register, Imm(fraction))
    emit(forms.functions["mul"], half, half, value)
    emit(forms.functions["mul"], result, result, half)
    block.release(half)
    block.release(magic)


def _normal(block: BasicBlock, result: int, value: int) -> int:
    """abs(value), times 2**(fraction + 1) if it is subnormal; also returns the mask of those lanes."""
    forms, emit = block.forms, block.emit
    fraction, bias = _field(block)
    small, scaled = block.take(), block.take()
    # A subnormal number has no exponent in its field, and no leading one that is implied.
    block.load_magnitude(result, value)
    block.load_number(scaled, 2.0 ** (1 - bias))
    emit(forms.compare, small, result, scaled, _LESS)
    block.load_number(scaled, 2.0 ** (fraction + 1))
    emit(forms.functions["mul"], scaled, scaled, result)
    emit(forms.blend, result, result, scaled, small)
    block.release(scaled)
    return small


def _exponent(block: BasicBlock, result: int, value: int) -> None:
    forms, emit = block.forms, block.emit
    fraction, bias = _field(block)
    small, other = _normal(block, result, value), block.take()
    emit(forms.shift_right, result, result, Imm(fraction))
    # The exponent's bits in the fraction of 2 ** fraction make the number 2 ** fraction + exponent.
    block.load_number(other, float(2**fraction))
    emit(forms.bit_or, result, result, other)
    block.load_number(other, float(2**fraction + bias))
    emit(forms.functions["sub"], result, result, other)
    block.load_number(other, float(fraction + 1))
    emit(forms.bit_and, small, small, other)
    emit(forms.functions["sub"], result, result, small)
    # As AVX-512's instruction: -inf for 0, and the magnitude where it is infinite or not a number.
    block.load_number(other, 0.0)
    emit(forms.compare, small, other, value, _EQUAL)
    block.load_number(other, float("-inf"))
    emit(forms.blend, result, result, other, small)
    block.load_magnitude(other, value)
    block.load_number(small, float("inf"))
    # Not less, instead of equal: it holds for what is not a number, too.
    emit(forms.compare, small, other, small, _NOT_LESS)
    emit(forms.blend, result, result, other, small)
    block.release(small)
    block.release(other)


def _mantissa(block: BasicBlock, result: int, value: int) -> None:
    forms, emit = block.forms, block.emit
    small, other = _normal(block, result, value), block.take()
    block.load_bits(other, (1 << _field(block)[0]) - 1)
    emit(forms.bit_and, result, result, other)
    block.load_number(other, 1.0)
    emit(forms.bit_or, result, result, other)
    block.load_number(other, 1.5)
    emit(forms.compare, small, result, other, _NOT_LESS)
    block.load_number(other, 0.5)
    emit(forms.functions["mul"], other, other, result)
    emit(forms.blend, result, result, other, small)
    # The square root is not a number exactly where the value is negative or not one.
    emit(forms.sqrt, small, value)
    emit(forms.compare, small, small, small, UNORDERED)
    emit(forms.bit_or, result, result, small)
    block.release(small)
    block.release(other)


EXPONENTS: Mapping[str, Callable[..., None]] = {
    "ldexp": _ldexp,
    "scale": _scale,
    "exponent": _exponent,
    "mantissa": _mantissa,
}
