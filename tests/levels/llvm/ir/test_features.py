"""Features of IR: AutoPhase's, against a walk over what LLVM parsed, and instructions as rows."""

import re
import warnings

import numpy as np
import pytest

from levels.llvm.ir.samples import ODD
from levels.llvm.ir.walk import walk
from planish.levels.llvm.ir.features import (
    AFTER,
    BEFORE,
    FEATURES,
    SIZES,
    CutWarning,
    autophase,
    instruction_schema,
    observe_module,
    read_instructions,
)
from planish.levels.llvm.ir.functions import normalize, split_module

BRANCHES = """define i32 @f(i32 %0, ptr %1) {
  %3 = alloca i64, align 8
  %4 = icmp sgt i32 %0, 0
  br i1 %4, label %5, label %9

5:                                                ; preds = %5, %2
  %6 = phi i32 [ 0, %2 ], [ %7, %5 ]
  %7 = add nsw i32 1, %6
  %8 = icmp eq i32 %7, %0
  br i1 %8, label %9, label %5

9:                                                ; preds = %5, %2
  %10 = phi i32 [ -1, %2 ], [ %7, %5 ]
  %11 = call i32 @abs(i32 noundef %10)
  store i64 64, ptr %3, align 8
  ret i32 %11
}

declare i32 @abs(i32)
"""
BY_HAND = {
    "BBNumArgsLo": 2, "twoPred": 2, "twoEach": 1, "twoSuccessor": 2, "BB03Phi": 2, "BBNoPhi": 1,
    "BeginPhi": 2, "BranchCount": 2, "returnInt": 1, "CriticalCount": 4, "NumEdges": 4, "const32Bit": 5,
    "const64Bit": 1, "numConstZeroes": 2, "numConstOnes": 2, "binaryConstArg": 1, "NumAddInst": 1,
    "NumAllocaInst": 1, "BlockLow": 3, "NumBrInst": 2, "NumCallInst": 1, "NumICmpInst": 2, "NumPHIInst": 2,
    "NumRetInst": 1, "NumStoreInst": 1, "TotalBlocks": 3, "TotalInsts": 11, "TotalMemInst": 3,
    "TotalFuncs": 1, "ArgsPhi": 4, "testUnary": 1,
}  # fmt: skip
# Each line, and the features that it adds to: constants of 32 and of 64 bits, zeroes, ones, and
# binary operations with a constant.
OPERANDS = {
    "%a = add i32 %x, 1": (1, 0, 0, 1, 1),
    "%a = sub nuw nsw i64 0, %y": (0, 1, 1, 0, 1),
    "%a = and i32 %x, %x": (0, 0, 0, 0, 0),
    "%a = xor i1 %c, true": (0, 0, 0, 1, 1),
    "%a = fadd fast double %d, 1.000000e+00": (0, 0, 0, 0, 1),
    "%a = add <2 x i32> %v, <i32 1, i32 2>": (0, 0, 0, 0, 1),
    "%a = add i64 ptrtoint (ptr @g to i64), 1": (0, 1, 0, 1, 1),
    "%a = icmp ult i64 %y, 1": (0, 1, 0, 1, 0),
    "%a = select i1 %c, i32 0, i32 -1": (2, 0, 1, 0, 0),
    "%a = alloca [4 x i32], align 16": (1, 0, 0, 1, 0),
    "%a = alloca i8, i64 %y, align 1": (0, 0, 0, 0, 0),
    "%a = alloca i8, i64 0, align 1": (0, 1, 1, 0, 0),
    "%a = load i32, ptr getelementptr (i8, ptr @g, i64 1), align 4": (0, 0, 0, 0, 0),
    "%a = load atomic i32, ptr %p seq_cst, align 4": (0, 0, 0, 0, 0),
    "store i32 0, ptr %p, align 1, !tbaa !0": (1, 0, 1, 0, 0),
    "store { i32, i64 } { i32 1, i64 0 }, ptr %p, align 8": (0, 0, 0, 0, 0),
    "%a = getelementptr inbounds nuw { i32, [2 x i64] }, ptr %p, i64 0, i32 1, i64 %y": (1, 1, 1, 1, 0),
    "%a = atomicrmw add ptr %p, i32 1 seq_cst, align 4": (1, 0, 0, 1, 0),
    "%a = cmpxchg ptr %p, i64 0, i64 1 acq_rel monotonic, align 8": (0, 2, 1, 1, 0),
    "%a = insertvalue { i32, i64 } poison, i32 0, 1": (1, 0, 1, 0, 0),
    "%a = insertelement <2 x i32> %v, i32 1, i64 0": (1, 1, 1, 1, 0),
    "%a = shufflevector <2 x i32> %v, <2 x i32> poison, <2 x i32> <i32 1, i32 0>": (0, 0, 0, 0, 0),
    "%a = call i32 (ptr, ...) @printf(ptr @g, i32 noundef 1, i64 range(i64 0, 9) 0)": (1, 1, 1, 1, 0),
    "tail call void %p(i32 signext -1, ptr align 1 dereferenceable(1) %p) #0": (1, 0, 0, 0, 0),
    'call void asm sideeffect "mov $1, $0; i32 1", "r,r"(i32 1, i64 0)': (1, 1, 1, 1, 0),
    'call void @llvm.assume(i1 true) [ "align"(ptr %p, i64 1), "tag"(i32 0) ]': (1, 1, 1, 2, 0),
    "ret i32 1": (1, 0, 0, 1, 0),
    "br i1 false, label %1, label %2": (0, 0, 1, 0, 0),
}

