"""Control flow and sequences become plain nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from network.compiled import assert_same, compiled, run_onnxruntime
from network_models import ModelWriter
from planish.core import ProgramError

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def body(
    nodes: Sequence[Any],
    inputs: Sequence[tuple[str, int, Sequence[int] | None]],
    outputs: Sequence[tuple[str, int, Sequence[int] | None]],
    weights: Sequence[tuple[str, Any]] = (),
) -> onnx.GraphProto:
    ends, starts = ([helper.make_tensor_value_info(*each) for each in listed] for listed in (outputs, inputs))
    return helper.make_graph(
        list(nodes),
        "body",
        starts,
        ends,
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights],
    )


def node(operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, [output], **attributes)


def test_scan_and_loop_are_repeated(tmp_path: Path) -> None:
    w = ModelWriter()
    x, h, weights = w.input("x", (5, 3)), w.input("h", (3,)), w.weight(3, 3)
    step = body(
        [
            node("MatMul", ["state", weights], "m"),
            node("Add", ["m", "part"], "a"),
            node("Tanh", ["a"], "new"),
            node("Mul", ["new", "new"], "square"),
        ],
        [("state", FLOAT, (3,)), ("part", FLOAT, (3,))],
        [("new", FLOAT, (3,)), ("square", FLOAT, (3,))],
    )
    found = w.add("Scan", h, x, count=2, body=step, num_scan_inputs=1)
    backward = w.add("Scan", h, x, count=2, body=step, num_scan_inputs=1, scan_input_directions=[1])
    # Each iteration has an iteration of an inner loop, whose number is that of the outer one.
    inner = body(
        [node("Add", ["v", "outer_float"], "w"), node("Identity", ["inner_on"], "inner_goes")],
        [("j", INT64, ()), ("inner_on", BOOL, ()), ("v", FLOAT, (3,))],
        [("inner_goes", BOOL, ()), ("w", FLOAT, (3,))],
    )
    outer = body(
        [
            node("Cast", ["i"], "outer_float", to=FLOAT),
            node("Loop", ["i", "", "u"], "z", body=inner),
            node("Identity", ["on"], "goes"),
            node("Neg", ["z"], "seen"),
        ],
        [("i", INT64, ()), ("on", BOOL, ()), ("u", FLOAT, (3,))],
        [("goes", BOOL, ()), ("z", FLOAT, (3,)), ("seen", FLOAT, (3,))],
    )
    looped = w.add("Loop", w.constant(np.array(3)), "", h, count=2, body=outer)
    path = w.save(tmp_path / "m.onnx", *found, *backward, *looped)
    assert_same(compiled(path).network, path)


def test_a_loop_that_may_end_keeps_what_it_carries(tmp_path: Path) -> None:
    w = ModelWriter()
    x, most = w.input("x", (1,)), w.constant(np.array(9))
    step = body(
        [node("Mul", ["v", "two"], "d"), node("Less", ["d", "limit"], "l"), node("Squeeze", ["l"], "goes")],
        [("i", INT64, ()), ("on", BOOL, ()), ("v", FLOAT, (1,))],
        [("goes", BOOL, ()), ("d", FLOAT, (1,))],
        [("two", np.float32(2)), ("limit", np.array([20], np.float32))],
    )
    path = w.save(tmp_path / "m.onnx", w.add("Loop", most, w.constant(np.array(True)), x, body=step))
    net = compiled(path).network
    for value in (0.01, 1.5, 30):
        feed = {"x": np.array([value], np.float32)}
        np.testing.assert_allclose(net(**feed), run_onnxruntime(path, feed)[0], rtol=1e-6)


def test_branches_are_chosen(tmp_path: Path) -> None:
    w = ModelWriter()
    w.input("x", (2, 3))
    on = w.input("on", (), BOOL)
    yes, no = (
        body([node(operator, ["x"], f"{operator}_y")], [], [(f"{operator}_y", FLOAT, (2, 3))])
        for operator in ("Neg", "Exp")
    )
    chosen = w.add("If", on, then_branch=yes, else_branch=no)
    fixed = w.add("If", w.constant(np.array(False)), then_branch=yes, else_branch=no)
    path = w.save(tmp_path / "m.onnx", w.add("Relu", chosen), fixed)
    net = compiled(path).network
    for value in (True, False):
        feed = {"x": np.ones((2, 3), np.float32), "on": np.array(value)}
        for mine, right in zip(net(**feed), run_onnxruntime(path, feed), strict=True):
            np.testing.assert_allclose(mine, right, rtol=1e-6)


def test_sequences_are_followed(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.input("x", (6, 4))
    parts = w.add("SplitToSequence", x, w.constant(np.array(2)), axis=0)
    second = w.add("SequenceAt", parts, w.constant(np.array(1)))
    listed = w.add("SequenceInsert", w.add("SequenceConstruct", second, second), w.add("Neg", second))
    path = w.save(
        tmp_path / "m.onnx",
        w.add("ConcatFromSequence", listed, axis=0),
        w.add("ConcatFromSequence", listed, axis=0, new_axis=1),
        w.add("SequenceAt", parts, w.constant(np.array(-1))),
    )
    assert_same(compiled(path).network, path)


def test_control_flow_that_depends_on_data_is_named(tmp_path: Path) -> None:
    w = ModelWriter()
    step = body(
        [node("Add", ["v", "v"], "d"), node("Identity", ["on"], "goes")],
        [("i", INT64, ()), ("on", BOOL, ()), ("v", FLOAT, (2,))],
        [("goes", BOOL, ()), ("d", FLOAT, (2,))],
    )
    path = w.save(
        tmp_path / "m.onnx", w.add("Loop", w.input("n", (), INT64), "", w.input("x", (2,)), body=step)
    )
    with pytest.raises(ProgramError, match="'Loop_0' \\(Loop\\): how often it is repeated depends on data"):
        compiled(path)
