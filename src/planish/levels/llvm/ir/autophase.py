"""AutoPhase's 56 features: counts of instructions, blocks, edges and integer constants."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from planish.levels.llvm.ir.syntax import (
    BINARY,
    CASTS,
    NAME,
    Block,
    Instruction,
    closing,
    read_blocks,
    statements,
)

_LITERAL = r"(-?\d+|true|false)(?![\w.])"
_TYPED = re.compile(rf"\bi(\d+) {_LITERAL}")
_SECOND = re.compile(rf"\bi(\d+) [^,]+, {_LITERAL}")
_INCOMING_CONSTANT = re.compile(rf"\[ {_LITERAL}, ")
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
            yield from ((int(width[1]), _value(found)) for found in _INCOMING_CONSTANT.findall(text))
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
    """Return the two operands of a binary operation, without what stands in brackets."""
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


FEATURES = (
    "BBNumArgsHi", "BBNumArgsLo", "onePred", "onePredOneSuc", "onePredTwoSuc", "oneSuccessor", "twoPred",
    "twoPredOneSuc", "twoEach", "twoSuccessor", "morePreds", "BB03Phi", "BBHiPhi", "BBNoPhi", "BeginPhi",
    "BranchCount", "returnInt", "CriticalCount", "NumEdges", "const32Bit", "const64Bit", "numConstZeroes",
    "numConstOnes", "UncondBranches", "binaryConstArg", "NumAShrInst", "NumAddInst", "NumAllocaInst",
    "NumAndInst", "BlockMid", "BlockLow", "NumBitCastInst", "NumBrInst", "NumCallInst",
    "NumGetElementPtrInst", "NumICmpInst", "NumLShrInst", "NumLoadInst", "NumMulInst", "NumOrInst",
    "NumPHIInst", "NumRetInst", "NumSExtInst", "NumSelectInst", "NumShlInst", "NumStoreInst", "NumSubInst",
    "NumTruncInst", "NumXorInst", "NumZExtInst", "TotalBlocks", "TotalInsts", "TotalMemInst", "TotalFuncs",
    "ArgsPhi", "testUnary",
)  # fmt: skip
"""The names, in the order in which they were published."""
VERSION = 2
"""Of what they mean. In 1, `returnInt` counted fewer functions than CompilerGym does."""

_COUNTED = {
    "ashr": "AShr", "add": "Add", "alloca": "Alloca", "and": "And", "bitcast": "BitCast", "br": "Br",
    "call": "Call", "getelementptr": "GetElementPtr", "icmp": "ICmp", "lshr": "LShr", "load": "Load",
    "mul": "Mul", "or": "Or", "phi": "PHI", "ret": "Ret", "sext": "SExt", "select": "Select", "shl": "Shl",
    "store": "Store", "sub": "Sub", "trunc": "Trunc", "xor": "Xor", "zext": "ZExt",
}  # fmt: skip
_MEMORY = ("getelementptr", "load", "store", "call", "invoke", "alloca")
_UNARY = CASTS | {"fneg", "alloca", "load", "va_arg", "extractvalue", "freeze"}
_PREDECESSORS = {1: "onePred", 2: "twoPred"}
_SUCCESSORS = {1: "oneSuccessor", 2: "twoSuccessor"}
_BOTH = {(1, 1): "onePredOneSuc", (1, 2): "onePredTwoSuc", (2, 1): "twoPredOneSuc", (2, 2): "twoEach"}
_INCOMING_BLOCK = re.compile(rf", %{NAME} \]", re.ASCII)
_CALLED_FOR_INT = re.compile(rf"(?:^|\s)i\d+ (?:\([^@]*\) )?(@{NAME})\(", re.ASCII)


def autophase(ir_text: str) -> npt.NDArray[np.int64]:
    """Count AutoPhase's features (Huang et al., FCCM 2019) over all definitions of a module.

    They are CompilerGym's, in its order, with these notes. `TotalFuncs` counts definitions, as it is
    described, where CompilerGym counts declarations too. Calls of debug and lifetime intrinsics are
    instructions. A constant is an integer operand, not a part of a vector or an expression; an alloca of
    one element has a constant 1. With opaque pointers (since LLVM 15) casts between pointers are gone, so
    that `NumBitCastInst`, `testUnary` and `TotalInsts` are lower than the paper's on the same source.

    Args:
        ir_text: a module as LLVM prints it.

    Returns:
        Shape (56,), in the order of `FEATURES`.

    Raises:
        IRError: the text is not laid out as LLVM prints it.
    """
    read = list(statements(ir_text))
    functions = {s.name for s in read if s.kind in ("define", "declare")}
    counts = Counter[str]()
    for statement in read:
        if statement.kind == "define":
            counts["TotalFuncs"] += 1
            _count(read_blocks(statement.text), functions, counts)
    # What is counted and no feature, such as BlockHigh, falls out here.
    return np.array([counts[name] for name in FEATURES], np.int64)


def _count(blocks: Sequence[Block], functions: set[str], counts: Counter[str]) -> None:
    opcodes = Counter(i.opcode for block in blocks for i in block.instructions)
    counts.update({f"Num{name}Inst": opcodes[opcode] for opcode, name in _COUNTED.items()})
    counts["TotalBlocks"] += len(blocks)
    counts["TotalInsts"] += opcodes.total()
    counts["TotalMemInst"] += sum(opcodes[opcode] for opcode in _MEMORY)
    counts["testUnary"] += sum(opcodes[opcode] for opcode in _UNARY)
    counts["BranchCount"] += opcodes["br"]
    _count_edges(blocks, counts)
    for block in blocks:
        _count_phis(block, counts)
        counts["BlockLow" if len(block.instructions) < 15 else _long(block)] += 1  # the limits of AutoPhase
        for instruction in block.instructions:
            counts.update(_found(instruction, functions))


def _long(block: Block) -> str:
    return "BlockMid" if len(block.instructions) <= 500 else "BlockHigh"


def _count_edges(blocks: Sequence[Block], counts: Counter[str]) -> None:
    following = [block.targets() for block in blocks]
    entering = Counter(label for labels in following for label in labels)
    for block, labels in zip(blocks, following, strict=True):
        after, before = len(labels), entering[block.label]
        counts["NumEdges"] += after
        # Critical edges: they leave a block of several successors, and enter one of several predecessors.
        counts["CriticalCount"] += sum(entering[label] > 1 for label in labels) if after > 1 else 0
        counts[_SUCCESSORS.get(after, "moreSuccessors")] += 1
        counts[_PREDECESSORS.get(before, "morePreds" if before else "noPreds")] += 1
        counts[_BOTH.get((before, after), "otherBoth")] += 1


def _count_phis(block: Block, counts: Counter[str]) -> None:
    phis = [len(_INCOMING_BLOCK.findall(i.text)) for i in block.instructions if i.opcode == "phi"]
    counts["ArgsPhi"] += sum(phis)
    counts["BeginPhi"] += bool(phis)
    counts["BBNoPhi" if not phis else "BB03Phi" if len(phis) <= 3 else "BBHiPhi"] += 1
    if phis:
        counts["BBNumArgsHi" if sum(phis) > 5 else "BBNumArgsLo"] += 1


def _found(instruction: Instruction, functions: set[str]) -> Iterator[str]:
    """Name the features that one instruction's operands add to."""
    for width, value in constants(instruction):
        if width in (32, 64):
            yield f"const{width}Bit"
        if value in (0, 1):
            yield "numConstOnes" if value else "numConstZeroes"
    opcode = instruction.opcode
    if opcode == "br" and instruction.text.startswith(" label"):
        yield "UncondBranches"
    elif opcode == "call":
        called = _CALLED_FOR_INT.search(instruction.text)
        if called and called[1] in functions:
            yield "returnInt"
    elif opcode in BINARY and any(not operand.startswith("%") for operand in binary_operands(instruction)):
        yield "binaryConstArg"
