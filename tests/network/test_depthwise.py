"""Depthwise convolutions of images with channels last, computed by tiles."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from network.compiled import assert_same, compiled, operators
from network_models import ModelWriter


@settings(max_examples=6)
@given(
    batch=st.integers(1, 2),
    size=st.tuples(*[st.integers(2, 17)] * 2),
    channels=st.sampled_from([2, 5, 16, 40]),
    window=st.tuples(*[st.integers(2, 5)] * 2),
    strides=st.tuples(*[st.integers(1, 3)] * 2),
    dilations=st.tuples(*[st.integers(1, 2)] * 2),
    pads=st.tuples(*[st.integers(0, 3)] * 4),
    bias=st.booleans(),
)
def test_depthwise_convolutions(
    tmp_path_factory: pytest.TempPathFactory,
    batch: int,
    size: tuple[int, int],
    channels: int,
    window: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[int, int, int, int],
    bias: bool,
) -> None:
    sizes = [n + pads[d] + pads[d + 2] - dilations[d] * (window[d] - 1) for d, n in enumerate(size)]
    w = ModelWriter()
    x = w.add("Conv", w.input("x", (batch, 3, *size)), w.weight(channels, 3, 1, 1))
    if min(sizes) > max(strides):
        x = w.add(
            "Conv", x, w.weight(channels, 1, *window), *([w.weight(channels)] if bias else []),
            group=channels, strides=strides, dilations=dilations, pads=pads,
        )  # fmt: skip
    # A value that is read twice, by what follows.
    y = w.add("Mul", x, w.add("Sigmoid", x))
    path = w.save(tmp_path_factory.mktemp("net") / "m.onnx", w.add("ReduceMean", y, axes=[1], keepdims=0))
    assert_same(compiled(path).network, path)


def test_a_residual_sum_joins_them_and_no_input_is_copied(tmp_path_factory: pytest.TempPathFactory) -> None:
    w = ModelWriter()
    x = w.conv(w.input("x", (1, 3, 12, 12)), 3, 16, 1)
    y = w.add("Relu", w.add("Add", w.conv(x, 16, 16, 3, groups=16), x))
    path = w.save(tmp_path_factory.mktemp("net") / "m.onnx", w.add("GlobalAveragePool", y))
    found = compiled(path)
    assert operators(found) == ["Conv", "Conv+Add+Relu", "GlobalAveragePool"]
    assert found.network.manifest["workspace_bytes"] < 3 * 4 * 16 * 12 * 12
    assert_same(found.network, path)
