"""Syntax of LLVM IR's text.

First names, quotes, brackets and types. Then a module as its statements
(definitions, declarations, globals, types, attribute groups, metadata), and a definition as basic blocks of
instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from planish.levels.llvm.bindings.protocol import IRError

PRINT_FIRST = "Print the module first: opt -S -o printed.ll FILE"

QUOTED = r'"[^"]*"'  # a quote inside is written \22
NAME = rf"(?:{QUOTED}|[-\w.$]+)"

# Quoted text, and comments, are matched so that nothing inside them is taken for a name.
_REFERENCE = re.compile(rf"[@%]{NAME}|[#!]\d+|{QUOTED}|;[^\n]*", re.ASCII)
_DELIMITER = re.compile(rf"{QUOTED}|[(\[{{<]|[)\]}}>]|,")
_WORD_TYPE = re.compile(rf"%{NAME}|\w+", re.ASCII)
_POINTER_SPACE = re.compile(r" addrspace\(\d+\)")


def references(text: str) -> list[str]:
    """List what a text refers to, each once, in the order of first use.

    Returns:
        Names with their sigils (`@f`, `%struct.x`, `#0`, `!3`), those of local values among them.
    """
    return [found for found in dict.fromkeys(_REFERENCE.findall(text)) if found[0] in "@%#!"]


def reachable(names: Iterable[str], needs: Callable[[str], Iterable[str] | None]) -> list[str]:
    """List what is reached from some names, each once, nearest first.

    Args:
        names: where to begin; they are reached themselves, where they are known.
        needs: returns the names that one refers to; None when it is unknown.
    """
    waiting = list(names)
    seen: set[str] = set()
    reached: list[str] = []
    for name in waiting:  # grows as it is walked
        if name in seen:
            continue
        seen.add(name)
        needed = needs(name)
        if needed is not None:
            reached.append(name)
            waiting += needed
    return reached


def closing(text: str, start: int) -> int:
    """Find the end of a bracketed text.

    Args:
        text: any IR.
        start: index of an opening bracket.

    Returns:
        The position after the bracket that closes it.

    Raises:
        IRError: nothing closes it.
    """
    depth = 0
    for found in _DELIMITER.finditer(text, start):
        depth += _depth(found[0])
        if not depth:
            return found.end()
    raise IRError(f"nothing closes the bracket of '{text[start : start + 60]}'", PRINT_FIRST)


def items(text: str) -> Iterator[str]:
    """Split at the commas outside of brackets and quotes; spaces around the items go."""
    depth = start = 0
    for found in _DELIMITER.finditer(text):
        if found[0] == "," and not depth:
            yield text[start : found.start()].strip()
            start = found.end()
        depth += _depth(found[0])
    if last := text[start:].strip():
        yield last


def type_end(text: str, start: int) -> int:
    """Find the position after the type that begins at `start`; a function type counts with its arguments.

    Raises:
        IRError: no type begins there.
    """
    if text.startswith(("[", "{", "<"), start):
        end = closing(text, start)
    elif word := _WORD_TYPE.match(text, start):
        end = word.end()
        if text.startswith("(", end):  # target("name", ...)
            end = closing(text, end)
    else:
        raise IRError(f"no type begins '{text[start : start + 60]}'", PRINT_FIRST)
    if space := _POINTER_SPACE.match(text, end):
        end = space.end()
    return closing(text, end + 1) if text.startswith(" (", end) else end


def _depth(delimiter: str) -> int:
    if delimiter in "([{<":
        return 1
    return -1 if delimiter in ")]}>" else 0


Kind = Literal["target", "type", "global", "declare", "define", "attributes", "metadata", "other"]

_KINDS: dict[str, Kind] = {"@": "global", "%": "type", "!": "metadata"}
_WORDS: dict[str, Kind] = {
    "define": "define",
    "declare": "declare",
    "attributes": "attributes",
    "target": "target",
    **dict.fromkeys(("source_filename", "module", "uselistorder", "uselistorder_bb"), "other"),
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
        text: the whole statement, a function's body included, with no line end after it.
    """

    kind: Kind
    name: str
    text: str


def statements(text: str) -> Iterator[ModuleStatement]:
    """Read a module.

    Args:
        text: the module as LLVM prints it: a statement begins its line, a body ends with `}` alone.

    Raises:
        IRError: it is laid out otherwise; bindings can print it again.
    """
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if text[at:end].strip() and text[at] != ";":
            kind = _kind(text, at, end)
            if kind == "define":
                close = text.find("\n}", end - 1)
                if close < 0 or not text[at:end].rstrip().endswith("{"):
                    raise _unread(text, at, end)
                end = close + 2
            statement = text[at:end].rstrip()
            yield ModuleStatement(kind, _name(kind, statement), statement)
        at = end + 1


