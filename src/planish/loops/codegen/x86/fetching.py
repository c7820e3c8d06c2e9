"""Asking for cache lines before they are needed: the processor's own prefetching ends with each page."""

from __future__ import annotations

from collections.abc import Set

from iced_x86 import Code

from planish.loops.codegen.x86.assembler import Assembler
from planish.loops.codegen.x86.encoding import Mem
from planish.loops.codegen.x86.pointers import Pointers
from planish.loops.ir.tree import Loop

LINE = 64
"""Bytes of a cache line."""
AHEAD = 1024
"""How many bytes ahead lines are asked for."""
LINES_MAX = 8
"""Where an iteration goes farther than this, it does not walk memory in sequence."""


def fetch_ahead(asm: Assembler, pointers: Pointers, loop: Loop, buffers: Set[str]) -> None:
    """Ask for what later iterations of a loop touch, where it walks buffers in sequence.

    Args:
        asm: where the code goes: the beginning of an iteration.
        pointers: which the loop moves.
        loop: the loop.
        buffers: those that are worth it.
    """
    for pointer, stride in pointers.moved(loop, loop.id):
        if pointer.register and pointer.buffer in buffers and LINE <= stride <= LINES_MAX * LINE:
            for line in range(0, stride, LINE):
                asm.emit(Code.PREFETCHT0_M8, Mem(pointer.register, AHEAD - pointer.drift + line))
