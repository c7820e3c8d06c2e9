"""Depthwise convolutions and pooling of images with channels last, computed by tiles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from network.compiled import assert_same, compiled, operators
from network_models import ModelWriter
from planish.levels.graph.source import read_model
from planish.levels.loops.codegen.llvm.jit import host_machine
from planish.levels.loops.codegen.llvm.straight import compile_straight
from planish.network.fusion import FusedKernel, kernels_of
from planish.network.operators.winograd import list_allowed_tiles, rewrite_winograd
from planish.network.reader import read_network
from planish.network.rewrites.pipeline import rewrite_layouts
from planish.network.verification import TOLERANCE


@settings(max_examples=examples(6))
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


@settings(max_examples=examples(6))
@given(
    size=st.tuples(*[st.integers(3, 17)] * 2),
    channels=st.sampled_from([2, 5, 40]),
    window=st.tuples(*[st.integers(1, 4)] * 2),
    strides=st.tuples(*[st.integers(1, 3)] * 2),
    ceil=st.integers(0, 1),
    kind=st.sampled_from(["greatest", "all", "inside"]),
)
def test_pooling(
    tmp_path_factory: pytest.TempPathFactory,
    size: tuple[int, int],
    channels: int,
    window: tuple[int, int],
    strides: tuple[int, int],
    ceil: int,
    kind: str,
) -> None:
    w = ModelWriter()
    x = w.add("Conv", w.input("x", (1, 3, *size)), w.weight(channels, 3, 1, 1))
    # By a longer stride, windows may begin after the image: what those are is not defined.
    strides = (min(strides[0], window[0]), min(strides[1], window[1]))
    facts: dict[str, Any] = {"kernel_shape": window, "strides": strides, "ceil_mode": ceil}
    facts["pads"] = [(n - 1) // 2 for n in window] * 2
    if kind == "greatest":
        y = w.add("MaxPool", x, **facts)
    else:
        y = w.add("AveragePool", x, count_include_pad=int(kind == "all"), **facts)
    y = w.add("Mul", y, w.add("Sigmoid", y))
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


@pytest.mark.skipif(not host_machine().triple.startswith("x86_64"), reason="instructions are those of x86")
def test_tiles_are_computed_in_vectors(tmp_path: Path) -> None:
    """Depthwise convolutions and Winograd's transforms, with what follows them, have no scalar arithmetic."""
    w = ModelWriter()
    x = w.conv(w.input("x", (1, 3, 20, 20)), 3, 32, 1)
    x = w.swish(w.conv(x, 32, 32, 5, 2, groups=32))
    x = w.swish(w.conv(x, 32, 32, 3))
    path = w.save(tmp_path / "m.onnx", w.add("GlobalAveragePool", x))
    network = rewrite_layouts(read_network(read_model(path, {}))[0])
    kernels = kernels_of(rewrite_winograd(network, dict.fromkeys(list_allowed_tiles(network, TOLERANCE), 4)))
    trees = [
        kernel.fixed_tree.tree for kernel in kernels if isinstance(kernel, FusedKernel) and kernel.fixed_tree
    ]
    assert len(trees) == 3
    for tree in trees:
        text = compile_straight(tree, host_machine()).assembly("f")
        arithmetic = set(re.findall(r"\bv?(?:add|sub|mul|div|max|min|fn?m(?:add|sub)\d+)[ps]s\b", text))
        assert arithmetic
        assert not [each for each in arithmetic if each.endswith("ss")]