DECLARED = """%struct.S = type { i32 }
@alias = alias i32 (), ptr @int
declare i32 @int()
declare i32 @"a name"(ptr, ...)
declare i32 @struct(%struct.S, ...)
declare { i32, i32 } @pair()
declare <4 x i32> @vector()
declare i64 @llvm.ctpop.i64(i64)
"""
# Each line, and whether it calls a function of an integer by its name.
CALLS = {
    "%a = call i32 @int()": 1,
    "%a = tail call fastcc noundef range(i32 0, 5) i32 @int() #0": 1,
    '%a = call i32 (ptr, ...) @"a name"(ptr null)': 1,
    "%a = call i32 (%struct.S, ...) @struct(%struct.S zeroinitializer)": 1,
    "%a = call i64 @llvm.ctpop.i64(i64 %x)": 1,
    "%a = call i32 %p()": 0,
    "%a = call i32 @alias()": 0,
    "%a = call { i32, i32 } @pair()": 0,
    "%a = call <4 x i32> @vector()": 0,
    '%a = call i32 asm "nop", "=r"()': 0,
}


def named(text: str) -> dict[str, int]:
    return dict(zip(FEATURES, autophase(text).tolist(), strict=True))


def test_the_published_order() -> None:
    assert len(FEATURES) == len(set(FEATURES)) == 56
    ends = FEATURES[0], FEATURES[16], FEATURES[31], FEATURES[51], FEATURES[55]
    assert ends == ("BBNumArgsHi", "returnInt", "NumBitCastInst", "TotalInsts", "testUnary")


def test_a_function_counted_by_hand() -> None:
    assert named(BRANCHES) == dict.fromkeys(FEATURES, 0) | BY_HAND
    assert named(BRANCHES) == dict.fromkeys(FEATURES, 0) | walk(BRANCHES)


@pytest.mark.parametrize("line", OPERANDS)
def test_operands_counted_by_hand(line: str) -> None:
    found = named(f"define void @f() {{\n  {line}\n}}\n")
    counted = ("const32Bit", "const64Bit", "numConstZeroes", "numConstOnes", "binaryConstArg")
    assert tuple(found[name] for name in counted) == OPERANDS[line]


@pytest.mark.parametrize("line", CALLS)
def test_calls_for_an_integer_counted_by_hand(line: str) -> None:
    text = f"{DECLARED}define void @f(ptr %p, i64 %x) {{\n  {line}\n  ret void\n}}\n"
    assert named(text)["returnInt"] == CALLS[line]


def test_real_modules_as_llvm_reads_them(real: str) -> None:
    zeroes = dict.fromkeys(FEATURES, 0)
    assert named(real) == zeroes | walk(real)
    normal = normalize(real)
    assert named(normal) == zeroes | walk(normal)


