"""Weights in bfloat16 and int8."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import planish
from network.compiled import built_network, compiled, laid_out
from network_models import ModelWriter, resnet18
from planish.core import PlanishError, ProgramError
from planish.levels.graph.source import read_model
from planish.network.compiler import compile_model
from planish.network.library.files import write_library
from planish.network.library.runtime import CompiledNetwork
from planish.network.reader import read_network
from planish.network.rewrites.precision import BFLOAT16, INT8, narrow_weights, narrowed

BIAS = 0.25


def layers(path: Path, rows: int) -> tuple[Path, list[NDArray[Any]]]:
    """Write two products of matrices, and return the weights."""
    w, draw = ModelWriter(), np.random.default_rng(0)
    weights = [np.asarray(draw.normal(size=each) / 16, np.float32) for each in ((200, 300), (300, 70))]
    hidden = w.add("Relu", w.add("MatMul", w.input("x", (rows, 200)), w.constant(weights[0])))
    bias = w.constant(np.full(70, BIAS, np.float32))
    return w.save(path, w.add("Gemm", hidden, w.constant(weights[1].T.copy()), bias, transB=1)), weights


def rounded(weights: NDArray[Any], precision: str) -> NDArray[Any]:
    """Round weights, of int8 to a 127th of the largest one that a result is the sum of."""
    if precision == "bf16":
        return weights.astype(ml_dtypes.bfloat16).astype(np.float64)
    step = np.abs(weights).max(axis=0) / np.float32(127)
    return np.round(weights / step) * step.astype(np.float64)


@pytest.mark.parametrize(
    ("rows", "precision", "item_bytes"), [(1, "bf16", 2), (7, "bf16", 2), (1, "int8", 1)]
)
def test_weights_are_rounded_and_all_else_is_in_float32(
    tmp_path: Path, rows: int, precision: str, item_bytes: int
) -> None:
    path, weights = layers(tmp_path / "m.onnx", rows)
    if rows == 1:
        net = planish.compile(path, precision=precision)
    else:
        # With more rows, whole layers may compute in the type.
        write_library(built_network(narrow_weights(laid_out(path), BFLOAT16), 1), tmp_path)
        net = CompiledNetwork(tmp_path)
    x = np.random.default_rng(1).normal(size=(rows, 200)).astype(np.float32)
    first, second = (rounded(each, precision) for each in weights)
    np.testing.assert_allclose(net(x), np.maximum(x @ first, 0) @ second + BIAS, rtol=1e-4, atol=1e-4)
    size = item_bytes * sum(each.size for each in weights)
    assert size <= net.manifest["weights_bytes"] < 1.2 * size


@pytest.mark.parametrize("precision", [BFLOAT16, INT8])
def test_weights_that_are_read_often_stay(tmp_path: Path, precision: str) -> None:
    path, _ = layers(tmp_path / "m.onnx", 40)
    network, _ = read_network(read_model(path, {}))
    assert narrowed(network, narrow_weights(network, precision)) == (0, 0)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("precision", "most"), [("bf16", 0.03), ("int8", 0.05)])
def test_convolutions_are_within_the_tolerance(tmp_path: Path, precision: str, most: float) -> None:
    path = resnet18(tmp_path / "m.onnx", size=64, width=16)
    found = compile_model(path, output=None, measures=False, precision=precision)
    whole = compiled(path)
    assert whole.difference < 1e-4 < found.difference < most
    assert found.manifest["weights_bytes"] < 0.8 * whole.manifest["weights_bytes"]


def test_tolerance_below_the_rounding_is_refused(tmp_path: Path) -> None:
    path, _ = layers(tmp_path / "m.onnx", 1)
    with pytest.raises(ProgramError, match="differs from ONNX Runtime") as error:
        planish.compile(path, precision="bf16", tolerance=1e-5, output=tmp_path / "net")
    assert "precision=" in str(error.value.hint)
    assert not (tmp_path / "net").exists()


def test_unknown_precision(tmp_path: Path) -> None:
    path, _ = layers(tmp_path / "m.onnx", 1)
    with pytest.raises(PlanishError, match="int4"):
        planish.compile(path, precision="int4")
