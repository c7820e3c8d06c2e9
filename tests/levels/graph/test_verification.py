"""What a candidate may be off by, where the model itself is sensitive to rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from levels.graph.models import constant, model, weight, write
from levels.graph.tasks import Apply, evaluator_of
from planish.core import Candidate, Failed, Measured, Outcome, evaluate
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.passes import selection
from planish.levels.graph.rewriting import apply_pass
from planish.levels.graph.sessions import SessionSettings
from planish.levels.graph.verification import Tolerance, difference, moved_answers
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
    assert isinstance(outcome, Failed)
    assert outcome.detail.startswith("output 0: off by")


def test_answers_that_rounding_decides_are_no_ground_to_refuse_by(tmp_path: Path) -> None:
    """The model tells in whole numbers which of two sums is larger that differ by their rounding."""

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
    assert isinstance(outcome, Failed)
    assert "answers to all inputs depend on rounding" in outcome.detail


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
    assert "of the inputs made of the given ones are left out: the baseline fails on them" in notes[0]


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
