"""From an instruction to its bytes, by iced-x86."""

from __future__ import annotations

from typing import Any, NamedTuple

from iced_x86 import Encoder, Instruction, MemoryOperand, Register


class Mem(NamedTuple):
    """A memory operand: `[base + offset * scale + disp]`, broadcast to all lanes if asked."""

    base: int
    disp: int = 0
    offset: int = Register.NONE
    scale: int = 1
    broadcast: bool = False


class Imm(NamedTuple):
    """An immediate operand."""

    value: int


Operand = int | Mem | Imm
Words = tuple[Operand, ...]
"""An instruction: the code of its form, then registers, `Mem` or `Imm`, the destination first."""


def encode(words: Words, mask: int = 0, zero: bool = False) -> bytes:
    """Encode an instruction that has no code address in it.

    Args:
        words: the instruction.
        mask: an opmask register, or 0.
        zero: with a mask, whether lanes that are off become zero instead of staying.
    """
    memory: Any = MemoryOperand
    arguments = [
        memory(o.base, o.offset, o.scale, o.disp, 0 if o.disp == 0 else 1, o.broadcast)
        if isinstance(o, Mem)
        else o.value
        if isinstance(o, Imm)
        else o
        for o in words
    ]
    create = getattr(Instruction, "_".join(("create", *map(_kind, words[1:]))))
    instruction: Any = create(*arguments)
    if mask:
        instruction.op_mask = mask
        instruction.zeroing_masking = zero
    encoder = Encoder(64)
    encoder.encode(instruction, 0)
    return encoder.take_buffer()


def _kind(operand: Operand) -> str:
    return "mem" if isinstance(operand, Mem) else "i32" if isinstance(operand, Imm) else "reg"
