"""Transposed convolutions whose windows overlap: products, and sums of the taps that meet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from network.compiled import assert_same, compiled, operators
from network_models import ModelWriter


@pytest.mark.parametrize(
    ("size", "window", "attributes"),
    [
        ((4, 5), (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((3, 2), (3, 3), {"strides": [2, 2], "pads": [1, 0, 0, 1], "output_padding": [1, 1]}),
        ((5, 4), (3, 5), {"strides": [1, 3]}),
        ((4, 4), (2, 3), {"strides": [3, 2], "pads": [0, 1, 2, 1]}),
    ],
)
def test_taps_are_gathered(
    tmp_path: Path, size: tuple[int, int], window: tuple[int, int], attributes: dict[str, Any]
) -> None:
    w = ModelWriter()
    x = w.add("Relu", w.conv(w.input("x", (2, 3, *size)), 3, 18, 1))
    y = w.add("ConvTranspose", x, w.weight(18, 7, *window), w.weight(7), **attributes)
    y = w.add("Mul", y, w.add("Sigmoid", y))
    path = w.save(tmp_path / "m.onnx", w.add("ReduceMean", y, axes=[1], keepdims=0))
    found = compiled(path)
    assert operators(found)[1:3] == ["MatMul", "TapSum+Sigmoid+Mul"]
    assert_same(found.network, path)
