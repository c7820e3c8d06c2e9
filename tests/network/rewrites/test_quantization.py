"""Layers in integers of 8 bits, and in bfloat16."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from network.compiled import built_network, laid_out
from network_models import ModelWriter
from planish.levels.loops.backends import this_machine
from planish.levels.loops.lang.element_types import numpy_type
from planish.network.compiler import compile_model
from planish.network.library.files import write_library
from planish.network.library.runtime import CompiledNetwork
from planish.network.narrow_layers import choose_narrow_layers, computes_narrowly
from planish.network.operators.packed import PACKED_CONV, PACKED_PRODUCT
from planish.network.python_kernels.scalars import bfloat16_of_float
from planish.network.rewrites.precision import BFLOAT16, INT8
from planish.network.rewrites.quantization import find_layers, pair_layers, quantize_layers
from planish.network.timing import make_feeds
from planish.network.tuning import DefaultTimes

Array = NDArray[Any]
PACKED = (PACKED_CONV, PACKED_PRODUCT)
needs_vnni = pytest.mark.skipif(
    not computes_narrowly(this_machine(1), INT8), reason="the processor has no AVX512_VNNI"
)


def rounded(x: Array, low: float, high: float) -> Array:
    """Round to 256 steps of a range that has 0, of which one is 0."""
    step = (high - low) / 255
    zero = np.rint(-low / step)
    return (np.clip(np.rint(x / step + zero), 0, 255) - zero) * step


def between_steps(shape: tuple[int, ...], low: float, high: float) -> Array:
    """Draw numbers none of which is halfway between two steps, some of them outside of the range."""
    step = (high - low) / 255
    steps = np.random.default_rng(1).integers(-150, 300, shape) + round(low / step) + 0.25
    return np.asarray(steps * step, np.float32)


def rounded_weights(weights: Array, axis: int) -> Array:
    """Round weights to a 127th of the largest one of each channel, which are along an axis."""
    others = tuple(d for d in range(weights.ndim) if d != axis)
    step = np.abs(weights).max(axis=others, keepdims=True) / np.float32(127)
    return np.rint(weights / step) * step.astype(np.float64)


def convolved(x: Array, weights: Array, stride: int, pad: int) -> Array:
    """Compute a convolution of images [n, c, y, x] in float64."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, weights.shape[2:], axis=(2, 3))
    return np.einsum("ncyxrs,kcrs->nkyx", windows[:, :, ::stride, ::stride], weights)


def quantized(path: Path, ranges: dict[str, tuple[float, float]], cores: int = 1) -> CompiledNetwork:
    """Compile a model all of whose layers compute in integers."""
    network = laid_out(path)
    made = quantize_layers(network, find_layers(network), ranges)
    assert {node.operator for node in made.nodes}.isdisjoint(("Conv", "MatMul", "Gemm"))
    write_library(built_network(made, cores), path.parent)
    return CompiledNetwork(path.parent)


@needs_vnni
@pytest.mark.parametrize("depth", [200, 67])
@pytest.mark.parametrize("low", [-2.5, 0.0])
def test_products_are_those_of_rounded_factors(tmp_path: Path, depth: int, low: float) -> None:
    w, draw = ModelWriter(), np.random.default_rng(0)
    weights = draw.normal(size=(depth, 90)).astype(np.float32)
    bias = draw.normal(size=90).astype(np.float32)
    x = w.input("x", (40, depth))
    out = w.add("Relu", w.add("Gemm", x, w.constant(weights.T.copy()), w.constant(bias), transB=1))
    net = quantized(w.save(tmp_path / "m.onnx", out), {"x": (low, 3.0)})
    values = between_steps((40, depth), low, 3.0)
    wanted = rounded(values, low, 3.0) @ rounded_weights(weights, 1) + bias
    np.testing.assert_allclose(net(values), np.maximum(wanted, 0), rtol=1e-4, atol=1e-3)


