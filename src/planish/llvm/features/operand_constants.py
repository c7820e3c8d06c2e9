"""The integer constants among an instruction's operands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planish.llvm.features.basic_blocks import BINARY, Instruction
from planish.llvm.functions.ir_syntax import NAME, closing

_LITERAL = r"(-?\d+|true|false)(?![\w.])"
_TYPED = re.compile(rf"\bi(\d+) {_LITERAL}")
_SECOND = re.compile(rf"\bi(\d+) [^,]+, {_LITERAL}")
_INCOMING = re.compile(rf"\[ {_LITERAL}, ")
_WIDTH = re.compile(r"(?: \w+)*? i(\d+) ")
# Attributes may stand between an argument's type and its value.
_ARGUMENT = re.compile(rf"(?:^|, )i(\d+)(?: [a-z_]+~?)* {_LITERAL}(?=$|,)")
_CALLEE = re.compile(rf'(?:[@%]{NAME}|""|\))\(', re.ASCII)
_BUNDLE = re.compile(r'""\(([^()]*)\)')
_INNERMOST = re.compile(r"[\[({<][^\[\](){}<>]*[\])}>]")
_CALLS = frozenset(("call", "invoke", "callbr"))
_COMPARED = BINARY | {"icmp"}
_VALUES = {"true": 1, "false": 0}


def constants(instruction: Instruction) -> Iterator[tuple[int, int]]:
    """List the width and the value of each integer constant among the operands.

    Values of switch cases count, and the element that an alloca without a count has. Parts of aggregates,
    vectors and constant expressions do not.
    """
    opcode, text = instruction.opcode, instruction.text
    if opcode in _CALLS:
        yield from _arguments(text)
    elif opcode == "phi":
        width = _WIDTH.match(text)
        if width:
            yield from ((int(width[1]), _value(found)) for found in _INCOMING.findall(text))
    else:
        if opcode != "switch" and opcode not in ("catchpad", "cleanuppad"):
            text = _flat(text)
        found = _TYPED.findall(text)
        if opcode in _COMPARED:
            found += _SECOND.findall(text)
        elif opcode == "alloca" and ", i" not in text:
            yield 32, 1
        yield from ((int(width), _value(literal)) for width, literal in found)


def binary_operands(instruction: Instruction) -> tuple[str, str]:
    """Give the two operands of a binary operation, without what stands in brackets."""
    first, second, *_ = _flat(instruction.text).split(", ")
    return first.rpartition(" ")[2], second


def _arguments(text: str) -> Iterator[tuple[int, int]]:
    callee = _CALLEE.search(text)
    if not callee:
        return
    start = callee.end() - 1
    end = closing(text, start)
    listed = [text[start + 1 : end - 1]]
    if '[ ""(' in text[end:]:
        listed += _BUNDLE.findall(text, end)
    for arguments in listed:
        for width, literal in _ARGUMENT.findall(_flat(arguments)):
            yield int(width), _value(literal)


def _flat(text: str) -> str:
    """Put a mark for everything in brackets."""
    changed = 1 if "(" in text or "[" in text or "{" in text or "<" in text else 0
    while changed:
        text, changed = _INNERMOST.subn("~", text)
    return text


def _value(literal: str) -> int:
    value = _VALUES.get(literal)
    return int(literal) if value is None else value
