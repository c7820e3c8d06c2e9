"""Asking for cache lines before they are needed: the processor's own prefetching ends with each page."""

from __future__ import annotations

from collections.abc import Sequence

from iced_x86 import Code

from planish.loops.codegen.x86.assembler import Assembler
from planish.loops.codegen.x86.encoding import Mem
from planish.loops.codegen.x86.pointers import Pointers
from planish.loops.ir.tree import Loop, Ref
from planish.loops.lower.physical.region import LINE

AHEAD = 1024
"""How many bytes ahead lines are asked for."""


def fetch_ahead(asm: Assembler, pointers: Pointers, loop: Loop, fetched: Sequence[Ref]) -> None:
    """Ask for what later iterations of a loop touch.

    Args:
        asm: where the code goes: the beginning of an iteration.
        pointers: which the loop moves.
        loop: the loop.
        fetched: references that it walks in sequence, whose lines are worth it.
    """
    if not fetched:
        return
    wanted = {id(pointers.of(ref)) for ref in fetched}
    for pointer, stride in pointers.moved(loop, loop.id):
        if pointer.register and id(pointer) in wanted:
            for line in range(0, stride, LINE):
                asm.emit(Code.PREFETCHT0_M8, Mem(pointer.register, AHEAD - pointer.drift + line))
