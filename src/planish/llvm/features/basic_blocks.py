"""A definition's text as basic blocks of instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from planish.llvm.functions.ir_syntax import NAME, QUOTED

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
