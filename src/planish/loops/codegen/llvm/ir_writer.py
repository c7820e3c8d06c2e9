"""Writes LLVM's textual IR: arithmetic in one element type, on scalars and vectors of it."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from planish.loops.lang.program import DTYPES
from planish.loops.lang.whole import WHOLE, nearest_whole

Lines = list["str | Lines"]
"""Text in order; an inner list is a place where more may be written later."""


class Val(NamedTuple):
    """A value: a register's name, or a number's text, and how many lanes it has; numbers have one."""

    name: str
    lanes: int

    @property
    def literal(self) -> bool:
        """Whether it is a number."""
        return self.name[0] != "%"


_TYPES = {"float32": "float", "float64": "double", "int32": "i32"}


class Writer:
    """The text of one function.

    Args:
        dtype: the element type, one of `planish.loops.lang.program.DTYPES`.
    """

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.bits = 8 * DTYPES[dtype]
        self.element = _TYPES[dtype]
        self.whole = dtype == WHOLE
        self.lines: Lines = []
        self.label = "entry"
        self.declared: set[str] = set()
        self._count = 0

    def fresh(self) -> str:
        """Make a name for a value."""
        self._count += 1
        return f"%v{self._count}"

    def define(self, text: str, at: Lines | None = None) -> str:
        """Write an instruction with a result and give the result's name."""
        name = self.fresh()
        (self.lines if at is None else at).append(f"  {name} = {text}")
        return name

    def block(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def type(self, lanes: int) -> str:
        """Name the type of a value."""
        return self.element if lanes == 1 else f"<{lanes} x {self.element}>"

    def integer(self, lanes: int) -> str:
        """Name the type of integers as wide as the elements."""
        return f"i{self.bits}" if lanes == 1 else f"<{lanes} x i{self.bits}>"

    def suffix(self, lanes: int) -> str:
        """Name the type as in the names of intrinsic functions."""
        kind = f"{'i' if self.whole else 'f'}{self.bits}"
        return kind if lanes == 1 else f"v{lanes}{kind}"

    def number(self, value: float) -> Val:
        """Write a number, rounded to the element type."""
        if self.whole:
            return Val(str(nearest_whole(value)), 1)
        # LLVM reads a float as a double in hexadecimal, and refuses one that the type cannot represent.
        if self.bits == 32:
            value = struct.unpack("f", struct.pack("f", value))[0]
        return Val(f"0x{struct.pack('>d', value).hex().upper()}", 1)

    def widened(self, value: Val, lanes: int, at: Lines | None = None) -> str:
        """Repeat a scalar in all lanes, if it is one and lanes are asked for."""
        if value.lanes == lanes:
            return value.name
        if value.literal:
            return f"splat ({self.element} {value.name})"
        vector = self.type(lanes)
        one = self.define(f"insertelement {vector} poison, {self.element} {value.name}, i64 0", at)
        return self.define(
            f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer", at
        )

    def call(
        self,
        result: str,
        name: str,
        arguments: Sequence[tuple[str, str]],
        at: Lines | None = None,
        flags: str = "",
    ) -> str:
        """Call an intrinsic function with (type, value) arguments; `result` is its type.

        Flags say what may be assumed of the numbers, such as "nsz ".
        """
        types = ", ".join(t for t, _ in arguments)
        self.declared.add(f"declare {result} @{name}({types})")
        text = f"call {flags}{result} @{name}({', '.join(f'{t} {v}' for t, v in arguments)})"
        if result != "void":
            return self.define(text, at)
        self.lines.append(f"  {text}")
        return ""


def flattened(lines: Lines) -> Iterator[str]:
    """List the text in order."""
    for line in lines:
        if isinstance(line, str):
            yield line
        else:
            yield from flattened(line)
