"""The text of LLVM IR as lexemes, and its one canonical spelling (thesis 4.2.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_NAME = r'(?:"[^"]*"|[-\w.$]+)'
_LEXEME = re.compile(
    rf"""
    \n
    | ,[ ]align[ ]\d+                       # most of what loads, stores and allocas end with: one lexeme
    | (?<=\n){_NAME}:(?=\n|$)               # a label
    | [@%!\#]{_NAME}                        # names
    | c?"[^"]*"                             # text; a quote in it is written \22
    | -?\d+\.\d+(?:e[-+]?\d+)? | 0x[KLMHR]?[0-9A-F]+ | -?\d+
    | [A-Za-z_][\w.]*                       # opcodes, types, attributes
    | \.\.\.
    | [^\s]
    """,
    re.VERBOSE | re.ASCII,
)
_UNSAID = ("target ", "source_filename ", ";")
_CLOSERS, _OPENERS = frozenset("]})>"), frozenset("[{(<")


def lexemes(ir: str) -> list[str]:
    r"""Split a module's text into its lexemes; "\n" is one.

    Unlike in the thesis, what says where the module is for goes too: every prompt would begin with it, and
    whoever reads a module gives it the host's.

    Args:
        ir: as LLVM prints it, or `planish.llvm.ir.normalise` leaves it.
    """
    stripped = (line.strip() for line in ir.splitlines())
    lines = [line for line in stripped if line and not line.startswith(_UNSAID)]
    return _LEXEME.findall("\n".join(lines))


def spelled(parts: Iterable[str]) -> str:
    """Spell lexemes: a space between them, none beside the end of a line. LLVM reads it as the original."""
    return " ".join(parts).replace(" \n ", "\n").replace("\n ", "\n").removesuffix(" \n")


def canonical(ir: str) -> str:
    """Give a module's canonical spelling: `spelled` of its `lexemes`, a fixed point."""
    return spelled(lexemes(ir))


def count_instructions(ir: str) -> int:
    """Count the instructions of all definitions, by the text alone; a `switch` over many lines is one.

    Unlike LLVM's own count that planish uses elsewhere, calls of intrinsics that make no code count, too:
    there are none in unoptimised code.
    """
    return sum(map(_counted, _bodies(lexemes(ir))))


def _bodies(parts: Sequence[str]) -> Iterable[list[list[str]]]:
    """Give the lines of each definition, its first and last left out; what is in brackets is one line."""
    lines, line, depth = list[list[str]](), list[str](), 0
    # The last line has no end of its own.
    for part in [*parts, "\n"]:
        depth += (part in _OPENERS) - (part in _CLOSERS)
        inside = bool(lines) or line[:1] == ["define"]
        if part != "\n":
            line.append(part)
        elif inside and line == ["}"]:
            yield lines[1:]
            lines, line = [], []
        elif inside and depth <= 1:  # the definition's own brace is open
            lines, line = [*lines, line], []
        elif not inside:
            line = []


def _counted(lines: Sequence[Sequence[str]]) -> int:
    return sum(1 for line in lines if line and not (len(line) == 1 and line[0].endswith(":")))
