"""IR as rows of small numbers, one for each instruction, as networks read it."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from planish.core import FeatureSchema
from planish.levels.llvm.ir.syntax import BINARY, NAME, OPCODES, Block, Instruction, read_blocks, statements

_OPCODES = ("", *sorted(OPCODES))
_TYPES = (
    "", "i1", "i8", "i16", "i32", "i64", "i", "float", "double", "real", "ptr", "void", "label", "array",
    "struct", "vector", "other",
)  # fmt: skip
_PREDICATES = ("eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle")
_CALLEES = (
    "memcpy", "memmove", "memset", "lifetime", "assume", "abs", "max", "min", "fsh", "overflow", "sat",
)  # fmt: skip
_DETAILS = (
    "", *_PREDICATES, "fcmp", "plain", "wrap", "exact", "volatile", "atomic", "tail", "indirect", "intrinsic",
    *(f"intrinsic {name}" for name in _CALLEES), *(f"of {n}" for n in range(7)),
    "to i32", "to i64", "to other",
)  # fmt: skip
_CONSTANTS = ("", "0", "1", "-1", "power", "small", "byte", "large", "negative", "null", "undefined", "real")
_FORWARD, _GLOBAL, _ARGUMENT, _FAR = 11, 12, 13, 10
_ENTRIES = ("", "first", "one", "two", "more")
_EXITS = ("", "on", "back", "two on", "two back", "leaves", "many")

SIZES: Mapping[str, int] = {
    "part": 3, "opcode": len(_OPCODES), "type": len(_TYPES), "detail": len(_DETAILS),
    "constant": len(_CONSTANTS), "near": 14, "far": 14, "uses": 5, "entry": len(_ENTRIES),
    "exit": len(_EXITS),
}  # fmt: skip
"""Columns: name to how many values there are. 0 says nothing of an instruction."""
BEFORE, AFTER = 256, 192
"""Rows for the module as it is, and for what -Oz makes of it: the first so many instructions are read."""

_TYPE = re.compile(
    r"(?<![%@\w.])(?:(i\d+|ptr|void|float|double|half|bfloat|fp128|x86_fp80|label)\b|([\[{<]))|%(struct|union)"
)
_VALUE = re.compile(rf"%{NAME}", re.ASCII)
_LABELS = re.compile(rf"\blabel %{NAME}|, %{NAME} \]", re.ASCII)
_NUMBER = re.compile(r"(?<![%@\w.\-])(-?\d+)(?![\w.]| x)|(?<![%@\w.])(-?\d+\.\d\S*|0x[\dA-F]+)", re.ASCII)
_WORD = re.compile(r"(?<![%@\w.])(null|undef|poison|zeroinitializer|true|false)\b")
_ALIGN = re.compile(r", align \d+")
_INTRINSIC = re.compile(r"@llvm\.([\w.]+)")
_CALLEE = re.compile(rf"([@%]){NAME}\(", re.ASCII)
_PLACE = {
    column: {name: index for index, name in enumerate(names)}
    for column, names in (
        ("opcode", _OPCODES), ("type", _TYPES), ("detail", _DETAILS), ("constant", _CONSTANTS),
        ("entry", _ENTRIES), ("exit", _EXITS),
    )
}  # fmt: skip


class CutWarning(UserWarning):
    """A module is longer than what is observed of it."""


def instruction_schema(objective: str = "instructions") -> FeatureSchema:
    """Return what the columns mean; the number of values is part of a name, for a network depends on it.

    Args:
        objective: what is to be made less; what is learnt of one says nothing of another.
    """
    return FeatureSchema(f"llvm/{objective}", 1, tuple(f"{name} {size}" for name, size in SIZES.items()))


def observe_module(before: str, after: str) -> NDArray[np.int64]:
    """Describe a module by its instructions, before and after -Oz.

    Returns:
        (`BEFORE` + `AFTER`, columns), padded with zeros; what is longer is cut off at its end.
    """
    found = np.zeros((BEFORE + AFTER, len(SIZES)), np.int64)
    for part, text, first, most in ((1, before, 0, BEFORE), (2, after, BEFORE, AFTER)):
        rows = read_instructions(text)
        if len(rows) > most:
            which = "as it is" if part == 1 else "after -Oz"
            what = f"of the module {which}, the first {most} of {len(rows):,} instructions are observed"
            warnings.warn(what, CutWarning, stacklevel=2)
        rows = rows[:most]
        found[first : first + len(rows), 0] = part
        found[first : first + len(rows), 1:] = rows
    return found


def read_instructions(ir: str) -> NDArray[np.int64]:
    """Read the instructions of all definitions, in their order: (instructions, columns without `part`).

    Raises:
        IRError: the text is not laid out as LLVM prints it.
    """
    rows = [row for s in statements(ir) if s.kind == "define" for row in _rows(read_blocks(s.text))]
    return np.array(rows, np.int64).reshape(len(rows), len(SIZES) - 1)


def _rows(blocks: Sequence[Block]) -> Iterator[tuple[int, ...]]:
    whole = [one for block in blocks for one in block.instructions]
    defined = {one.name: index for index, one in enumerate(whole) if one.name}
    operands = [_VALUE.findall(_LABELS.sub("", one.text)) for one in whole]
    uses = Counter(name for names in operands for name in names)
    flow = _flow(blocks)
    for index, (one, names) in enumerate(zip(whole, operands, strict=True)):
        # An alignment is a number, and no constant of the program.
        text = _ALIGN.sub("", one.text)
        used = 1 + min(uses[one.name], 3) if one.name else 0
        near = _distances(index, names, defined, "@" in text)
        yield (
            _PLACE["opcode"][one.opcode], _type(text), _PLACE["detail"].get(_detail(one, text), 0),
            _constant(text), min(near), max(near), used, *next(flow),
        )  # fmt: skip


def _distances(index: int, names: Sequence[str], defined: Mapping[str, int], outer: bool) -> list[int]:
    """Return how far back operands were made, by powers of two."""
    found = [_FORWARD if defined[n] >= index else min((index - defined[n]).bit_length(), _FAR)
             for n in names if n in defined]  # fmt: skip
    arguments = [_ARGUMENT for n in names if n not in defined and not n.startswith(("%struct", "%union"))]
    return [*found, *arguments[:1]] or [_GLOBAL if outer else 0]


def _flow(blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Yield for each instruction how its block is entered and left: 0 but for its first and its last."""
    order = {block.label.strip('"'): index for index, block in enumerate(blocks)}
    edges = Counter(target.strip('"') for block in blocks for target in block.targets())
    for index, block in enumerate(blocks):
        count = edges[block.label.strip('"')] if block.label else 0
        entry = "first" if not index else ("one", "two", "more")[min(max(count, 1), 3) - 1]
        last = len(block.instructions) - 1
        for at in range(last + 1):
            yield (
                _PLACE["entry"][entry] if at == 0 else 0,
                _PLACE["exit"][_exit(block, index, order)] if at == last else 0,
            )


