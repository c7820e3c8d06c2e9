"""Each edit does what it says, with the repair that it carries, and is refused where it is illegal."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from levels.hlo.edits.test_fold import SUMS
from levels.hlo.modules import chain, evaluate, summing
from planish.core import Candidate, ScheduleError, Step
from planish.levels.hlo import Program, program_from
from planish.levels.hlo.edits import (
    CopyOp,
    DeleteOp,
    Edit,
    EditableModule,
    Fold,
    MoveOp,
    ReplaceConstant,
    ReplaceOperand,
    ScaleConstant,
    SetAttribute,
    SwapOps,
)
from planish.levels.hlo.patch import replay

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Y = np.array([[2, 2, 2], [7, 7, 7]], np.float32)
WIDE = (("broadcast", (2, 3), ()),)


def edited(*steps: Step, program: Program | None = None) -> EditableModule:
    return replay(program or chain(), Candidate(steps))


def value(*steps: Step) -> Any:
    """What the chain `(x + y) * 2 - y` computes after edits."""
    return evaluate(edited(*steps).root, X, Y)[0]


def names(module: EditableModule) -> list[str]:
    return module.blocks[""]


COPY = CopyOp("1", "3", ((0, "2#0", ()), (1, "arg0", ())), "3", 0)


@pytest.mark.parametrize(
    ("steps", "wanted", "order"),
    [
        ((), (X + Y) * 2 - Y, "01234"),
        ((COPY,), ((X + Y) * 2 + X) - Y, "012*34"),
        ((CopyOp("1", "4", ((1, "arg0", ()),)),), (X + Y) * 2 - Y, "0123*4"),
        ((DeleteOp("2", (("1#0", ()),)),), (X + Y) - Y, "0134"),
        ((DeleteOp("3", (("arg1", ()),)),), Y, "0124"),
        ((DeleteOp("0", (("arg0", ()),)),), (X + Y) * X - Y, "1234"),
        ((ReplaceOperand("3", 1, "arg0"),), (X + Y) * 2 - X, "01234"),
        ((MoveOp("0", "2"),), (X + Y) * 2 - Y, "10234"),
        ((MoveOp("2", "1", ((0, "arg0", ()),)),), X * 2 - Y, "02134"),
        ((MoveOp("1", "3", (), (("arg1", ()),)),), Y * 2 - Y, "02134"),
        ((SwapOps("1", "2", ((0, "arg0", ()),)),), (X + Y) - Y, "02134"),
        ((SwapOps("1", "3", ((0, "arg0", ()),)),), X + Y, "03214"),
        ((ScaleConstant("0", 0.25),), (X + Y) * 0.5 - Y, "01234"),
        ((ReplaceConstant("0", -1.0),), -(X + Y) - Y, "01234"),
        ((ReplaceConstant("0", 1e-05),), (X + Y) * np.float32(1e-05) - Y, "01234"),
    ],
)
def test_what_edits_do(steps: Sequence[Edit], wanted: Any, order: str) -> None:
    module = edited(*steps)
    np.testing.assert_array_equal(evaluate(module.root, X, Y)[0], wanted)
    new = steps[0].id_prefix if steps else ""
    assert names(module) == [new if name == "*" else name for name in order]


def test_swapping_gives_each_the_place_and_the_users_of_the_other() -> None:
    # (x + y) * 2 - y, where the product now comes last and takes the difference of x and y.
    steps = SwapOps("2", "3", ((0, "1#0", ()),))
    np.testing.assert_array_equal(value(steps), (X + Y) * 2)


def test_a_value_is_resized_where_it_is_used() -> None:
    resize = (("slice", (0, 1), (1, 2)), ("reshape", ()), *WIDE)
    step = ReplaceOperand("3", 1, "arg0", resize)
    np.testing.assert_array_equal(value(step), (X + Y) * 2 - X[0, 1])
    assert names(edited(step)) == ["0", "1", "2", *(f"{step.id_prefix}.{i}" for i in range(3)), "3", "4"]


def test_attributes_change_where_the_types_stay() -> None:
    program = program_from(
        "func.func @main(%x: tensor<9xf32>) -> tensor<3xf32> {\n"
        "%0 = stablehlo.slice %x [2:5] : (tensor<9xf32>) -> tensor<3xf32>\n return %0 : tensor<3xf32> }"
    )
    moved = (("start_indices", "array<i64: 4>"), ("limit_indices", "array<i64: 7>"))
    module = edited(SetAttribute("0", moved), program=program)
    assert evaluate(module.root, np.arange(9, dtype=np.float32))[0].tolist() == [4, 5, 6]
    with pytest.raises(ScheduleError, match="not valid"):
        edited(SetAttribute("0", moved[:1]), program=program)
    with pytest.raises(ScheduleError, match="no attribute 'color'"):
        edited(SetAttribute("0", (("color", "1 : i32"),)), program=program)
    for text in ("array<", ""):
        with pytest.raises(ScheduleError, match="expected an attribute"):
            edited(SetAttribute("0", (("strides", text),)), program=program)


def test_an_edit_after_one_that_gives_an_operation_that_is_not_valid_reads_nothing_of_it() -> None:
    """The fold would look for the axis along which an operand of two dimensions is broadcast."""
    program = program_from(SUMS)
    for edit in (
        SetAttribute("4", (("broadcast_dimensions", "array<i64>"),)),
        ReplaceOperand("5", 1, "arg3", (("broadcast", (4, 5, 6), ()),)),
    ):
        with pytest.raises(ScheduleError):
            edited(edit, Fold(("5",)), program=program)


def test_an_operation_stays_while_a_value_inside_it_is_used_outside() -> None:
    """A constant and an argument of the condition of a loop; without the loop the process would crash."""
    for inner in ("11#0", "10^0#0"):
        with pytest.raises(ScheduleError, match="cannot delete operation '10'"):
            edited(DeleteOp("10", ((inner, ()), ("4#0", ()))), program=summing())


@pytest.mark.parametrize("element", ["", "f7", "complex<f32>", "tensor<f32>"])
def test_an_operand_is_converted_to_numbers_alone(element: str) -> None:
    with pytest.raises(ScheduleError, match="cannot resize"):
        edited(ReplaceOperand("3", 1, "arg0", (("convert", element), ("convert", "f32"))))


def test_constants_of_several_values_are_scaled_each() -> None:
    program = program_from(
        "func.func @main() -> tensor<3xf32> {\n"
        "%0 = stablehlo.constant dense<[1.0, -2.0, 3.0]> : tensor<3xf32>\n return %0 : tensor<3xf32> }"
    )
    assert evaluate(edited(ScaleConstant("0", 3.0), program=program).root)[0].tolist() == [3, -6, 9]
    with pytest.raises(ScheduleError, match="not finite"):
        edited(ScaleConstant("0", 3e38), program=program)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_constant_is_a_finite_number(number: float) -> None:
    with pytest.raises(ScheduleError, match="expected a finite number"):
        edited(ReplaceConstant("0", number))


def test_edits_happen_inside_loops() -> None:
    program = summing()
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = x.sum(1) / 2
    n = np.int32(3)
    np.testing.assert_allclose(evaluate(edited(program=program).root, x, n)[0], rows * 8)
    doubled = ReplaceOperand("15", 1, "4#0")
    np.testing.assert_allclose(evaluate(edited(doubled, program=program).root, x, n)[0], rows * 4)
    outside = DeleteOp("10", (("arg1", ()), ("4#0", ())))
    module = edited(outside, program=program)
    np.testing.assert_allclose(evaluate(module.root, x, n)[0], rows)
    assert set(module.infos) == {*"0123456789", "17"}
    assert set(module.blocks) == {"", "4^0"}


def test_copies_of_operations_with_regions_have_ids_of_their_own() -> None:
    copy = CopyOp("4", "9", ((0, "arg0", ()),), "10", 1)
    module = edited(copy, ReplaceOperand("10", 1, f"{copy.id_prefix}#0"), program=summing())
    assert module.blocks[f"{copy.id_prefix}^0"] == [f"{copy.id_prefix}.{i}" for i in (5, 6, 7, 8)]
    assert len(set(module.infos)) == 18 + 5


ILLEGAL = {
    "no such operation": (DeleteOp("99", ()), "no operation '99'"),
    "nothing for the users": (DeleteOp("3", ()), "nothing is given for the users"),
    "itself for the users": (DeleteOp("3", (("3#0", ()),)), "are used"),
    "no such operand": (ReplaceOperand("3", 2, "arg0"), "no operand 2"),
    "negative operand": (ReplaceOperand("3", -1, "arg0"), "no operand -1"),
    "no such argument": (ReplaceOperand("3", 0, "arg9"), "no value 'arg9'"),
    "no such result": (ReplaceOperand("3", 0, "2#1"), "no value '2#1'"),
    "no such region": (ReplaceOperand("3", 0, "2^0#0"), "no region '0'"),
    "nonsense": (ReplaceOperand("3", 0, "two"), "no operation ''"),
    "comes later": (ReplaceOperand("1", 0, "2#0"), "not valid"),
    "other type": (ReplaceOperand("3", 0, "arg0", (("convert", "i32"),)), "not tensor<2x3xi32>"),
    "terminator": (ReplaceOperand("4", 0, "arg0"), "may not be changed"),
    "terminator deleted": (DeleteOp("4", ()), "may not be changed"),
    "terminator copied": (CopyOp("4", "1"), "may not be changed"),
    "terminator uses a copy": (CopyOp("1", "4", (), "4", 0), "may not be changed"),
    "moved to itself": (MoveOp("1", "1"), "Name two"),
    "not moved back": (SwapOps("3", "1"), "cannot swap"),
    "swapped in a circle": (SwapOps("1", "2"), "not valid"),
    "no constant": (ScaleConstant("1", 2.0), "expected a constant"),
    "too large": (ScaleConstant("0", 1e300 * 1e300), "expected a finite number, got inf"),
}


@pytest.mark.parametrize(("step", "says"), ILLEGAL.values(), ids=ILLEGAL)
def test_what_is_illegal_is_refused(step: Edit, says: str) -> None:
    with pytest.raises(ScheduleError) as error:
        edited(step)
    assert says in str(error.value)


UNTOUCHED = {
    "start": ReplaceConstant("0", 1.0),
    "start deleted": DeleteOp("0", (("1#0", ()),)),
    "start replaced": ReplaceOperand("4", 1, "1#0"),
    "start by a copy": CopyOp("1", "4", (), "4", 1),
    "copied with another start": CopyOp("4", "9", ((1, "1#0", ()),)),
    "region": ReplaceOperand("6", 0, "4^0#0"),
    "into a region": CopyOp("6", "7"),
    "end of a loop's body": ReplaceOperand("16", 1, "10^1#1"),
}


@pytest.mark.parametrize("step", UNTOUCHED.values(), ids=UNTOUCHED)
def test_starts_and_regions_of_reductions_are_left_alone(step: Edit) -> None:
    with pytest.raises(ScheduleError):
        edited(step, program=summing())


def test_operations_of_several_results_are_not_swapped() -> None:
    with pytest.raises(ScheduleError, match="one result"):
        edited(SwapOps("9", "10"), program=summing())


def test_an_edit_twice_is_illegal() -> None:
    with pytest.raises(ScheduleError, match="already"):
        edited(COPY, COPY)


def test_other_steps_are_refused() -> None:
    with pytest.raises(ScheduleError, match="expected an edit"):
        edited(Step())


def test_the_original_is_never_changed() -> None:
    before = edited().text()
    edited(COPY, ScaleConstant("0", 3.0))
    assert edited().text() == before