def test_odd_functions_as_llvm_reads_them() -> None:
    for function in split_module(ODD):
        assert named(function.text) == dict.fromkeys(FEATURES, 0) | walk(function.text)


def test_a_modules_features_are_its_functions_sums(real: str) -> None:
    aliases = re.findall(r"^@.* = .*\balias\b", real, re.MULTILINE)  # calls of an alias are no direct ones
    parts = [autophase(f.text) for f in split_module(real)]
    different = np.flatnonzero(sum(parts, np.zeros(56, np.int64)) != autophase(real))
    assert {FEATURES[i] for i in different} <= ({"returnInt"} if aliases else set())


def test_no_definitions_give_zeroes() -> None:
    vector = autophase("declare void @f()\n")
    assert vector.shape == (56,)
    assert vector.dtype == np.int64
    assert not vector.any()


LOOP = """define i32 @f(i32 %0, ptr %1) {
2:
  br label %3

3:                                                ; preds = %3, %2
  %4 = phi i32 [ 0, %2 ], [ %6, %3 ]
  %5 = load i32, ptr %1, align 4
  %6 = add nsw i32 %4, 64
  %7 = icmp slt i32 %6, %0
  br i1 %7, label %3, label %8

8:                                                ; preds = %3
  ret i32 %5
}
"""
PLACE = {name: place for place, name in enumerate(tuple(SIZES)[1:])}


def column(name: str, ir: str = LOOP) -> list[int]:
    return read_instructions(ir)[:, PLACE[name]].tolist()


def test_an_instruction_is_a_row_and_every_number_is_of_its_column() -> None:
    rows = read_instructions(LOOP)
    assert rows.shape == (7, len(SIZES) - 1)
    assert (rows < np.array(list(SIZES.values())[1:])).all()
    assert (rows >= 0).all()
    assert len(set(column("opcode"))) == 6  # two branches


def test_operands_are_described_by_how_far_back_they_are() -> None:
    near, far = column("near"), column("far")
    assert near[3] == 2  # the phi, two before: 2 has two bits
    assert near[4] == 1  # the sum
    assert far[4] > 10  # beside it an argument
    assert near[6] == 3  # the load, four before
    assert near[2] == far[2] == 13  # an argument alone
    assert near[1] == 11  # what the loop makes later


def test_loops_are_seen_by_how_blocks_are_entered_and_left() -> None:
    assert column("entry") == [1, 3, 0, 0, 0, 0, 2]
    leaves = column("exit")
    assert leaves[1:5] == [0, 0, 0, 0]
    forward = LOOP.replace("label %3, label %8", "label %8, label %8")
    assert leaves[5] != column("exit", forward)[5]


def test_constants_are_described_by_their_magnitude() -> None:
    found = {
        value: column("constant", LOOP.replace("64", value))[3]
        for value in ("0", "1", "-1", "64", "7", "300")
    }
    assert len(set(found.values())) == 6
    assert column("constant", LOOP.replace("64", "32"))[3] == found["64"]  # powers of two are alike


def test_names_and_attached_metadata_change_nothing() -> None:
    named = LOOP.replace("%5", "%loaded").replace("align 4", "align 4, !tbaa !3")
    np.testing.assert_array_equal(read_instructions(named), read_instructions(LOOP))


def test_what_is_longer_than_the_context_is_cut_and_said() -> None:
    body = "".join(f"  %{n} = add i32 %0, {n}\n" for n in range(2, BEFORE + 3))
    long = f"define i32 @g(i32 %0) {{\n{body}  ret i32 %0\n}}\n"
    with pytest.warns(CutWarning, match=f"the first {BEFORE} of {BEFORE + 2} instructions are observed"):
        seen = observe_module(long, LOOP)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short = observe_module(LOOP, LOOP)
    assert seen.shape == short.shape == (BEFORE + AFTER, len(SIZES))
    assert (seen[:BEFORE, 0] == 1).all()
    np.testing.assert_array_equal(seen[BEFORE:], short[BEFORE:])


def test_what_is_learnt_of_one_objective_is_not_taken_for_another() -> None:
    assert instruction_schema("instructions") != instruction_schema("text_bytes")
