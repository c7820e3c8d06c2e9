"""Gates of squeeze-and-excitation in weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from network.compiled import assert_same, compiled, operators
from network_models import ModelWriter


@pytest.mark.parametrize(
    ("size", "stride", "reads_twice", "folds"),
    [(9, 1, False, True), (3, 1, False, False), (9, 2, False, False), (9, 1, True, False)],
)
def test_gate_is_multiplied_into_weights_where_they_are_fewer(
    tmp_path: Path, size: int, stride: int, *, reads_twice: bool, folds: bool
) -> None:
    w = ModelWriter()
    x = w.add("Relu", w.conv(w.input("x", (1, 4, size, size)), 4, 10, 3, groups=2))
    gate = w.add("Sigmoid", w.conv(w.add("GlobalAveragePool", x), 10, 10, 1))
    gated = w.add("Mul", gate, x)
    y = w.conv(gated, 10, 12, 1, stride)
    y = w.add("Add", w.add("GlobalAveragePool", y), w.add("GlobalMaxPool", y))
    outputs = [y, w.add("ReduceSum", gated)] if reads_twice else [y]
    path = w.save(tmp_path / "m.onnx", *outputs)
    found = compiled(path)
    assert any("GatedConv" in each for each in operators(found)) == folds
    assert_same(found.network, path)