@needs_vnni
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("channels", "window", "stride"), [(3, 7, 2), (8, 3, 1), (10, 3, 2), (16, 1, 1)])
def test_convolutions_are_those_of_rounded_factors(
    tmp_path: Path, channels: int, window: int, stride: int, cores: int
) -> None:
    w, draw = ModelWriter(), np.random.default_rng(0)
    shapes = (20, channels, window, window), (24, 20, 3, 3)
    weights = [np.asarray(draw.normal(size=shape), np.float32) for shape in shapes]
    bias = w.constant(np.full(20, 0.5, np.float32))
    pad = [window // 2] * 4
    x = w.input("x", (1, channels, 18, 18))
    inner = w.add("Conv", x, w.constant(weights[0]), bias, strides=[stride] * 2, pads=pad)
    out = w.add("Conv", inner, w.constant(weights[1]), pads=[1] * 4)
    ranges = {"x": (-3.0, 4.0), inner: (-200.0, 150.0)}
    net = quantized(w.save(tmp_path / "m.onnx", out), ranges, cores)
    values = between_steps((1, channels, 18, 18), *ranges["x"])
    middle = (
        convolved(rounded(values, *ranges["x"]), rounded_weights(weights[0], 0), stride, window // 2) + 0.5
    )
    wanted = convolved(rounded(middle, *ranges[inner]), rounded_weights(weights[1], 0), 1, 1)
    # A number that is halfway between two steps may go to either.
    off = np.abs(net(values) - wanted)
    assert np.mean(off > 1e-4 * np.abs(wanted).max()) < 0.05
    assert off.max() < 0.01 * np.abs(wanted).max()


def paired(path: Path, cores: int = 1) -> CompiledNetwork:
    """Compile a model all of whose layers compute in bfloat16, where needed by the portable back end."""
    network = laid_out(path)
    made = pair_layers(network, find_layers(network))
    assert {node.operator for node in made.nodes}.isdisjoint(("Conv", "MatMul", "Gemm"))
    write_library(built_network(made, cores), path.parent)
    return CompiledNetwork(path.parent)


def in_bfloat16(x: Array) -> Array:
    """Round to bfloat16, and return the numbers in float64."""
    return x.astype(numpy_type("bfloat16")).astype(np.float64)


@pytest.mark.parametrize("depth", [200, 67])
def test_products_are_those_of_factors_in_bfloat16(tmp_path: Path, depth: int) -> None:
    w, draw = ModelWriter(), np.random.default_rng(0)
    weights = draw.normal(size=(depth, 90)).astype(np.float32)
    bias = draw.normal(size=90).astype(np.float32)
    x = w.input("x", (40, depth))
    out = w.add("Relu", w.add("Gemm", x, w.constant(weights.T.copy()), w.constant(bias), transB=1))
    net = paired(w.save(tmp_path / "m.onnx", out))
    values = (draw.normal(size=(40, depth)) * 10.0 ** draw.integers(-3, 4, (40, 1))).astype(np.float32)
    wanted = in_bfloat16(values) @ in_bfloat16(weights) + bias
    scale = np.abs(values).max(axis=1, keepdims=True)
    assert np.all(np.abs(net(values) - np.maximum(wanted, 0)) <= 1e-4 * np.maximum(scale, 1))
    values[3, 5] = np.nan
    assert np.isnan(net(values)[3]).all()


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("channels", "window", "stride"), [(3, 7, 2), (8, 3, 1), (13, 1, 1)])
def test_convolutions_are_those_of_factors_in_bfloat16(
    tmp_path: Path, channels: int, window: int, stride: int, cores: int
) -> None:
    w, draw = ModelWriter(), np.random.default_rng(0)
    weights = np.asarray(draw.normal(size=(20, channels, window, window)), np.float32)
    bias, pad = w.constant(np.full(20, 0.5, np.float32)), [window // 2] * 4
    x = w.input("x", (1, channels, 18, 18))
    out = w.add("Conv", x, w.constant(weights), bias, strides=[stride] * 2, pads=pad)
    net = paired(w.save(tmp_path / "m.onnx", out), cores)
    values = draw.normal(size=(1, channels, 18, 18)).astype(np.float32)
    wanted = convolved(in_bfloat16(values), in_bfloat16(weights), stride, window // 2) + 0.5
    np.testing.assert_allclose(net(values), wanted, rtol=1e-4, atol=1e-4)


@given(st.floats(width=32))
def test_numbers_are_rounded_to_the_nearest_bfloat16(value: float) -> None:
    with np.errstate(over="ignore"):
        wanted = np.asarray(value, np.float32).astype(numpy_type("bfloat16"))
    found = np.asarray(bfloat16_of_float(value), np.uint16).view(numpy_type("bfloat16"))
    assert found.astype(np.float32) == wanted.astype(np.float32) or (np.isnan(found) and np.isnan(wanted))


def model(path: Path) -> Path:
    """Write two layers."""
    w = ModelWriter()
    x = w.add("Relu", w.conv(w.input("x", (1, 16, 32, 32)), 16, 64, 3))
    return w.save(path, w.add("GlobalAveragePool", w.add("Relu", w.conv(x, 64, 64, 3))))


@pytest.mark.parametrize(
    ("dtype", "name"), [pytest.param(INT8, "int8", marks=needs_vnni), (BFLOAT16, "bf16")]
)
def test_layers_that_are_chosen_are_those_that_are_reported(tmp_path: Path, dtype: str, name: str) -> None:
    network, said, target = laid_out(model(tmp_path / "m.onnx")), list[str](), this_machine(1)
    feeds = make_feeds(network, 2)
    for limit, most in ((0.05, 2), (1e-6, 0)):
        made, front = choose_narrow_layers(
            network, dtype, limit, [], feeds, DefaultTimes(target), said.append
        )
        count = sum(node.operator in PACKED for node in made.nodes)
        assert count <= most
        assert [point.precision for point in front[:2]] == ["float32", f"{name} weights"]
        assert front[0].difference == 0
        if count:
            assert f"{count} of 2 layers in {name}" == front[-1].precision
            assert 0 < front[-1].difference <= limit
    assert f"no layers compute in {name}: none is faster and within the tolerance" in said
    assert any("random inputs" in line for line in said) == (dtype == INT8)


def test_time_that_is_over_leaves_layers_in_float32(tmp_path: Path) -> None:
    network, said = laid_out(model(tmp_path / "m.onnx")), list[str]()
    times = DefaultTimes(this_machine(1), -1)
    assert choose_narrow_layers(network, INT8, 0.05, [], make_feeds(network, 1), times, said.append) == (
        network,
        [],
    )
    assert said == ["no layers compute in int8: the time to measure them is over"]


@needs_vnni
@pytest.mark.slow
def test_ranges_are_of_given_inputs_which_the_library_is_verified_on(tmp_path: Path) -> None:
    x = 100 * np.random.default_rng(5).normal(size=(2, 16, 32, 32)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    said = list[str]()
    found = compile_model(
        model(tmp_path / "m.onnx"), output=None, measures=False, precision="int8",
        inputs=tmp_path / "x.npz", on_progress=said.append,
    )  # fmt: skip
    assert found.difference < 0.05
    assert not any("random inputs" in line for line in said)
    assert len(found.manifest["front"]) >= 2