def _exit(block: Block, index: int, order: Mapping[str, int]) -> str:
    targets = [order.get(target.strip('"'), index + 1) for target in block.targets()]
    if not targets or len(targets) > 2:
        return "many" if targets else "leaves"
    way = "back" if min(targets) <= index else "on"
    return way if len(targets) == 1 else f"two {way}"


def _type(text: str) -> int:
    found = _TYPE.search(text)
    name = (
        ""
        if found is None
        else found[1] or {"[": "array", "<": "vector", "{": "struct", None: "struct"}[found[2]]
    )
    if name not in _PLACE["type"]:
        name = "i" if name.startswith("i") else "real"
    return _PLACE["type"][name]


def _constant(text: str) -> int:
    numbers = _NUMBER.findall(text)
    if numbers:
        whole, real = numbers[-1]
        return _PLACE["constant"]["real" if real else _magnitude(int(whole))]
    word = _WORD.search(text)
    names = {"null": "null", "undef": "undefined", "poison": "undefined", "true": "1"}
    return _PLACE["constant"]["" if word is None else names.get(word[1], "0")]


def _magnitude(value: int) -> str:
    if -1 <= value <= 1:
        return str(value)
    if value < 0:
        return "negative"
    if value & (value - 1) == 0:
        return "power"
    return "small" if value < 16 else "byte" if value < 256 else "large"


def _detail(one: Instruction, text: str) -> str:
    opcode, detail = one.opcode, ""
    if opcode == "icmp":
        detail = next((word for word in text.split()[:2] if word in _PREDICATES), "")
    elif opcode in ("call", "invoke"):
        detail = _callee(text)
    elif opcode in ("load", "store"):
        detail = next((word for word in ("volatile", "atomic") if f" {word} " in text), "plain")
    elif opcode in ("getelementptr", "phi", "switch", "select", "ret"):
        detail = f"of {min(text.count('[') if opcode == 'phi' else text.count(','), 6)}"
    elif opcode in ("zext", "sext", "trunc"):
        to = text.rpartition(" to ")[2]
        detail = f"to {to}" if to in ("i32", "i64") else "to other"
    elif opcode in BINARY:
        detail = "wrap" if " ns" in text or " nu" in text else "exact" if " exact" in text else "plain"
    return "fcmp" if opcode == "fcmp" else detail


def _callee(text: str) -> str:
    if intrinsic := _INTRINSIC.search(text):
        return next((f"intrinsic {n}" for n in _CALLEES if n in intrinsic[1]), "intrinsic")
    callee = _CALLEE.search(text)
    if callee is None or callee[1] == "%":
        return "indirect"
    inside = text[callee.end() :]
    return f"of {min(inside.count(',') + 1, 6)}" if not inside.startswith(")") else "of 0"
