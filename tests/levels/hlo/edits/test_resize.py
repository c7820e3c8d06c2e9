"""Tensors are made to fit as the paper does it (section 4.1, figures 3 and 5), against NumPy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from levels.hlo.modules import evaluate
from planish.core import ScheduleError
from planish.levels.hlo.edits.resize import build_resize, check_resize, plan_resize
from planish.levels.hlo.ir.mlir import TensorType, context, ir
from planish.levels.hlo.ir.normal import load

SHAPES = st.lists(st.integers(1, 5), max_size=4).map(tuple)
ELEMENTS = {"f32": "float32", "i32": "int32"}


def resized(value: Any, target: TensorType) -> Any:
    """Resize by StableHLO, in the interpreter."""
    source = TensorType(value.shape, {"float32": "f32", "int32": "i32"}[value.dtype.name])
    root = load(f"func.func @main(%x: {source}) -> {source} {{ return %x : {source} }}")
    block = root.regions[0].blocks[0].operations[0].regions[0].blocks[0]
    end = block.operations[0].operation
    result: Any = block.arguments[0]
    with ir.InsertionPoint(end), ir.Location.unknown(context()):
        for step in plan_resize(source, target):
            result = build_resize(result, step, lambda _: None)
    end.operands[0] = result
    function = root.regions[0].blocks[0].operations[0]
    with context():
        function.attributes["function_type"] = ir.TypeAttr.parse(f"({source}) -> {target}")
    root.verify()
    return evaluate(root, value)[0]


def by_numpy(value: Any, target: TensorType) -> Any:
    """Resize one dimension at a time: the last ones first, from their centers."""
    surplus = value.ndim - len(target.shape)
    aligned = (1,) * surplus + target.shape[max(0, -surplus) :]
    for axis, wanted in enumerate(aligned):
        have = value.shape[axis]
        if wanted < have:
            value = np.take(value, range((have - wanted) // 2, (have - wanted) // 2 + wanted), axis)
        missing = max(0, wanted - have)
        widths = [(0, 0)] * value.ndim
        widths[axis] = (missing // 2, missing - missing // 2)
        value = np.pad(value, widths, constant_values=1)
    value = value.reshape(target.shape) if surplus > 0 else np.broadcast_to(value, target.shape)
    return value.astype(ELEMENTS[target.element])


@settings(max_examples=examples(60))
@given(SHAPES, SHAPES, st.sampled_from(sorted(ELEMENTS)), st.sampled_from(sorted(ELEMENTS)))
def test_resizing_is_that_of_numpy(
    old: tuple[int, ...], new: tuple[int, ...], before: str, after: str
) -> None:
    value = (np.arange(np.prod(old, dtype=int)).reshape(old) + 2).astype(ELEMENTS[before])
    target = TensorType(new, after)
    found = resized(value, target)
    assert found.shape == new
    np.testing.assert_array_equal(found, by_numpy(value, target))


def test_figure_3() -> None:
    plan = plan_resize(TensorType((3, 4, 4), "f32"), TensorType((2, 2), "f32"))
    assert plan == (("slice", (1, 1, 1), (2, 3, 3)), ("reshape", (2, 2)))
    cube = np.arange(48, dtype=np.float32).reshape(3, 4, 4)
    np.testing.assert_array_equal(resized(cube, TensorType((2, 2), "f32")), cube[1, 1:3, 1:3])


def test_figure_5_keeps_one_label_in_the_center() -> None:
    labels = np.arange(320, dtype=np.float32).reshape(32, 10) + 5
    found = resized(labels, TensorType((32,), "f32"))
    np.testing.assert_array_equal(found, [*[1] * 11, *labels[15], *[1] * 11])


def test_a_type_stays_as_it_is() -> None:
    assert plan_resize(TensorType((2, 3), "bf16"), TensorType((2, 3), "bf16")) == ()


@pytest.mark.parametrize("element", ["f32", "bf16", "f64", "i1", "i8", "ui16"])
def test_every_plain_element_is_padded_and_converted(element: str) -> None:
    source, target = TensorType((2,), element), TensorType((3, 4), "f32")
    root = load(f"func.func @main(%x: {source}) -> {source} {{ return %x : {source} }}")
    block = root.regions[0].blocks[0].operations[0].regions[0].blocks[0]
    result: Any = block.arguments[0]
    with ir.InsertionPoint(block.operations[0]), ir.Location.unknown(context()):
        for step in plan_resize(source, target):
            result = build_resize(result, step, lambda _: None)
    assert str(result.type) == str(target)
    assert root.verify()


@pytest.mark.parametrize(
    "step",
    [
        ("slice", (2,), (1,)),
        ("slice", (0, 0), (1, 1)),
        ("pad", (1,), ()),
        ("shrink", 2),
        ("pad", (-9,), (0,)),
        (),
    ],
)
def test_what_is_no_resize_is_refused(step: tuple[Any, ...]) -> None:
    with pytest.raises(ScheduleError, match="cannot resize"):
        check_resize(TensorType((3,), "f32"), step)
