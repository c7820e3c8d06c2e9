"""A module's text as its statements: definitions, declarations, globals, types, attribute groups, nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from planish.llvm.backend.protocol import IRError
from planish.llvm.functions.ir_syntax import NAME, PRINT_FIRST, QUOTED

Kind = Literal["target", "type", "global", "declare", "define", "attributes", "metadata", "other"]

_KINDS: dict[str, Kind] = {"@": "global", "%": "type", "!": "metadata"}
_WORDS: dict[str, Kind] = {
    "define": "define",
    "declare": "declare",
    "attributes": "attributes",
    "target": "target",
    "source_filename": "other",
    "module": "other",
    "uselistorder": "other",
    "uselistorder_bb": "other",
}
_FUNCTION = re.compile(rf'(?:[^"@]|{QUOTED})*(@{NAME})\(', re.ASCII)
_SUBJECT = re.compile(rf"[@%!]{NAME}", re.ASCII)
_GROUP = re.compile(r"#\d+")


@dataclass(frozen=True, slots=True)
class ModuleStatement:
    """One statement at the top of a module, with the text that LLVM prints for it.

    Args:
        kind: what it is; comdats, module asm, the source's name and use lists are "other".
        name: what references to it look like: `@f`, `%struct.x`, `#0`, `!3`; "" where there are none.
        text: the whole statement, a function's body included, with no line end behind it.
    """

    kind: Kind
    name: str
    text: str


def statements(text: str) -> Iterator[ModuleStatement]:
    """Read a module.

    Args:
        text: the module as LLVM prints it: a statement begins its line, a body ends with `}` alone.

    Raises:
        IRError: it is laid out otherwise; a back end can print it again.
    """
    at = 0
    while at < len(text):
        end = _line_end(text, at)
        if text[at:end].strip() and text[at] != ";":
            kind = _kind(text, at, end)
            if kind == "define":
                end = _body_end(text, at, end)
            statement = text[at:end].rstrip()
            yield ModuleStatement(kind, _name(kind, statement), statement)
        at = end + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _kind(text: str, at: int, end: int) -> Kind:
    if kind := _KINDS.get(text[at]):
        return kind
    if text[at] in "$^":  # a comdat, a summary's entry
        return "other"
    if kind := _WORDS.get(text[at:end].partition(" ")[0]):
        return kind
    raise _unread(text, at, end)


def _body_end(text: str, at: int, end: int) -> int:
    close = text.find("\n}", end - 1)
    if close < 0 or not text[at:end].rstrip().endswith("{"):
        raise _unread(text, at, end)
    return close + 2


def _name(kind: Kind, statement: str) -> str:
    if kind in ("define", "declare"):
        found = _FUNCTION.match(statement)
        return found[1] if found else ""
    found = _GROUP.search(statement) if kind == "attributes" else _SUBJECT.match(statement)
    return found[0] if found else ""


def _unread(text: str, at: int, end: int) -> IRError:
    line = text.count("\n", 0, at) + 1
    return IRError(
        f"line {line} is not laid out as LLVM prints it: '{text[at:end][:60]}'",
        PRINT_FIRST,
    )
