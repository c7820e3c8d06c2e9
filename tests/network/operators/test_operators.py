"""Each operator of ONNX that is covered computes what ONNX Runtime computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from network.compiled import assert_same, compiled, operators
from network_models import ModelWriter
from planish.core import ProgramError
from planish.network.registry import OPERATORS, is_elementwise

Build = Callable[[ModelWriter], str | tuple[str, ...]]


def check(path: Path, build: Build, opset: int = 17) -> None:
    w = ModelWriter()
    outputs = build(w)
    w.save(path, *([outputs] if isinstance(outputs, str) else outputs), opset=opset)
    for fuse in (True, False):
        assert_same(compiled(path, fuse=fuse).network, path)


def number(w: ModelWriter, value: float) -> str:
    return w.constant(np.array(value, np.float32))


def whole(w: ModelWriter, *values: int) -> str:
    return w.constant(np.array(values, np.int64))


UNARY = (
    "Abs", "Elu", "Erf", "Exp", "HardSigmoid", "HardSwish", "LeakyRelu", "Neg", "Reciprocal", "Relu",
    "Sigmoid", "Softplus", "Softsign", "Tanh",
)  # fmt: skip


def test_elementwise_operators(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x, y = w.input("x", (2, 3, 5)), w.input("y", (3, 1))
        positive = w.add("Add", w.add("Abs", x), number(w, 0.5))
        found = [w.add(name, x) for name in UNARY]
        found += [w.add(name, positive) for name in ("Log", "Sqrt")]
        found += [w.add(name, x, y) for name in ("Add", "Sub", "Mul", "Max", "Min", "Sum", "PRelu")]
        found += [w.add("Div", x, positive), w.add("Max", x, y, positive)]
        found += [w.add("Pow", positive, number(w, p)) for p in (-0.5, 0.5, 2.0, 3.0)]
        found += [w.add("Clip", x, number(w, -0.5), number(w, 1.5)), w.add("Clip", x, "", number(w, 0.25))]
        less, greater = w.add("Less", x, y), w.add("GreaterOrEqual", x, number(w, 1.0))
        chosen = w.add("Or", w.add("And", less, w.add("Not", greater)), w.add("Equal", x, x))
        found += [w.add("Where", less, x, y), w.add("Where", chosen, number(w, 2.0), x)]
        found += [w.add("Expand", y, whole(w, 2, 3, 5))]
        return tuple(found)

    check(tmp_path / "m.onnx", build)


def test_gelu(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x = w.input("x", (4, 33))
        return w.add("Gelu", x), w.add("Gelu", x, approximate="tanh")

    check(tmp_path / "m.onnx", build, opset=20)


@pytest.mark.parametrize(
    ("shape", "weights", "attributes"),
    [
        ((1, 4, 9, 9), (6, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((2, 4, 9, 11), (6, 4, 3, 2), {"pads": [0, 1, 2, 0], "strides": [2, 1]}),
        ((1, 4, 12, 12), (8, 2, 3, 3), {"group": 2, "dilations": [2, 3]}),
        ((1, 8, 10, 10), (8, 1, 5, 5), {"group": 8, "pads": [2, 2, 2, 2], "strides": [2, 2]}),
        ((1, 8, 10, 10), (16, 1, 3, 3), {"group": 8}),
        ((1, 16, 7, 7), (5, 16, 1, 1), {}),
        ((3, 16, 7, 7), (5, 16, 1, 1), {"strides": [2, 2]}),
        ((1, 6, 20), (4, 6, 5), {"pads": [2, 2], "strides": [3]}),
        ((1, 3, 1, 1), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((1, 3, 3, 5), (4, 3, 2, 2), {"strides": [2, 2]}),
        ((1, 3, 6, 7, 8), (4, 3, 3, 3, 3), {"pads": [1, 1, 1, 1, 1, 1]}),
        ((1, 1, 9, 9), (1, 1, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ((1, 2, 8, 8), (3, 2, 3, 3), {"auto_pad": "SAME_LOWER"}),
    ],
)
def test_convolution(
    tmp_path: Path, shape: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    def build(w: ModelWriter) -> str:
        x, bias = w.input("x", shape), w.weight(weights[0])
        return w.add("Relu", w.add("Conv", x, w.weight(*weights), bias, **attributes))

    check(tmp_path / "m.onnx", build)


@pytest.mark.parametrize(
    ("shape", "weights", "attributes"),
    [
        ((1, 4, 5, 5), (4, 6, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        ((2, 4, 5, 6), (4, 3, 2, 2), {"strides": [2, 2], "group": 2}),
        ((1, 4, 7), (4, 2, 4), {"strides": [2], "pads": [1, 1]}),
        ((1, 8, 1, 1), (8, 4, 4, 4), {}),
        ((1, 3, 4, 4), (3, 2, 3, 3), {"dilations": [2, 1], "strides": [1, 3]}),
    ],
)
def test_transposed_convolution(
    tmp_path: Path, shape: tuple[int, ...], weights: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    def build(w: ModelWriter) -> str:
        outer = weights[1] * attributes.get("group", 1)
        x = w.add("ConvTranspose", w.input("x", shape), w.weight(*weights), w.weight(outer), **attributes)
        return w.add("Tanh", x)

    check(tmp_path / "m.onnx", build)


def test_products(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        a, b = w.input("a", (2, 3, 5, 7)), w.input("b", (3, 7, 4))
        c, d = w.input("c", (6, 9)), w.input("d", (2, 1, 7, 7))
        return (
            w.add("MatMul", a, b),
            w.add("MatMul", a, d),
            w.add("Add", w.add("MatMul", a, w.weight(7, 11)), w.weight(11)),
            w.add("Gemm", c, w.weight(9, 4), w.weight(4)),
            w.add("Gemm", c, w.weight(5, 6), w.weight(9, 5), transA=1, transB=1, alpha=0.5, beta=2.0),
            w.add("Gemm", c, w.weight(9, 4), w.weight(6, 1)),
        )

    check(tmp_path / "m.onnx", build)


def test_pooling(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x, line = w.input("x", (2, 3, 9, 11)), w.input("line", (1, 4, 10))
        size: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2]}
        return (
            w.add("MaxPool", x, pads=[1, 1, 1, 1], **size),
            w.add("MaxPool", x, ceil_mode=1, **size),
            w.add("MaxPool", x, kernel_shape=[2, 3], dilations=[2, 1]),
            w.add("AveragePool", x, **size),
            w.add("AveragePool", x, pads=[1, 1, 1, 1], **size),
            w.add("AveragePool", x, pads=[1, 0, 1, 2], count_include_pad=1, **size),
            w.add("AveragePool", line, kernel_shape=[4], strides=[3]),
            w.add("GlobalAveragePool", x),
            w.add("GlobalMaxPool", x),
            w.add("MaxPool", w.input("few", (1, 2, 3, 3)), kernel_shape=[2, 2], strides=[2, 2]),
            w.add("AveragePool", "few", kernel_shape=[2, 3], strides=[3, 2]),
        )

    check(tmp_path / "m.onnx", build)


def test_reductions(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x = w.input("x", (2, 3, 4, 5))
        found = [
            w.add(f"Reduce{name}", x, axes=axes, keepdims=keep)
            for name in ("Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare")
            for axes, keep in (([1, 3], 0), ([-1], 1))
        ]
        found += [w.add("ReduceSum", x, whole(w, 0, 2), keepdims=0), w.add("ReduceSum", x, keepdims=1)]
        return tuple(found)

    check(tmp_path / "m.onnx", build)


def test_normalizations_and_softmax(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x, y = w.input("x", (2, 6, 4, 5)), w.input("y", (3, 8))
        variance = w.constant(np.linspace(0.5, 2, 6).astype(np.float32))
        relu = w.add("Relu", x)
        return (
            w.add("Softmax", x, axis=1),
            w.add("Softmax", x, axis=-1),
            w.add("LogSoftmax", y, axis=0),
            w.add("LayerNormalization", y, w.weight(8), w.weight(8)),
            w.add("LayerNormalization", x, w.weight(4, 5), axis=2, epsilon=1e-3),
            w.add("InstanceNormalization", x, w.weight(6), w.weight(6)),
            w.add("BatchNormalization", relu, w.weight(6), w.weight(6), w.weight(6), variance),
        )

    check(tmp_path / "m.onnx", build)


def test_movement(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x, y = w.input("x", (2, 3, 4, 6)), w.input("y", (2, 1, 4, 6))
        parts = w.add("Split", x, whole(w, 1, 2), axis=1, count=2)
        factors = w.constant(np.array([1, 1, 2, 3], np.float32))
        asymmetric: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return (
            w.add("Transpose", x, perm=[0, 2, 3, 1]),
            w.add("Transpose", x),
            w.add("Transpose", y, perm=[1, 0, 2, 3]),
            w.add("Concat", x, y, x, axis=1),
            w.add("Relu", w.add("Concat", x, x, axis=-1)),
            w.add("Neg", parts[0]),
            w.add("Neg", parts[1]),
            w.add("Slice", x, whole(w, 0), whole(w, 3), whole(w, 3)),
            w.add("Slice", x, whole(w, 1, -5), whole(w, 4, 100), whole(w, 2, 3), whole(w, 1, 2)),
            w.add("Pad", x, whole(w, 0, 0, 1, 2, 0, 1, 0, 3), number(w, 1.5)),
            w.add("Pad", x, whole(w, 0, 0, -1, 2, 0, 0, 0, -1)),
            w.add("Resize", x, "", factors, mode="nearest", **asymmetric),
            w.add("Gather", x, whole(w, 2, 0, -1), axis=1),
            w.add("Gather", x, w.constant(np.array(1, np.int64)), axis=3),
        )

    check(tmp_path / "m.onnx", build)


def test_views_and_outputs_that_are_inputs_or_shared(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x = w.input("x", (2, 3, 4))
        flat = w.add("Flatten", x)
        relu = w.add("Relu", x)
        return (
            flat,
            relu,
            w.add("Reshape", relu, whole(w, 4, -1)),
            w.add("Sigmoid", w.add("Unsqueeze", w.add("Squeeze", flat), whole(w, 0))),
            w.add("Identity", relu),
        )

    check(tmp_path / "m.onnx", build)


def test_embedding_of_an_input_of_indices(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> str:
        return w.add("Gather", w.weight(20, 8), w.input("ids", (2, 5), TensorProto.INT64))

    check(tmp_path / "m.onnx", build)


def test_what_is_constant_is_folded(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> str:
        x = w.input("x", (2, 12))
        size = w.add("Slice", w.add("Shape", x), whole(w, 0), whole(w, 1))
        shape = w.add("Concat", size, whole(w, 3, 4), axis=0)
        return w.add("Mul", w.add("Reshape", x, shape), w.add("Exp", w.weight(3, 1)))

    check(tmp_path / "m.onnx", build)


def test_older_opsets_are_converted(tmp_path: Path) -> None:
    check(tmp_path / "m.onnx", lambda w: w.add("Relu", w.conv(w.input("x", (1, 3, 8, 8)), 3, 4, 3)), opset=11)


def test_all_elementwise_operators_are_tested() -> None:
    other = Path(__file__).parents[1] / "python_kernels" / "test_python_kernels.py"
    source = Path(__file__).read_text() + other.read_text()
    assert [
        name
        for name in filter(is_elementwise, OPERATORS)
        if f'"{name}"' not in source and name not in ("CopyPart", "Greater", "LessOrEqual", "Swish", "Truth")
    ] == []


def test_operators_that_are_not_covered_are_all_named(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.input("x", (4, 4))
    path = w.save(tmp_path / "m.onnx", w.add("Add", w.add("Det", x), w.add("Det", w.add("Relu", x))))
    with pytest.raises(ProgramError) as error:
        compiled(path)
    assert "2 nodes" in error.value.message
    assert "'Det_0' (Det), node 'Det_2' (Det)" in error.value.message


def test_elementwise_operators_join_what_is_before_them(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.input("x", (1, 8, 6, 6))
    y = w.conv(w.add("Relu", w.conv(x, 8, 8, 3)), 8, 8, 3)
    y = w.add("Relu", w.add("Add", y, w.conv(x, 8, 8, 1)))
    y = w.conv(y, 8, 8, 3)
    path = w.save(tmp_path / "m.onnx", w.add("Mul", y, w.add("Sigmoid", y)))
    fused, apart = compiled(path), compiled(path, fuse=False)
    # The first of two convolutions that are added has the sum, and runs after the other.
    assert operators(fused) == ["Conv+Relu", "Conv", "Conv+Add+Relu", "Conv+Sigmoid+Mul"]
    assert sorted(operators(apart)) == [
        "Add",
        "Conv",
        "Conv",
        "Conv",
        "Conv",
        "Mul",
        "Relu",
        "Relu",
        "Sigmoid",
    ]
    assert_same(fused.network, path)


def test_batch_normalization_joins_what_is_before_it(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.add("MaxPool", w.conv(w.input("x", (1, 3, 8, 8)), 3, 6, 3), kernel_shape=[2, 2], strides=[2, 2])
    path = w.save(tmp_path / "m.onnx", w.conv(w.add("Relu", w.batch_norm(x, 6)), 6, 4, 1))
    found = compiled(path)
    assert operators(found) == ["Conv", "MaxPool+Mul+Add+Relu", "Conv"]
    assert_same(found.network, path)
