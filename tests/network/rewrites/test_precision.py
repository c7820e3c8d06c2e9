"""Weights in bfloat16."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import planish
from network.compiled import compiled
from network_models import ModelWriter, resnet18
from planish.core import PlanishError, ProgramError
from planish.levels.graph.source import read_model
from planish.network.compiler import compile_model
from planish.network.reader import read_network
from planish.network.rewrites.precision import narrow_weights, narrowed


def layers(path: Path, rows: int) -> tuple[Path, list[NDArray[Any]]]:
    """Write two products of matrices, and return the weights."""
    w, draw = ModelWriter(), np.random.default_rng(0)
    weights = [np.asarray(draw.normal(size=each) / 16, np.float32) for each in ((200, 300), (300, 70))]
    hidden = w.add("Relu", w.add("MatMul", w.input("x", (rows, 200)), w.constant(weights[0])))
    return w.save(path, w.add("Gemm", hidden, w.constant(weights[1].T.copy()), transB=1)), weights


@pytest.mark.parametrize("rows", [1, 7])
def test_weights_are_rounded_and_all_else_is_in_float32(tmp_path: Path, rows: int) -> None:
    path, weights = layers(tmp_path / "m.onnx", rows)
    net = planish.compile(path, precision="bf16")
    x = np.random.default_rng(1).normal(size=(rows, 200)).astype(np.float32)
    first, second = (each.astype(ml_dtypes.bfloat16).astype(np.float64) for each in weights)
    np.testing.assert_allclose(net(x), np.maximum(x @ first, 0) @ second, rtol=1e-4, atol=1e-4)
    size = 2 * sum(each.size for each in weights)
    assert size <= net.manifest["weights_bytes"] < 1.2 * size


def test_weights_that_are_read_often_stay(tmp_path: Path) -> None:
    path, _ = layers(tmp_path / "m.onnx", 40)
    assert narrowed(narrow_weights(read_network(read_model(path, {}))[0])) == (0, 0)


def test_convolutions_are_within_the_tolerance(tmp_path: Path) -> None:
    path = resnet18(tmp_path / "m.onnx", size=64, width=16)
    found = compile_model(path, output=None, measures=False, precision="bf16")
    whole = compiled(path)
    assert whole.difference < 1e-4 < found.difference < 0.03
    assert found.manifest["weights_bytes"] < 0.8 * whole.manifest["weights_bytes"]


def test_tolerance_below_the_rounding_is_refused(tmp_path: Path) -> None:
    path, _ = layers(tmp_path / "m.onnx", 1)
    with pytest.raises(ProgramError, match="differs from ONNX Runtime") as error:
        planish.compile(path, precision="bf16", tolerance=1e-5, output=tmp_path / "net")
    assert 'precision="bf16"' in str(error.value.hint)
    assert not (tmp_path / "net").exists()


def test_unknown_precision(tmp_path: Path) -> None:
    path, _ = layers(tmp_path / "m.onnx", 1)
    with pytest.raises(PlanishError, match="int8"):
        planish.compile(path, precision="int8")