def _kind(text: str, at: int, end: int) -> Kind:
    if kind := _KINDS.get(text[at]):
        return kind
    if text[at] in "$^":  # a comdat, a summary's entry
        return "other"
    if kind := _WORDS.get(text[at:end].partition(" ")[0]):
        return kind
    raise _unread(text, at, end)


def _name(kind: Kind, statement: str) -> str:
    if kind in ("define", "declare"):
        found = _FUNCTION.match(statement)
        return found[1] if found else ""
    found = _GROUP.search(statement) if kind == "attributes" else _SUBJECT.match(statement)
    return found[0] if found else ""


def _unread(text: str, at: int, end: int) -> IRError:
    line = text.count("\n", 0, at) + 1
    return IRError(f"line {line} is not laid out as LLVM prints it: '{text[at:end][:60]}'", PRINT_FIRST)


BINARY = frozenset((
    "add", "fadd", "sub", "fsub", "mul", "fmul", "udiv", "sdiv", "fdiv", "urem", "srem", "frem", "shl",
    "lshr", "ashr", "and", "or", "xor",
))  # fmt: skip
CASTS = frozenset((
    "trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint",
    "ptrtoaddr", "inttoptr", "bitcast", "addrspacecast",
))  # fmt: skip
TERMINATORS = frozenset((
    "ret", "br", "switch", "indirectbr", "invoke", "resume", "unreachable", "cleanupret", "catchret",
    "catchswitch", "callbr",
))  # fmt: skip
_OTHERS = frozenset((
    "fneg", "alloca", "load", "store", "getelementptr", "fence", "cmpxchg", "atomicrmw", "icmp", "fcmp",
    "phi", "call", "select", "va_arg", "freeze", "extractelement", "insertelement", "shufflevector",
    "extractvalue", "insertvalue", "landingpad", "catchpad", "cleanuppad",
))  # fmt: skip
OPCODES = BINARY | CASTS | TERMINATORS | _OTHERS

_LABEL = re.compile(rf"({NAME}):", re.ASCII)
_HEAD = re.compile(rf"(?:(%{NAME}) = )?(?:(?:tail|musttail|notail) )?(\w+)", re.ASCII)
_COMMENT = re.compile(rf"((?:[^\";]|{QUOTED})*);.*")
_TARGET = re.compile(rf"\blabel %({NAME})", re.ASCII)
_TEXT = re.compile(r'(?<![%@])"[^"]*"')


@dataclass(slots=True)
class Instruction:
    """One instruction.

    Args:
        opcode: as it is written: `add`, `call` (whether tail or not).
        text: what follows the opcode, without comments, attached metadata and what quoted text says.
        name: of its result, `%3`; "" where it has none, or none is used.
    """

    opcode: str
    text: str
    name: str = ""


@dataclass(slots=True)
class Block:
    """One basic block: its label, "" for a first block without, and its instructions."""

    label: str
    instructions: list[Instruction] = field(default_factory=list[Instruction])

    def targets(self) -> list[str]:
        """List the labels of the blocks that may follow, one for each edge."""
        last = self.instructions[-1] if self.instructions else None
        return _TARGET.findall(last.text) if last and last.opcode in TERMINATORS else []


def read_blocks(definition: str) -> list[Block]:
    """Read the blocks of a definition's text, as LLVM prints it."""
    blocks = [Block("")]
    for line in _lines(definition):
        if label := _LABEL.match(line):
            if blocks[-1].instructions:
                blocks.append(Block(""))
            blocks[-1].label = label[1]
        else:
            _read(line, blocks[-1].instructions)
    return blocks


def _lines(definition: str) -> Iterator[str]:
    _, *lines, _ = definition.splitlines()
    for line in map(str.strip, lines):
        if ";" in line and (comment := _COMMENT.fullmatch(line)):
            line = comment[1].rstrip()
        if line and not line.startswith(("#dbg_", "uselistorder")):
            yield line


def _read(line: str, instructions: list[Instruction]) -> None:
    """Read an instruction, or the further line of one: a switch's cases, where an invoke goes."""
    head = _HEAD.match(line)
    if head and head[2] in OPCODES:
        instructions.append(Instruction(head[2], _bare(line[head.end() :]), head[1] or ""))
    else:
        instructions[-1].text += " " + _bare(line)


def _bare(text: str) -> str:
    """Drop attached metadata, and what quoted text says; quoted names stay."""
    if '"' in text:
        text = _TEXT.sub('""', text)
    return text.partition(", !")[0]
