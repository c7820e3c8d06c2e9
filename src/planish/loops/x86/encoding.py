"""From an instruction to its bytes: iced-x86 encodes one of a kind, and the others follow from it.

Instructions that differ in a displacement alone differ in their last bytes alone. And in an EVEX instruction
every bit of a vector register's number has a place of its own, so that another register flips the same
bits whatever the other operands are.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

from iced_x86 import Encoder, EncodingKind, Instruction, MemoryOperand, OpCodeInfo, Register


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

_FAR = 1 << 20
"""A displacement that needs four bytes, whatever it is counted in."""
_FIRST = {r + n: r for r in map(int, (Register.XMM0, Register.YMM0, Register.ZMM0)) for n in range(32)}
"""Vector register to the first one of its width."""
_units: dict[tuple[Operand, bool], int] = {}
_flips: dict[tuple[Operand, type, int, Operand], int] = {}


def encode(words: Words, mask: int = 0, zero: bool = False) -> bytes:
    """Encode an instruction that has no code address in it.

    Args:
        words: the instruction.
        mask: an opmask register, or 0.
        zero: with a mask, whether lanes that are off become zero instead of staying.
    """
    for at, memory in enumerate(words):  # noqa: B007 (what is found is used below)
        if type(memory) is Mem:
            break
    else:
        return _of_kind(words, mask, zero)
    disp = memory.disp
    if disp == 0 or type(words[-1]) is Imm:
        return _of_kind(words, mask, zero)
    unit = _units.get((words[0], memory.broadcast)) or _unit(words, at, memory, mask)
    if disp % unit == 0 and -128 * unit <= disp < 128 * unit:
        alike, end = unit, (disp // unit).to_bytes(1, "little", signed=True)
    else:
        alike, end = _FAR, disp.to_bytes(4, "little", signed=True)
    return _of_kind(_with_disp(words, at, memory, alike), mask, zero)[: -len(end)] + end


def _with_disp(words: Words, at: int, memory: Mem, disp: int) -> Words:
    base, _, offset, scale, broadcast = memory
    return (*words[:at], Mem(base, disp, offset, scale, broadcast), *words[at + 1 :])


def _unit(words: Words, at: int, memory: Mem, mask: int) -> int:
    """Find what a displacement of one byte counts in."""
    short = len(_by_iced(_with_disp(words, at, memory, _FAR), mask)) - 3
    sizes = (1, 2, 4, 8, 16, 32, 64)
    fits = (n for n in sizes if len(_by_iced(_with_disp(words, at, memory, n), mask)) == short)
    unit = _units[words[0], memory.broadcast] = next(fits)
    return unit


@lru_cache(maxsize=100_000)
def _of_kind(words: Words, mask: int, zero: bool) -> bytes:
    """Encode by what is known of the same instruction with other registers."""
    code = words[0]
    if not _is_evex(code):
        return _by_iced(words, mask, zero)
    first = (code, *[_FIRST.get(word, word) if type(word) is int else word for word in words[1:]])
    sample = _by_iced(first, mask, zero)
    bits = known = int.from_bytes(sample, "little")
    for i, word in enumerate(words):
        still = first[i]
        if word != still:
            key = code, type(words[-1]), i, word  # the form of the other operands moves no bits
            flip = _flips.get(key)
            if flip is None:
                other = _by_iced((*first[:i], word, *first[i + 1 :]), mask, zero)
                flip = _flips[key] = int.from_bytes(other, "little") ^ known
            bits ^= flip
    return bits.to_bytes(len(sample), "little")


@cache
def _is_evex(code: Any) -> bool:
    return OpCodeInfo(code).encoding == EncodingKind.EVEX


@lru_cache(maxsize=100_000)
def _by_iced(words: Words, mask: int = 0, zero: bool = False) -> bytes:
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
