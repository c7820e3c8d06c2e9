"""Kinds of mistakes that optimizers of ONNX models have made, with every rewriting pass alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from levels.graph.models import constant
from levels.graph.tasks import outcomes_of, task_of_file
from planish.core import Failed, Measured
from planish.levels.graph.passes import EXACT, passes_of_kind, selection
from planish.levels.graph.rewriting import RewriteError, rewrite
from planish.levels.graph.sessions import RefusedError, SessionSettings, open_session
from planish.levels.graph.task_setup import unoptimized

Arrays = dict[str, np.ndarray[tuple[int, ...], np.dtype[Any]]]


def made(
    nodes: Sequence[onnx.NodeProto], weights: Arrays, inputs: Arrays, output: int = TensorProto.FLOAT
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "small",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in inputs.items()
        ],
        [helper.make_tensor_value_info("y", output, None)],
        [constant(name, array) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


node = helper.make_node
F = np.float32


def equal_initializers() -> tuple[onnx.ModelProto, Arrays, Any]:
    """Divide and multiply by scalars whose names differ in case; add zeros of two types with equal bytes."""
    inputs = {"x": np.array([6], F), "z": np.array([1], F)}
    weights = {
        "a": np.array(2, F),
        "A": np.array(4, F),
        "o": np.array(0, F),
        "O": np.array(0, np.int32),
    }
    nodes = [
        node("Div", ["x", "a"], ["d"]),
        node("Mul", ["z", "A"], ["m"]),
        node("Add", ["d", "m"], ["s"]),
        node("Add", ["s", "o"], ["t"]),
        node("Cast", ["O"], ["c"], to=TensorProto.FLOAT),
        node("Add", ["t", "c"], ["y"]),
    ]
    return made(nodes, weights, inputs), inputs, np.array([7], F)


def slices(step: int) -> tuple[onnx.ModelProto, Arrays, Any]:
    """Slice a slice."""
    inputs = {"x": np.arange(12, dtype=F)}
    first, last = (1, -1) if step > 0 else (-1, -100)
    weights = {
        name: np.array([value])
        for name, value in {"s1": 2, "e1": 10, "s2": first, "e2": last, "ax": 0, "st": step}.items()
    }
    nodes = [
        node("Slice", ["x", "s1", "e1", "ax"], ["a"]),
        node("Slice", ["a", "s2", "e2", "ax", "st"], ["y"]),
    ]
    expected = inputs["x"][2:10][1:-1:2] if step > 0 else inputs["x"][2:10][::-1]
    return made(nodes, weights, inputs), inputs, expected


def leading_one() -> tuple[onnx.ModelProto, Arrays, Any]:
    """Add what has a leading extent of 1 to what has none, with Unsqueeze and Squeeze around it."""
    random = np.random.default_rng(0)
    inputs = {
        "x": random.standard_normal((1, 4, 3, 1)).astype(F),
        "z": random.standard_normal((4, 3, 1)).astype(F),
    }
    nodes = [
        node("Unsqueeze", ["z", "ax"], ["u"]),
        node("Squeeze", ["u", "ax"], ["q"]),
        node("Add", ["x", "q"], ["y"]),
    ]
    return made(nodes, {"ax": np.array([0])}, inputs), inputs, inputs["x"] + inputs["z"]


def sigmoids() -> tuple[onnx.ModelProto, Arrays, Any]:
    """Cast one of two equal sigmoids, which round to 1 or just not, to whole numbers."""
    inputs = {"x": np.linspace(-12, 12, 97).astype(np.float16)}
    nodes = [
        node("Sigmoid", ["x"], ["a"]),
        node("Sigmoid", ["x"], ["b"]),
        node("Cast", ["a"], ["i"], to=TensorProto.INT64),
        node("Cast", ["b"], ["f"], to=TensorProto.INT64),
        node("Add", ["i", "f"], ["y"]),
    ]
    return made(nodes, {}, inputs, TensorProto.INT64), inputs, None


CASES = {
    "equal initializers": equal_initializers,
    "slices": lambda: slices(2),
    "slices backwards": lambda: slices(-1),
    "a leading 1": leading_one,
    "sigmoids": sigmoids,
}


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("name", CASES)
def test_what_is_measured_answers_rightly(name: str, tmp_path: Path) -> None:
    original, inputs, expected = CASES[name]()
    file = tmp_path / "net.onnx"
    onnx.save(original, file)
    np.savez(tmp_path / "in.npz", **inputs)  # type: ignore[arg-type]
    if expected is None:
        (expected,) = open_session(file, SessionSettings(), as_it_is=True).run(inputs)
    task = task_of_file(file, inputs=str(tmp_path / "in.npz"))
    lists = [(), *((each.name,) for each in passes_of_kind(*EXACT))]
    candidates = [*(selection(each).candidate for each in lists), unoptimized().candidate]
    outcomes = outcomes_of(task, *candidates)
    assert isinstance(outcomes[-1], Measured), "ONNX Runtime without its passes is the reference"
    for index, rewrites in enumerate(lists):
        right = _is_right(original, rewrites, inputs, expected, tmp_path / "made.onnx")
        assert isinstance(outcomes[index], Measured if right else Failed), (rewrites, outcomes[index])


def _is_right(
    original: onnx.ModelProto, rewrites: Sequence[str], inputs: Arrays, expected: Any, file: Path
) -> bool:
    """Find out without the evaluator whether the model answers rightly after some passes."""
    try:
        onnx.save(rewrite(original, rewrites), file)
        (found,) = open_session(file, SessionSettings()).run(inputs)
    except (RewriteError, RefusedError):
        return False
    return found.shape == expected.shape and bool(np.allclose(found, expected, rtol=1e-3))
