"""Summing the lanes of a vector, once at the end of a reduction that was vectorised."""

from planish.loops.x86.assembler import Assembler
from planish.loops.x86.encoding import Imm
from planish.loops.x86.isa import Isa


def reduce_lanes(asm: Assembler, isa: Isa, register: int, operation: str) -> None:
    """Reduce all lanes into the lowest one; register 0 is overwritten.

    Args:
        asm: where the code goes.
        isa: instruction set and element type.
        register: holds the vector; not 0.
        operation: ADD, MUL, MAX or MIN.
    """
    f = isa.forms
    x, y = isa.xmm, isa.ymm
    if isa.wide:
        asm.emit(f.upper_half, y(0), isa.vector(register), Imm(1))
        asm.emit(f.arithmetic_ymm[operation], y(register), y(register), y(0))
    asm.emit(f.upper_quarter, x(0), y(register), Imm(1))
    code = f.arithmetic_xmm[operation]
    asm.emit(code, x(register), x(register), x(0))
    for permutation in (0b01001110, 0b10110001) if isa.itemsize == 4 else (0b01,):
        asm.emit(f.permute, x(0), x(register), Imm(permutation))
        asm.emit(code, x(register), x(register), x(0))
