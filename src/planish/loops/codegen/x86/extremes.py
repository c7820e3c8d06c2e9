"""The greatest and the least of two vectors, where what is not a number stays so, as in NumPy.

That is of floating-point numbers. The processor's own instructions give their second operand wherever either
is not a number. So it remains to look at the first one; where that is a constant, there is nothing to do.
With opmasks, an accumulator that is not a number any more is left alone: two instructions, on two ports.
"""

from __future__ import annotations

from iced_x86 import Register

from planish.loops.codegen.x86.assembler import Assembler
from planish.loops.codegen.x86.encoding import Imm
from planish.loops.codegen.x86.isa import Isa

EXTREMES = ("max", "min")
_UNORDERED, _ORDERED = Imm(3), Imm(7)
_K7 = int(Register.K7)


def extreme(
    asm: Assembler, isa: Isa, function: str, target: int, old: int, new: int, spare: int = 0, mask: int = 0
) -> None:
    """Write `target = function(old, new)`.

    Args:
        asm: where the code goes.
        isa: instruction set and element type.
        function: one of `EXTREMES`.
        target: a register; it may be that of `old`.
        old: the register of an operand.
        new: the register of the other, not the target.
        spare: AVX2: another register, which is overwritten.
        mask: AVX-512: an opmask register for the lanes that change, or 0. k7 is overwritten.
    """
    forms, v = isa.forms, isa.vector
    code = forms.arithmetic[function.upper()]
    if isa.whole:
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
