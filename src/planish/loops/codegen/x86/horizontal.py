"""Summing the lanes of a vector, once at the end of a reduction that was vectorised."""

from collections.abc import Callable

from planish.loops.codegen.x86.assembler import Assembler
from planish.loops.codegen.x86.encoding import Imm
from planish.loops.codegen.x86.extremes import EXTREMES, extreme
from planish.loops.codegen.x86.isa import Isa


def reduce_lanes(asm: Assembler, isa: Isa, register: int, operation: str) -> None:
    """Reduce all lanes into the lowest one; registers 0 and 1 are overwritten.

    Args:
        asm: where the code goes.
        isa: instruction set and element type.
        register: holds the vector; not 0 or 1.
        operation: ADD, MUL, MAX or MIN.
    """
    f = isa.forms
    x, y = isa.xmm, isa.ymm

    def combine(parts: Callable[[int], int], code: int) -> None:
        if operation.lower() in EXTREMES:
            extreme(asm, isa, operation.lower(), register, register, 0, spare=1)
        else:
            asm.emit(code, parts(register), parts(register), parts(0))

    if isa.wide:
        asm.emit(f.upper_half, y(0), isa.vector(register), Imm(1))
        combine(y, f.arithmetic_ymm[operation])
    asm.emit(f.upper_quarter, x(0), y(register), Imm(1))
    combine(x, f.arithmetic_xmm[operation])
    # The pairs are exchanged, then the neighbours.
    for permutation in (0b01001110, 0b10110001) if isa.itemsize == 4 else (0b01,):
        asm.emit(f.permute, x(0), x(register), Imm(permutation))
        combine(x, f.arithmetic_xmm[operation])
