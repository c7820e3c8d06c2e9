"""Quantized models, as ONNX Runtime's own tools make them: by operators, by QDQ, and while they run."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnxruntime import quantization

from network.compiled import compiled, run_onnxruntime
from network_models import bert, resnet18


class _Batches(quantization.CalibrationDataReader):
    """Random inputs."""

    def __init__(self, path: Path) -> None:
        port = onnx.load(str(path)).graph.input[0]
        shape = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
        draw = np.random.default_rng(0)
        self._left = [{port.name: draw.standard_normal(shape).astype(np.float32)} for _ in range(3)]

    def get_next(self) -> dict[str, Any]:
        return self._left.pop() if self._left else {}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("format_", ["QOperator", "QDQ"])
def test_quantized_networks(tmp_path: Path, format_: str) -> None:
    path, made = resnet18(tmp_path / "m.onnx", 32, 8), tmp_path / "q.onnx"
    logging.disable(logging.CRITICAL)
    kind = quantization.QuantFormat[format_]
    quantization.quantize_static(str(path), str(made), _Batches(path), quant_format=kind, per_channel=True)
    logging.disable(logging.NOTSET)
    net = compiled(made).network
    x = np.random.default_rng(5).standard_normal((1, 3, 32, 32)).astype(np.float32)
    (right,) = run_onnxruntime(made, {"x": x})
    # A number halfway between two steps may be rounded to either: some results are a few steps off.
    assert np.abs(net(x) - right).mean() < 0.01 * np.abs(right).max()


def test_networks_that_quantize_while_they_run(tmp_path: Path) -> None:
    path, made = bert(tmp_path / "m.onnx", 1, 32, 2, 8), tmp_path / "q.onnx"
    logging.disable(logging.CRITICAL)
    quantization.quantize_dynamic(str(path), str(made))
    logging.disable(logging.NOTSET)
    ids = np.arange(8).reshape(1, 8)
    (right,) = run_onnxruntime(made, {"ids": ids})
    np.testing.assert_allclose(compiled(made).network(ids), right, atol=0.02 * np.abs(right).max())
