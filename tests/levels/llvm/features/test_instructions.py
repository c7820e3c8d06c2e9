"""Reading IR as rows of numbers, one for each instruction."""

import warnings

import numpy as np
import pytest

from planish.levels.llvm.ir.instruction_rows import (
    AFTER,
    BEFORE,
    SIZES,
    CutWarning,
    instruction_schema,
    observe_module,
    read_instructions,
)

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
