"""Counted loops, with their counters in general registers or on the stack."""

from __future__ import annotations

from collections.abc import Callable

from iced_x86 import Code

from planish.loops.codegen.x86.assembler import JNE, Assembler
from planish.loops.codegen.x86.encoding import Imm, Mem
from planish.loops.codegen.x86.pointers import RSP, Pointers
from planish.loops.ir.tree import Loop


class Counting:
    """Writes the loops of one function.

    Args:
        asm: where the code goes.
        pointers: which the loops move.
        reserved: counter slots on the stack that belong to somebody else.
    """

    def __init__(self, asm: Assembler, pointers: Pointers, reserved: int) -> None:
        self.asm = asm
        self.pointers = pointers
        self.slots = self._depth = reserved

    def slot(self, number: int) -> Mem:
        """A counter's place on the stack, behind the pointers' homes."""
        return Mem(RSP, 8 * (len(self.pointers.all) + number))

    def repeat(self, loop: Loop, count: int, body: Callable[[], None]) -> None:
        """Write a loop; afterwards its pointers stand behind the last iteration.

        Args:
            loop: whose pointers move.
            count: iterations, at least 1.
            body: writes one iteration.
        """
        if count == 1:
            body()
            return
        register = self.pointers.free.pop() if len(self.pointers.free) > 1 else 0
        place = register or self.slot(self._depth)
        self._depth += 1
        self.slots = max(self.slots, self._depth)
        self.asm.emit(Code.MOV_RM64_IMM32, place, Imm(count))
        self._loop(loop, count, body, place)
        self._depth -= 1
        if register:
            self.pointers.free.append(register)

    def _loop(self, loop: Loop, count: int, body: Callable[[], None], place: int | Mem) -> None:
        live = [(p, p.strides.get(loop.id, 0), p.drift) for p in self.pointers.live(loop.body)]
        # Processors keep decoded instructions by aligned pieces of 32 bytes: a loop should take few of them.
        head = self.asm.align(32)
        body()
        for pointer, stride, drift in live:
            self.pointers.advance(self.asm, pointer, stride + drift - pointer.drift)
        self.asm.emit(Code.DEC_RM64, place)
        self.asm.jump(JNE, head)
        # Nothing moves them back: from here on static offsets count from where they stand.
        for pointer, stride, drift in live:
            pointer.drift = drift + count * stride
