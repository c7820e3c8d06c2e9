"""How often a function has each kind of instruction: what is quick to count while a module is searched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

OPCODES = (
    *("add", "alloca", "and", "ashr", "br", "call", "extractvalue", "fadd", "fcmp", "fdiv", "fmul", "fpext"),
    *(
        "fptosi",
        "fptrunc",
        "fsub",
        "getelementptr",
        "icmp",
        "indirectbr",
        "insertvalue",
        "inttoptr",
        "invoke",
    ),
    *("landingpad", "load", "lshr", "mul", "or", "phi", "ptrtoint", "ret", "sdiv", "select", "sext", "shl"),
    *("sitofp", "srem", "store", "sub", "switch", "trunc", "udiv", "uitofp", "unreachable", "urem", "xor"),
    "zext",
)
NAMES = (*OPCODES, "blocks", "conditional", "intrinsics", "TotalInsts")
"""What is counted, in order: instructions; blocks, branches of two ways, calls of intrinsics, and all."""
VERSION = 1
"""Of what they mean."""
_INSTRUCTION = re.compile(
    r'^  (?:%(?:"[^"]*"|\S+) = )?(?:tail |musttail |notail )?([a-z]+)(?=(?: (i1 |.*@llvm\.))?)', re.MULTILINE
)
_LABEL = re.compile(r"^[^\s;}][^\n]*:(?: |$)", re.MULTILINE)


def opcode_counts(texts: Iterable[str]) -> NDArray[np.int64]:
    """Count the instructions of functions, (n, names).

    Args:
        texts: of functions, as LLVM prints them.
    """
    rows = [_counted(text) for text in texts]
    return np.array(rows, np.int64).reshape(len(rows), len(NAMES))


def _counted(text: str) -> list[int]:
    found = _INSTRUCTION.findall(text)
    counts = Counter(opcode for opcode, _ in found)
    conditional = sum(opcode == "br" and what == "i1 " for opcode, what in found)
    intrinsics = sum(opcode == "call" and bool(what) and what != "i1 " for opcode, what in found)
    blocks = len(_LABEL.findall(text)) + 1
    return [*(counts[opcode] for opcode in OPCODES), blocks, conditional, intrinsics, len(found)]
