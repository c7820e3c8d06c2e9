"""AutoPhase's features counted slowly, by a walk over what llvmlite parsed."""

import re
from collections import Counter
from collections.abc import Iterator

import llvmlite.binding as llvm
from llvmlite.binding import ValueKind

UNARY = {
    "trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint",
    "ptrtoaddr", "inttoptr", "bitcast", "addrspacecast", "fneg", "alloca", "load", "va_arg",
    "extractvalue", "freeze",
}  # fmt: skip
BINARY = {
    "add", "fadd", "sub", "fsub", "mul", "fmul", "udiv", "sdiv", "fdiv", "urem", "srem", "frem", "shl",
    "lshr", "ashr", "and", "or", "xor",
}  # fmt: skip
NAMED = {
    "ashr": "AShr", "add": "Add", "alloca": "Alloca", "and": "And", "bitcast": "BitCast", "br": "Br",
    "call": "Call", "getelementptr": "GetElementPtr", "icmp": "ICmp", "lshr": "LShr", "load": "Load",
    "mul": "Mul", "or": "Or", "phi": "PHI", "ret": "Ret", "sext": "SExt", "select": "Select", "shl": "Shl",
    "store": "Store", "sub": "Sub", "trunc": "Trunc", "xor": "Xor", "zext": "ZExt",
}  # fmt: skip
MEMORY = {"getelementptr", "load", "store", "call", "invoke", "alloca"}


def walk(text: str) -> Counter[str]:
    """Count the features of all definitions; those that are 0 are left out."""
    module = llvm.parse_assembly(text, context=llvm.create_context())
    counts = Counter[str]()
    integer = {f.name for f in module.functions if str(f.global_value_type).startswith("i")}
    for function in module.functions:
        if not function.is_declaration:
            counts["TotalFuncs"] += 1
            counts.update(_function(function, integer))
    return counts


def _function(function: llvm.ValueRef, integer: set[str]) -> Iterator[str]:
    blocks = [(str(block), list(block.instructions)) for block in function.blocks]
    followers = {
        at: [str(o) for o in body[-1].operands if o.value_kind == ValueKind.basic_block]
        for at, body in blocks
    }
    entering = Counter(label for labels in followers.values() for label in labels)
    for at, body in blocks:
        yield from _edges(entering[at], [entering[label] for label in followers[at]])
        yield from _block(body)
        for instruction in body:
            yield from _instruction(instruction, integer)
            yield from (name for width, value in _constants(instruction) for name in _constant(width, value))


def _edges(before: int, behind: list[int]) -> Iterator[str]:
    after = len(behind)
    yield from ["NumEdges"] * after
    yield from ["CriticalCount"] * sum(after > 1 and entering > 1 for entering in behind)
    if after in (1, 2):
        yield ("oneSuccessor", "twoSuccessor")[after - 1]
    if before:
        yield "onePred" if before == 1 else "twoPred" if before == 2 else "morePreds"
    both = {(1, 1): "onePredOneSuc", (1, 2): "onePredTwoSuc", (2, 1): "twoPredOneSuc", (2, 2): "twoEach"}
    if (before, after) in both:
        yield both[before, after]


def _block(body: list[llvm.ValueRef]) -> Iterator[str]:
    phis = [len(list(i.incoming_blocks)) for i in body if i.opcode == "phi"]
    yield "TotalBlocks"
    if len(body) <= 500:
        yield "BlockLow" if len(body) < 15 else "BlockMid"
    yield "BBNoPhi" if not phis else "BB03Phi" if len(phis) < 4 else "BBHiPhi"
    yield from ["ArgsPhi"] * sum(phis)
    if phis:
        yield "BeginPhi"
        yield "BBNumArgsHi" if sum(phis) > 5 else "BBNumArgsLo"


def _instruction(instruction: llvm.ValueRef, integer: set[str]) -> Iterator[str]:
    opcode, operands = instruction.opcode, list(instruction.operands)
    yield "TotalInsts"
    if opcode in NAMED:
        yield f"Num{NAMED[opcode]}Inst"
    if opcode in MEMORY:
        yield "TotalMemInst"
    if opcode in UNARY:
        yield "testUnary"
    if opcode == "br":
        yield "BranchCount"
        if len(operands) == 1:
            yield "UncondBranches"
    if opcode in BINARY and any(operand.is_constant for operand in operands):
        yield "binaryConstArg"
    if opcode == "call" and operands[-1].value_kind == ValueKind.function and operands[-1].name in integer:
        yield "returnInt"


def _constants(instruction: llvm.ValueRef) -> Iterator[tuple[str, int]]:
    if instruction.opcode == "switch":  # its cases are operands in some versions of LLVM only
        cases = re.findall(r"(i\d+) (-?\d+)(?:, label|$)", str(instruction))
        yield from (
            (width, {"true": 1, "false": 0}[value] if value in ("true", "false") else int(value))
            for width, value in cases
        )
        return
    for operand in instruction.operands:
        if operand.value_kind == ValueKind.constant_int:
            yield str(operand.type), int(operand.get_constant_value())


def _constant(width: str, value: int) -> Iterator[str]:
    if width in ("i32", "i64"):
        yield f"const{width[1:]}Bit"
    if value in (0, 1):
        yield ("numConstZeroes", "numConstOnes")[value]
