"""Vector operations of several instructions: select, maximum and minimum, reduction of lanes.

Maximum and minimum keep NaN, as NumPy's do, where the processor's instructions return their second operand if
either is NaN. So the first operand remains to be tested, unless it is a constant. With opmasks, an
accumulator that is NaN already is left alone: two instructions, on two ports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from iced_x86 import Register

from planish.levels.loops.codegen.x86.assembler import Assembler, Imm
from planish.levels.loops.codegen.x86.isa import Isa

# Select

TESTS: Mapping[str, tuple[Imm, Imm]] = {
    "<": (Imm(0x11), Imm(1)),
    "<=": (Imm(0x12), Imm(2)),
    "==": (Imm(0), Imm(0)),
    "!=": (Imm(4), Imm(4)),
}
"""Comparison to its predicates, of floats and of integers.

Those of floats (LT_OQ, LE_OQ, EQ_OQ, NEQ_UQ) do not signal: where an operand is not a number, none but !=
holds.
"""
_K7 = int(Register.K7)


def select(asm: Assembler, isa: Isa, test: str, target: int, args: Sequence[int]) -> None:
    """Write `target = test(a, b) ? yes : no`.

    Args:
        isa: instruction set and element type; with AVX-512, k7 is overwritten.
        test: one of `TESTS`.
        target: a register that is none of `args`.
        args: the registers of a, b, yes and no.
    """
    a, b, yes, no = map(isa.vector, args)
    forms, result = isa.forms, isa.vector(target)
    if isa.wide or not isa.is_integer:
        asm.emit(forms.compare, _K7 if isa.wide else result, a, b, TESTS[test][isa.is_integer])
    else:
        # AVX2 has == and > alone; the others are the opposite of one of them.
        if test in ("<=", "!="):
            yes, no = no, yes
        if test == "<":
            a, b = b, a
        asm.emit(forms.greater if test in ("<", "<=") else forms.compare, result, a, b)
    if isa.wide:
        asm.emit(forms.blend, result, no, yes, mask=_K7)
    else:
        asm.emit(forms.blend, result, no, yes, result)


# Maximum and minimum

MINMAX = ("max", "min")
_UNORDERED, _ORDERED = Imm(3), Imm(7)


def minmax(
    asm: Assembler, isa: Isa, function: str, target: int, old: int, new: int, spare: int = 0, mask: int = 0
) -> None:
    """Write `target = function(old, new)`.

    Args:
        function: one of `MINMAX`.
        target: a register; it may be that of `old`.
        old: the register of an operand.
        new: the register of the other, not the target.
        spare: AVX2: another register, which is overwritten.
        mask: AVX-512: an opmask register for the lanes that change, or 0. k7 is overwritten.
    """
    forms, v = isa.forms, isa.vector
    code = forms.functions[function]
    if isa.is_integer:
        asm.emit(code, v(target), v(old), v(new), mask=mask)
    elif isa.wide and target == old:
        asm.emit(forms.compare, _K7, v(old), v(old), _ORDERED, mask=mask)
        asm.emit(code, v(old), v(old), v(new), mask=_K7)
    elif isa.wide:
        asm.emit(code, v(target), v(new), v(old), mask=mask)
        asm.emit(forms.compare, _K7, v(new), v(new), _UNORDERED, mask=mask)
        asm.emit(forms.copy, v(target), v(new), mask=_K7)
    else:
        asm.emit(forms.compare, v(spare), v(new), v(new), _UNORDERED)
        asm.emit(code, v(target), v(new), v(old))
        # The mask's lanes are all ones, which is not a number either: no copy of `new` is needed.
        asm.emit(forms.bit_or, v(target), v(target), v(spare))


# Reduction of lanes


def reduce_lanes(asm: Assembler, isa: Isa, register: int, function: str) -> None:
    """Reduce all lanes into the lowest one; registers 0 and 1 are overwritten.

    Args:
        register: holds the vector; not 0 or 1.
        function: "add", "mul", "max" or "min".
    """
    forms, xmm, ymm = isa.forms, isa.xmm, isa.ymm

    def combine(part: Callable[[int], int], codes: Mapping[str, int]) -> None:
        if function in MINMAX:
            minmax(asm, isa, function, register, register, 0, spare=1)
        else:
            asm.emit(codes[function], part(register), part(register), part(0))

    if isa.wide:
        asm.emit(forms.upper_half, ymm(0), isa.vector(register), Imm(1))
        combine(ymm, forms.functions_ymm)
    asm.emit(forms.upper_quarter, xmm(0), ymm(register), Imm(1))
    combine(xmm, forms.functions_xmm)
    # The pairs are exchanged, then the neighbours.
    for permutation in (0b01001110, 0b10110001) if isa.itemsize == 4 else (0b01,):
        asm.emit(forms.permute, xmm(0), xmm(register), Imm(permutation))
        combine(xmm, forms.functions_xmm)
