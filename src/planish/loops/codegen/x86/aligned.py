"""A function in two forms, of which the caller's arrays decide."""

from __future__ import annotations

from collections.abc import Iterable

from iced_x86 import Code

from planish.loops.codegen.x86.assembler import JNE, Assembler
from planish.loops.codegen.x86.encoding import Imm, Mem
from planish.loops.codegen.x86.function import ARGS
from planish.loops.codegen.x86.pointers import SCRATCH


def where_aligned(arguments: Iterable[int], size: int, quick: bytes, plain: bytes) -> bytes:
    """Write a function that runs one form where arrays begin at multiples of a size, else another.

    Args:
        arguments: numbers of the arrays in the arguments.
        size: in bytes; a power of 2, and 64 at most.
        quick: a function for such arrays.
        plain: one for all arrays.
    """
    code = Assembler()
    jumps: list[int] = []
    for number in arguments:
        code.emit(Code.MOV_R64_RM64, SCRATCH, Mem(ARGS, 8 * number))
        code.emit(Code.TEST_RM64_IMM32, SCRATCH, Imm(size - 1))
        jumps.append(code.jump_forward(JNE))
    code.align(64)
    code.code.extend(quick)
    code.align(64)
    for jump in jumps:
        code.land(jump)
    return bytes(code.code) + plain
