"""One of two vectors for each lane, by a comparison of two others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iced_x86 import Register

from planish.loops.codegen.x86.assembler import Assembler
from planish.loops.codegen.x86.encoding import Imm
from planish.loops.codegen.x86.isa import Isa

# LT_OQ, LE_OQ, EQ_OQ and NEQ_UQ.
TESTS: Mapping[str, Imm] = {"<": Imm(0x11), "<=": Imm(0x12), "==": Imm(0), "!=": Imm(4)}
"""Comparison to its predicate, which does not signal: where an operand is not a number, none but != holds."""
WHOLE: Mapping[str, Imm] = {"<": Imm(1), "<=": Imm(2), "==": Imm(0), "!=": Imm(4)}
"""The same of whole numbers."""
_K7 = int(Register.K7)


def choose(asm: Assembler, isa: Isa, test: str, target: int, args: Sequence[int]) -> None:
    """Write `target = test(a, b) ? yes : no`.

    Args:
        asm: where the code goes.
        isa: instruction set and element type; with AVX-512, k7 is overwritten.
        test: one of `TESTS`.
        target: a register that is none of `args`.
        args: the registers of a, b, yes and no.
    """
    a, b, yes, no = map(isa.vector, args)
    forms, result = isa.forms, isa.vector(target)
    if isa.wide:
        asm.emit(forms.compare, _K7, a, b, WHOLE[test] if isa.whole else TESTS[test])
        asm.emit(forms.blend, result, no, yes, mask=_K7)
    elif isa.whole:
        # AVX2 has == and > alone; the others are the opposite of one of them.
        if test in ("<=", "!="):
            yes, no = no, yes
        if test == "<":
            a, b = b, a
        asm.emit(forms.greater if test in ("<", "<=") else forms.compare, result, a, b)
        asm.emit(forms.blend, result, no, yes, result)
    else:
        asm.emit(forms.compare, result, a, b, TESTS[test])
        asm.emit(forms.blend, result, no, yes, result)
