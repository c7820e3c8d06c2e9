"""Assembler: instructions in, position-independent machine code with a pool of constants out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

from iced_x86 import Encoder, Instruction, MemoryOperand, Register

# Encoding


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
"""Fields of a `Mem`, in its order."""
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
    # To iced, 1 is not a size: it asks for a single byte where that can hold the displacement (disp8*N with
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


# Assembler

Emitted = Words | tuple[Words, int, bool]
"""An instruction, or one with its opmask register and whether lanes that are off become zero."""


class _Encoded(dict[Emitted, bytes]):
    """Instructions to their bytes, encoded when they are first asked for.

    An instruction without a code address in it is the same bytes wherever it stands. Kernels repeat few
    instructions many times, so most are encoded once in a process's life.
    """

    def __missing__(self, emitted: Any) -> bytes:
        if len(self) >= _ENCODED_MAX:
            self.clear()
        data = self[emitted] = encode(*emitted) if isinstance(emitted[0], tuple) else encode(emitted)
        return data


_ENCODED_MAX = 40_000
"""Instructions that are kept, of some 300 bytes each; beyond, all are forgotten."""
_encoded = _Encoded()


class Assembler:
    """Collects code; `finish` returns it with its constants after it.

    Attributes:
        append: appends an instruction that is one tuple: a quicker `emit` for many.
        extend: the same for several.
    """

    def __init__(self) -> None:
        self._code = bytearray()
        self._waiting: list[Emitted] = []
        self.append: Callable[[Emitted], None] = self._waiting.append
        self.extend: Callable[[Sequence[Emitted]], None] = self._waiting.extend
        self._pool: dict[bytes, int] = {}
        self._pool_size = 0
        self._constants: list[tuple[int, int]] = []
        self._fixups: list[tuple[int, int]] = []

    @property
    def code(self) -> bytearray:
        """The bytes so far; waiting instructions are encoded first."""
        if self._waiting:
            encoded = list(map(_encoded.__getitem__, self._waiting))
            if self._constants:
                ends = list(accumulate(map(len, encoded), initial=len(self._code)))
                self._fixups += [(ends[number], offset) for number, offset in self._constants]
                self._constants.clear()
            self._code += b"".join(encoded)
            self._waiting.clear()
        return self._code

    def emit(self, *instruction: Operand, mask: int = 0, zero: bool = False) -> None:
        """Append an instruction.

        Args:
            instruction: the code of its form, then registers, `Mem` or `Imm`, the destination first.
            mask: an opmask register, or 0.
            zero: with a mask, whether lanes that are off become zero instead of staying.
        """
        self._waiting.append((instruction, mask, zero) if mask else instruction)

    def emit_constant(
        self, code: int, *registers: int, data: bytes, broadcast: bool = False, mask: int = 0
    ) -> None:
        """Append an instruction whose last operand is a constant in memory.

        Args:
            code: the instruction's form; it must have no immediate.
            registers: the operands before the constant.
            data: the constant's bytes.
            broadcast: whether one element is repeated over the lanes.
            mask: an opmask register, or 0.
        """
        self.emit(code, *registers, Mem(Register.RIP, 0, broadcast=broadcast), mask=mask)
        if data not in self._pool:
            # At a multiple of its own size, a constant never lies across two cache lines.
            self._pool_size = -(-self._pool_size // len(data)) * len(data)
            self._pool[data] = self._pool_size
            self._pool_size += len(data)
        self._constants.append((len(self._waiting), self._pool[data]))

    def here(self) -> int:
        """Return the offset of the next instruction."""
        return len(self.code)

    def align(self, n: int) -> int:
        """Pad with no-operations up to a multiple of n bytes; return the offset of the next instruction."""
        code = self.code
        gap = -len(code) % n
        while gap:
            size = min(gap, 9)
            code += _NOPS[size]
            gap -= size
        return len(code)

    def jump(self, condition: bytes, target: int) -> None:
        """Append a jump to an offset that is already known, in its 32-bit form."""
        code = self.code
        code += condition
        code += (target - len(code) - 4).to_bytes(4, "little", signed=True)

    def jump_forward(self, condition: bytes) -> int:
        """Append a jump whose target `land` sets later; returns what `land` needs."""
        self.jump(condition, 0)
        return len(self.code)

    def land(self, jump: int) -> None:
        """Make an earlier forward jump arrive here."""
        code = self.code
        code[jump - 4 : jump] = (len(code) - jump).to_bytes(4, "little", signed=True)

    def finish(self) -> bytes:
        """Return the code, followed by its constants, 64-byte aligned."""
        self.align(64)
        code = self.code
        base = len(code)
        for position, offset in self._fixups:
            # RIP is where the instruction ends, and its displacement comes last.
            distance = base + offset - position
            code[position - 4 : position] = distance.to_bytes(4, "little", signed=True)
        pool = bytearray(self._pool_size)
        for data, offset in self._pool.items():
            pool[offset : offset + len(data)] = data
        return bytes(code + pool)


# The forms that Intel's manual recommends.
_NOPS = {
    1: b"\x90",
    2: b"\x66\x90",
    3: b"\x0f\x1f\x00",
    4: b"\x0f\x1f\x40\x00",
    5: b"\x0f\x1f\x44\x00\x00",
    6: b"\x66\x0f\x1f\x44\x00\x00",
    7: b"\x0f\x1f\x80\x00\x00\x00\x00",
    8: b"\x0f\x1f\x84\x00\x00\x00\x00\x00",
    9: b"\x66\x0f\x1f\x84\x00\x00\x00\x00\x00",
}

JNE, JLE, JL = b"\x0f\x85", b"\x0f\x8e", b"\x0f\x8c"
"""Conditions of jumps, as the opcodes of their 32-bit forms."""
