"""Comparison of answers: by rounding, where the model is sensitive to it, and of outputs of any kind."""

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
from onnx import TensorProto, helper, numpy_helper

from levels.graph.models import constant, model, weight, write
from levels.graph.tasks import Apply, evaluator_of
from planish.core import Candidate, Measured, Outcome, evaluate
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.passes import selection
from planish.levels.graph.rewriting import apply_pass
from planish.levels.graph.sessions import SessionSettings
from planish.levels.graph.verification import Tolerance, difference, moved_answers, not_finite, tolerance
from planish.measure.executors import InlineExecutor
from planish.tuning.api import task_of
from planish.tuning.settings import Settings


def evaluated(
    folder: Path,
    made: onnx.ModelProto,
    *candidates: Candidate,
    final: bool = False,
    apply: Apply = apply_pass,
    **options: str,
) -> tuple[list[Outcome], tuple[str, ...]]:
    """Evaluate candidates of a model; return the notes too."""
    level = GraphLevel()
    task = task_of(level, level.load(str(write(made, folder / "net.onnx")), options), Settings())
    executor = InlineExecutor(evaluator_of(level.evaluator(task, final=final), apply))
    return [answer.outcome for answer in evaluate(executor, candidates)], tuple(executor.notes)


def faint_scores() -> onnx.ModelProto:
    """Make scores of some 1e-7 to 1e-4: the runtime's sigmoid has steps of 2^-25 there, as it has near 1."""
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"]), helper.make_node("Sigmoid", ["c"], ["y"])]
    weights = [weight("w", 8, 3, 3, 3), constant("b", np.full(8, -26, np.float32))]
    return model(nodes, weights, (1, 3, 16, 16))


def copied(made: onnx.ModelProto) -> onnx.ModelProto:
    """Copy a model: a pass that does nothing gives back what it was given."""
    copy = onnx.ModelProto()
    copy.CopyFrom(made)
    return copy


IDLE = selection(["onnxscript.eliminate_identity"]).candidate


def test_a_model_may_be_off_by_what_rounding_comes_to_in_it(tmp_path: Path) -> None:
    (outcome,), _ = evaluated(tmp_path, faint_scores(), Candidate())
    assert isinstance(outcome, Measured), outcome


@pytest.mark.parametrize("factor", [0.0, 0.9, 1.1])
def test_what_is_wrong_in_such_a_model_is_refused_all_the_same(factor: float, tmp_path: Path) -> None:
    def spoil(made: onnx.ModelProto, name: str) -> onnx.ModelProto:
        changed = copied(apply_pass(made, name))
        changed.graph.node[-1].output[0] = "z"
        changed.graph.initializer.append(constant("factor", np.array(factor, np.float32)))
        changed.graph.node.append(helper.make_node("Mul", ["z", "factor"], ["y"]))
        return changed

    (outcome,), _ = evaluated(tmp_path, faint_scores(), IDLE, apply=spoil)
    assert "output 0: off by" in str(outcome)


def test_answers_that_rounding_decides_are_no_ground_to_refuse_by(tmp_path: Path) -> None:
    """The model reports in whole numbers which of two sums is larger that differ by their rounding."""

    def rounded(made: onnx.ModelProto, name: str) -> onnx.ModelProto:
        changed = copied(apply_pass(made, name))
        last = numpy_helper.to_array(changed.graph.initializer[0])
        changed.graph.initializer[0].CopyFrom(constant("w", np.nextafter(last, np.float32(9))))
        return changed

    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["a"]),
        node("MatMul", ["x", "v"], ["b"]),
        node("Greater", ["a", "b"], ["g"]),
        node("Cast", ["g"], ["y"], to=TensorProto.INT64),
    ]
    w = weight("w", 64, 64)
    v = constant("v", numpy_helper.to_array(w) * np.float32(1 + 2**-23))
    made = model(nodes, [w, v], (8, 64))
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    (outcome,), _ = evaluated(tmp_path, made, IDLE, apply=rounded)
    assert "answers to all inputs depend on rounding" in str(outcome)


