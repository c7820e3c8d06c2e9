"""The text notation: `C[m,n] += A[m,k] * B[k,n]`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planish.core.errors import ProgramError
from planish.loops.lang.extents import Shapes
from planish.loops.lang.inference import infer
from planish.loops.lang.program import Program
from planish.loops.lang.syntax import read_statements


def parse(
    text: str,
    sizes: Mapping[str, int] | None = None,
    shapes: Shapes | None = None,
    dtype: str | Mapping[str, str] = "float32",
) -> Program:
    """Read a program.

    Statements are separated by `;` or line ends. Each is `target = value`, or a reduction with `+=`,
    `*=`, `max=` or `min=` over the axes that the target does not have. Subscripts are sums of axes
    with coefficients (`2*y + r - 1`); `pad(I[y - 1], 0)` reads 0 outside of I; `sum(x)`, `prod(x)`,
    `max(x)` and `min(x)` reduce inside a value; `O[r, a + b] = A[r,a] | B[r,b]` concatenates.

    Args:
        text: the statements.
        sizes: axis to extent; those that shapes tell may be left out.
        shapes: tensor to shape, as far as needed.
        dtype: the element type of inputs and outputs, or tensor to type, or both as in "float16,C=float32".

    Raises:
        ProgramError: the text cannot be read, or makes no program; says where.
    """
    return infer(read_statements(text), sizes or {}, shapes, dtype)


def is_canonical(text: str) -> bool:
    """Whether a text names types, as only `Program.text` does: it has all that there is to know."""
    return re.search(r" \| \w+:\w+\[", text) is not None


def parse_canonical(text: str) -> Program:
    """Read `Program.text` back: `parse_canonical(p.text) == p`.

    Raises:
        ProgramError: the text is no program's.
    """
    text, _, constants = text.partition(" | constant ")
    body, *rest = text.split(" | ")
    if len(rest) != 2 or not rest[1].strip():
        raise ProgramError(
            "no sizes and types behind the statements", "Expected: statements | sizes | types."
        )
    shapes: dict[str, tuple[int, ...]] = {}
    types: dict[str, str] = {}
    for item in rest[1].split():
        match = re.fullmatch(r"(\w+):(\w+)\[((?:\d{1,18}(?:,\d{1,18})*)?)\]", item)
        if not match:
            raise ProgramError(f"'{item}' is no type", "Write name:float32[64,64].")
        if match[1] in types:
            raise ProgramError(f"tensor '{match[1]}' has two types", "Give each tensor one type.")
        shapes[match[1]] = tuple(map(int, filter(None, match[3].split(","))))
        types[match[1]] = match[2]
    program = parse(body, read_sizes(rest[0]), shapes, types)
    return program.with_constants(filter(None, constants.split(",")))


def read_sizes(text: str) -> dict[str, int]:
    """Read `m=192,n=192`; raises ProgramError."""
    result: dict[str, int] = {}
    for item in filter(None, re.split(r"[,;\s]+", text)):
        match = re.fullmatch(r"([A-Za-z_]\w*)=(-?\d{1,18})", item)
        if not match:
            raise ProgramError(f"'{item}' is no size", "Write --size m=192,n=192.")
        if match[1] in result:
            raise ProgramError(
                f"axis '{match[1]}' has two sizes, {result[match[1]]} and {match[2]}",
                "Give each axis one size.",
            )
        result[match[1]] = int(match[2])
    return result


def read_shapes(text: str) -> dict[str, tuple[int, ...]]:
    """Read `I=1x3x224x224,W=64x3x7x7`, or with commas for the crosses; raises ProgramError."""
    result: dict[str, tuple[int, ...]] = {}
    for item in filter(None, re.split(r"[;\s]+|,(?=[A-Za-z_])", text)):
        match = re.fullmatch(r"([A-Za-z_]\w*)=((?:-?\d{1,18}(?:[,x]-?\d{1,18})*)?)", item)
        if not match:
            raise ProgramError(f"'{item}' is no shape", "Write --shape I=1x3x224x224.")
        if match[1] in result:
            raise ProgramError(
                f"tensor '{match[1]}' has two shapes, in '{text}'", "Give each tensor one shape."
            )
        result[match[1]] = tuple(map(int, filter(None, re.split("[,x]", match[2]))))
    return result
