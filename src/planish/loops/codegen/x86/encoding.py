"""From an instruction to its bytes, by iced-x86."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
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


Address = tuple[int, int, int, int, bool]
"""What a `Mem` is, in its order."""
Operand = int | Address | Imm
Words = tuple[Operand, ...]
"""An instruction: the code of its form, then registers, `Mem` or `Imm`, the destination first."""


def encode(words: Words, mask: int = 0, zero: bool = False) -> bytes:
    """Encode an instruction that has no code address in it.

    Args:
        words: the instruction.
        mask: an opmask register, or 0.
        zero: with a mask, whether lanes that are off become zero instead of staying.
    """
    create = _creator(tuple(map(type, words)))
    instruction = create(*[_argument(o) if isinstance(o, tuple) else o for o in words])
    if mask:
        instruction.op_mask = mask
        instruction.zeroing_masking = zero
    encoder = Encoder(64)
    encoder.encode(instruction, 0)
    return encoder.take_buffer()


def _argument(operand: Address | Imm) -> Any:
    if isinstance(operand, Imm):
        return operand.value
    base, disp, offset, scale, broadcast = operand
    # To iced, 1 is no size: it asks for a single byte where that can hold the displacement (disp8*N with
    # EVEX).
    return _memory(base, offset, scale, disp, 0 if disp == 0 else 1, broadcast)


_memory: Any = MemoryOperand


@cache
def _creator(kinds: tuple[type, ...]) -> Callable[..., Any]:
    """Find what makes an instruction of a code and operands of these types."""
    names = [
        "i32" if issubclass(kind, Imm) else "mem" if issubclass(kind, tuple) else "reg" for kind in kinds[1:]
    ]
    return getattr(Instruction, "_".join(("create", *names)))
