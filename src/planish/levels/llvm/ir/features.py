"""Features of IR: AutoPhase's 56 counts of instructions, blocks and edges, and instructions as rows.

A row has few small numbers that describe one instruction, as networks read it.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from planish.core import FeatureSchema
from planish.levels.llvm.ir.syntax import (
    BINARY,
    CASTS,
    NAME,
    OPCODES,
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
# Attributes may be between an argument's type and its value.
_CONSTANT_ARGUMENT = re.compile(rf"(?:^|, )i(\d+)(?: [a-z_]+~?)* {_LITERAL}(?=$|,)")
_CALLED = re.compile(rf'(?:[@%]{NAME}|""|\))\(', re.ASCII)
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
    """Return the two operands of a binary operation, without what is in brackets."""
    first, second, *_ = _flat(instruction.text).split(", ")
    return first.rpartition(" ")[2], second


def _arguments(text: str) -> Iterator[tuple[int, int]]:
    callee = _CALLED.search(text)
    if not callee:
        return
    start = callee.end() - 1
    end = closing(text, start)
    listed = [text[start + 1 : end - 1]]
    if '[ ""(' in text[end:]:
        listed += _BUNDLE.findall(text, end)
    for arguments in listed:
        for width, literal in _CONSTANT_ARGUMENT.findall(_flat(arguments)):
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
        size = len(block.instructions)
        # The limits of AutoPhase.
        counts["BlockLow" if size < 15 else "BlockMid" if size <= 500 else "BlockHigh"] += 1
        for instruction in block.instructions:
            counts.update(_found(instruction, functions))


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
"""Rows for the module as it is, and for the result of -Oz: instructions that are read, from the first on."""

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
    """Return the names of the columns; the number of values is part of a name, for a network depends on it.

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
