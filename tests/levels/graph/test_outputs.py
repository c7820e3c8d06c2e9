"""Outputs that are no plain arrays: sequences, maps, optional tensors, bfloat16."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from levels.graph.models import weight, write
from planish.core import Candidate, Measured, evaluate
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.verification import Tolerance, difference, not_finite, tolerance
from planish.measure.executors import InlineExecutor
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

ROWS = [4, 6]
Array = NDArray[Any]


def _ending(
    node: onnx.NodeProto, output: onnx.ValueInfoProto, dtype: int = TensorProto.FLOAT
) -> onnx.ModelProto:
    """Make a product of `x`, whose answer `y` a last node turns into the output."""
    product = helper.make_node("MatMul", ["f", "w"], ["y"])
    first = helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT)
    graph = helper.make_graph(
        [first, product, node],
        "small",
        [helper.make_tensor_value_info("x", dtype, ROWS)],
        [output],
        [weight("w", 6, 6)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _sequence() -> onnx.ModelProto:
    output = helper.make_tensor_sequence_value_info("o", TensorProto.FLOAT, None)
    return _ending(helper.make_node("SplitToSequence", ["y"], ["o"], axis=0), output)


def _maps() -> onnx.ModelProto:
    node = helper.make_node("ZipMap", ["y"], ["o"], domain="ai.onnx.ml", classlabels_int64s=list(range(6)))
    number = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, number))
    return _ending(node, helper.make_value_info("o", kind))


def _optional() -> onnx.ModelProto:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ROWS))
    return _ending(helper.make_node("Optional", ["y"], ["o"]), helper.make_value_info("o", kind))


def _bfloat16() -> onnx.ModelProto:
    node = helper.make_node("Cast", ["y"], ["o"], to=TensorProto.BFLOAT16)
    output = helper.make_tensor_value_info("o", TensorProto.BFLOAT16, ROWS)
    return _ending(node, output, TensorProto.BFLOAT16)


@pytest.mark.parametrize("make", [_sequence, _maps, _optional, _bfloat16])
def test_models_with_such_outputs_are_measured_and_exported(
    tmp_path: Path, make: Callable[[], onnx.ModelProto]
) -> None:
    level = GraphLevel()
    program = level.load(str(write(make(), tmp_path / 'a "net"\\0.onnx')), {})
    task = task_of(level, program, Settings(objectives=("latency",)))
    (answer,) = evaluate(InlineExecutor(level.evaluator(task)()), [Candidate()])
    assert isinstance(answer.outcome, Measured), answer.outcome
    script = level.export(task, Candidate(), tmp_path / "out")[-1]
    said = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    assert said.stdout.startswith("o ")


ROW = np.array([1.0, -2.0, 300.0], np.float32)
OFF = ROW + np.array([0, 1, 0], np.float32)
SMALL = ROW.astype(ml_dtypes.bfloat16)

DIFFERENT: list[tuple[Any, Any, str]] = [
    ([ROW, ROW], [ROW, OFF], "element 1: off by 1"),
    ([ROW], [ROW, ROW], "1 elements in place of 2"),
    (ROW, [ROW], "no sequence"),
    ([{0: 1.0, 1: 2.0}], [{0: 1.0, 1: 2.5}], "element 0: element 1: off by 0.5"),
    ([{0: 1.0}], [{1: 1.0}], "other keys"),
    (None, [ROW], "no sequence"),
    (SMALL, (OFF * 2).astype(ml_dtypes.bfloat16), "off by"),
    (SMALL, ROW, "bfloat16 (3,) in place of float32"),
]


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_differs_is_reported(case: tuple[Any, Any, str]) -> None:
    found, expected, said = case
    assert said in difference([found], [expected], Tolerance(1e-3, 1e-3))


@pytest.mark.parametrize("same", [[ROW, ROW], [{0: 1.0, 1: 2.0}], [], None, SMALL])
def test_what_is_equal_is_not(same: Any) -> None:
    assert difference([same], [same], Tolerance()) == ""


@pytest.mark.parametrize(
    ("output", "expected"),
    [([ROW], False), ([ROW, ROW * np.inf], True), ([{0: float("nan")}], True), (None, False)],
)
def test_numbers_that_are_not_finite_are_found_inside(output: Any, expected: bool) -> None:
    assert not_finite([output]) is expected


def _joined(axis: int, dtype: str = "f4") -> tuple[Array, Array, Array]:
    """Return boxes in pixels and scores beside them, and the index of the scores."""
    random = np.random.default_rng(3)
    boxes, scores = random.uniform(10, 640, (1, 4, 200)), random.uniform(0, 1, (1, 3, 200))
    whole = np.concatenate([boxes, scores], axis=1)
    marks = np.zeros(whole.shape, bool)
    marks[:, 4:] = True
    return (
        np.moveaxis(whole, 1, axis).astype(dtype),
        np.moveaxis(marks, 1, axis),
        np.moveaxis(random.choice([-1, 1], whole.shape), 1, axis).astype(dtype),
    )


@pytest.mark.parametrize("axis", [1, 2])
def test_scores_that_stand_beside_boxes_count_by_themselves(axis: int) -> None:
    expected, scores, signs = _joined(axis)
    wrong = np.where(scores, expected + 0.05 * signs, expected)
    assert "off by 0.05 where the largest number is 0.99" in difference([wrong], [expected], Tolerance())
    rounded = expected + 2e-6 * 640 * signs
    assert difference([rounded], [expected], Tolerance()) == ""
    boxes = np.where(scores, expected, expected + 0.3 * signs)
    assert difference([boxes], [expected], Tolerance()) == ""
    assert "where the largest number is 63" in difference(
        [np.where(scores, expected, expected + signs)], [expected], Tolerance()
    )


def test_half_precision_and_what_is_intended_are_rounded_by_the_largest() -> None:
    expected, scores, signs = _joined(1, "f2")
    rounded = expected + np.float16(0.5) * signs
    assert difference([rounded], [expected], Tolerance()) == ""
    whole = expected.astype("f4")
    for name, off in (("intent.fp16", 3e-2), ("intent.int8", 0.4)):
        shifted = np.where(scores, whole + off * 640, whole).astype("f4")
        assert difference([shifted], [whole], tolerance([name])) == ""
        assert difference([shifted], [whole], tolerance([name], judged=True)) == ""


def test_few_numbers_tell_no_scale() -> None:
    logits = np.array([[5.0, -3.0, 1e-6, 2.0]], "f4")
    assert difference([logits + np.float32(1e-3)], [logits], Tolerance()) == ""
    many = np.repeat(logits, 6, axis=0)  # six examples are too few to tell how large a class's are
    assert difference([many + np.float32(1e-3)], [many], Tolerance()) == ""
    silent = np.zeros((2, 4, 100), "f4")
    silent[:, 0] = 3.0
    assert difference([silent + np.float32(1e-6)], [silent], Tolerance()) == ""
    nothing = np.zeros((4, 100), "f4")
    assert difference([nothing + np.float32(9e-10)], [nothing], Tolerance()) == ""