def test_derived_inputs_on_which_the_baseline_is_wrong_are_left_out(tmp_path: Path) -> None:
    """The runtime fuses a padding with 0 into a maximum, which is right while some number is above 0."""
    nodes = [
        helper.make_node("Pad", ["x", "p"], ["q"]),
        helper.make_node("MaxPool", ["q"], ["y"], kernel_shape=[3, 3]),
    ]
    pads = constant("p", np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    x = -np.arange(1, 65, dtype=np.float32).reshape(1, 1, 8, 8)
    x[:, :, 0] = x[:, :, -1] = x[:, :, :, 0] = x[:, :, :, -1] = 1
    x[:, :, 0, :4] = np.arange(1, 5)
    np.savez(tmp_path / "in.npz", x=x)
    made = model(nodes, [pads], (1, 1, 8, 8))
    (outcome,), notes = evaluated(tmp_path, made, Candidate(), final=True, inputs=str(tmp_path / "in.npz"))
    assert isinstance(outcome, Measured), outcome
    assert len(notes) == 1
    assert "of the inputs made of the given ones are skipped: the baseline fails on them" in notes[0]


def test_weights_and_inputs_move_by_one_number_and_nothing_else_does(tmp_path: Path) -> None:
    w, exponent = np.array([[2.0, 0.0], [0.0, -4.0]], np.float32), np.array(2, np.float32)
    nodes = [helper.make_node("Pow", ["w", "e"], ["p"]), helper.make_node("MatMul", ["x", "p"], ["y"])]
    made = model(nodes, [constant("w", w), constant("e", exponent)], (2, 2))
    feed = {"x": np.eye(2, dtype=np.float32)}
    ((found,),) = moved_answers(made, [feed], SessionSettings(), tmp_path / "moved.onnx")
    assert not (tmp_path / "moved.onnx").exists()
    assert numpy_helper.to_array(made.graph.initializer[0]).tolist() == w.tolist()
    assert found[0, 1] == found[1, 0] == 0
    off = np.abs(np.diag(found) / np.array([4.0, 16.0]) - 1)
    assert (off > 0).all()
    assert (off < 4e-7).all()


NAN, INF = np.float32("nan"), np.float32("inf")


@pytest.mark.parametrize(
    ("found", "expected", "is_right"),
    [
        ([1, NAN], [1, NAN], True),
        ([1, -INF], [1, -INF], True),
        ([1, NAN], [1, 2], False),
        ([1, 2], [1, NAN], False),
        ([1, INF], [1, -INF], False),
        ([1, NAN], [1, INF], False),
        ([2, NAN], [1, NAN], False),
        ([], [], True),
    ],
)
def test_what_is_not_finite_has_to_be_the_same(
    found: list[float], expected: list[float], is_right: bool
) -> None:
    one, other = np.array(found, np.float32), np.array(expected, np.float32)
    assert (difference([one], [other], Tolerance()) == "") is is_right


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
    (ROW * np.nan, ROW, "not finite"),
    (np.array([1, 3]), np.array([1, 2]), "output 0: 1 of 2 elements differ"),
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
        assert difference([shifted], [whole], tolerance([name], by_accuracy=True)) == ""


def test_few_numbers_tell_no_scale() -> None:
    logits = np.array([[5.0, -3.0, 1e-6, 2.0]], "f4")
    assert difference([logits + np.float32(1e-3)], [logits], Tolerance()) == ""
    many = np.repeat(logits, 6, axis=0)  # six examples are too few to show how large a class's are
    assert difference([many + np.float32(1e-3)], [many], Tolerance()) == ""
    silent = np.zeros((2, 4, 100), "f4")
    silent[:, 0] = 3.0
    assert difference([silent + np.float32(1e-6)], [silent], Tolerance()) == ""
    nothing = np.zeros((4, 100), "f4")
    assert difference([nothing + np.float32(9e-10)], [nothing], Tolerance()) == ""
