"""Operators that are computed as Python kernels compute what ONNX Runtime computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from network.compiled import assert_same, compiled, run_onnxruntime
from network_models import ModelWriter
from planish.core import ProgramError

Build = Callable[[ModelWriter], str | tuple[str, ...]]
Feed = Mapping[str, NDArray[Any]]
_KINDS = {
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.bool_): TensorProto.BOOL,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.float32): TensorProto.FLOAT,
}


def check(path: Path, build: Build, feed: Feed | None = None, opset: int = 17) -> None:
    """Compare with ONNX Runtime, on drawn inputs and on given ones."""
    w = ModelWriter()
    for name, array in (feed or {}).items():
        w.input(name, array.shape, _KINDS[array.dtype])
    outputs = build(w)
    w.save(path, *([outputs] if isinstance(outputs, str) else outputs), opset=opset)
    net = compiled(path).network
    if feed is None:
        assert_same(net, path)
        return
    found = net(**feed)
    for mine, right in zip(
        found if isinstance(found, tuple) else (found,), run_onnxruntime(path, feed), strict=True
    ):
        assert (mine.dtype, mine.shape) == (right.dtype, right.shape)
        np.testing.assert_allclose(mine, right, rtol=2e-5, atol=2e-5)


FLOATS = (
    "Acosh",
    "Asin",
    "Acos",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Cos",
    "Cosh",
    "Floor",
    "Round",
    "Sin",
    "Sinh",
    "Tan",
)


def test_floats_that_loops_lack(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    x = np.concatenate([draw.uniform(-1, 1, 20), [0, -1, 1, 0.5, -0.5, 1e-4]]).astype(np.float32)

    def build(w: ModelWriter) -> tuple[str, ...]:
        wide, beyond = w.add("Mul", "x", w.number(4.5)), w.add("Add", w.add("Abs", "x"), w.number(1))
        found = [
            w.add(name, "x" if name in ("Asin", "Acos", "Atanh") else beyond if name == "Acosh" else wide)
            for name in FLOATS
        ]
        found += [
            w.add("Pow", beyond, w.number(2.7)),
            w.add("Pow", beyond, "x"),
            w.add("Pow", wide, w.number(5)),
        ]
        found += [w.add("Mod", wide, w.number(1.3), fmod=1), w.add("Pow", "x", w.whole(3))]
        return tuple(found)

    check(tmp_path / "m.onnx", build, {"x": x[1:-5] * np.float32(0.9)})


def test_whole_numbers(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    a, b = draw.integers(-50, 50, (3, 4, 5)), draw.integers(1, 9, (4, 1))
    c = draw.integers(0, 2, (3, 1, 5)).astype(np.bool_)
    signed = np.where(draw.integers(0, 2, (4, 1)) > 0, b, -b)

    def build(w: ModelWriter) -> tuple[str, ...]:
        d = w.constant(signed)
        found = [w.add(name, "a", "b") for name in ("Add", "Sub", "Mul", "Max", "Min")]
        found += [w.add(name, "a", d) for name in ("Div", "Mod", "Add")] + [w.add("Mod", "a", d, fmod=1)]
        found += [
            w.add(name, "a", "b") for name in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
        ]
        found += [w.add(name, "a") for name in ("Abs", "Neg", "Sign")]
        found += [w.add("Max", "a", "b", d), w.add("Min", "a")]
        found += [
            w.add("Pow", "b", w.whole(3)),
            w.add("Where", "c", "a", "b"),
            w.add("Clip", "a", w.constant(np.array(-3))),
        ]
        found += [
            w.add("Cast", "a", to=kind) for kind in (TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT32)
        ]
        truth = w.add("Not", w.add("Xor", "c", w.add("Cast", "a", to=TensorProto.BOOL)))
        found += [truth, w.add("Cast", truth, to=TensorProto.INT64), w.add("Expand", "b", w.whole(2, 4, 3))]
        x = w.add("Mul", w.add("Cast", "a", to=TensorProto.FLOAT), w.number(0.3))
        found += [w.add("Cast", x, to=TensorProto.INT32), w.add("ReduceMax", "a", axes=[1], keepdims=0)]
        found += [w.add("ReduceSum", "a", w.whole(0, 2)), w.add("ReduceMean", "b", keepdims=0)]
        return tuple(found)

    check(tmp_path / "m.onnx", build, {"a": a, "b": b, "c": c})


def test_movement_of_whole_numbers(tmp_path: Path) -> None:
    x = np.arange(120).reshape(2, 3, 4, 5)

    def build(w: ModelWriter) -> tuple[str, ...]:
        part = w.add("Slice", "x", w.whole(-1, 3), w.whole(-9, 0), w.whole(1, 2), w.whole(-1, -2))
        parts = w.add("Split", "x", w.whole(1, 2), axis=1, count=2)
        return (
            w.add("Transpose", "x", perm=[0, 2, 3, 1]),
            part,
            *parts,
            w.add("Concat", "x", "x", parts[0], axis=1),
            w.add("Tile", "x", w.whole(1, 2, 1, 3)),
            w.add("Pad", "x", w.whole(0, 1, 0, 2, 0, 0, 1, 1)),
            w.add("Gather", "x", w.whole(1, -1, 0), axis=1),
            w.add("Trilu", "x", upper=0),
            w.add("CumSum", "x", w.whole(2), exclusive=1, reverse=1),
            w.add("ArgMax", "x", axis=-1),
            w.add(
                "Resize",
                w.add("Cast", "x", to=TensorProto.INT32),
                "",
                "",
                w.whole(2, 3, 6, 7),
                mode="nearest",
            ),
        )

    check(tmp_path / "m.onnx", build, {"x": x})


def test_movement_of_floats(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x, y = w.input("x", (2, 3, 4, 5)), w.input("y", (1, 12, 2, 3))
        modes = [
            w.add("Pad", x, w.whole(0, 1, 2, 3, 0, 0, 1, 2), mode=mode)
            for mode in ("reflect", "edge", "wrap")
        ]
        pads = w.add("Pad", x, w.whole(1, 2), "", w.whole(-1), mode="edge")
        return (
            *modes, pads, w.add("Slice", x, w.whole(10, 2), w.whole(-100, 0), w.whole(3, 1), w.whole(-2, -1)),
            w.add("Tile", x, w.whole(2, 1, 2, 1)), w.add("DepthToSpace", y, blocksize=2),
            w.add("DepthToSpace", y, blocksize=2, mode="CRD"), w.add("SpaceToDepth", x, blocksize=1),
            w.add("CumSum", x, w.whole(1)), w.add("Trilu", x, w.constant(np.array(1))),
            w.add("ArgMin", x, axis=1, keepdims=0), w.add("ArgMax", x, axis=2, select_last_index=1),
            w.add("Hardmax", x, axis=1),
        )  # fmt: skip

    check(tmp_path / "m.onnx", build, opset=19)


def test_lookups(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    x = draw.standard_normal((3, 4, 5)).astype(np.float32)
    i, few = draw.integers(-3, 3, (2, 2)), draw.integers(-3, 3, (2, 4, 5))
    pairs, rows = draw.integers(-3, 3, (4, 2)), np.array([[2, 0], [0, -1]])
    updates = draw.standard_normal((2, 5)).astype(np.float32)
    ids, depth = draw.integers(-4, 5, (2, 3)), np.array(4)

    def build(w: ModelWriter) -> tuple[str, ...]:
        values = w.constant(np.array([-1, 2], np.float32))
        floats = w.add("Cast", w.add("Abs", "few"), to=TensorProto.FLOAT)
        return (
            w.add("Gather", "x", "i"), w.add("Gather", "x", "i", axis=1), w.add("Gather", "few", "i", axis=1),
            w.add("GatherElements", "x", "few", axis=0), w.add("GatherND", "x", "pairs"),
            w.add("ScatterND", "x", "rows", "updates"),
            w.add("ScatterElements", "x", "few", floats, axis=0, reduction="add"),
            w.add("OneHot", "ids", w.constant(depth), values, axis=1),
        )  # fmt: skip

    feed = {"x": x, "i": i, "few": few, "pairs": pairs, "rows": rows, "updates": updates, "ids": ids}
    check(tmp_path / "m.onnx", build, feed)


@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(tmp_path: Path, largest: int) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x = w.input("x", (3, 17, 2))
        found = [w.add("TopK", x, w.whole(k), axis=1, largest=largest, count=2) for k in (1, 5, 17)]
        last = w.add("TopK", w.add("Round", x), w.whole(2), largest=largest, count=2)
        return tuple(name for pair in (*found, last) for name in pair)

    check(tmp_path / "m.onnx", build)


def test_pooling_with_indices(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x, line = w.input("x", (2, 3, 9, 11)), w.input("line", (1, 2, 10))
        size: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2]}
        return (
            *w.add("MaxPool", x, pads=[1, 1, 1, 1], count=2, **size),
            *w.add("MaxPool", x, ceil_mode=1, count=2, **size),
            *w.add("MaxPool", line, kernel_shape=[2], dilations=[3], count=2),
        )

    check(tmp_path / "m.onnx", build)


COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_resize(tmp_path: Path, mode: str) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x, factors = w.input("x", (1, 2, 5, 7)), w.constant(np.array([1, 1, 2.5, 1.6], np.float32))
        found = [
            w.add("Resize", x, "", "", w.whole(1, 2, *size), mode=mode, coordinate_transformation_mode=where)
            for where in COORDINATES
            for size in ((11, 14), (3, 9))
        ]
        found += [w.add("Resize", x, "", factors, mode=mode)]
        if mode == "nearest":
            sizes = w.whole(1, 2, 8, 9)
            found += [
                w.add("Resize", x, "", "", sizes, mode=mode, nearest_mode=rounding)
                for rounding in ("floor", "ceil", "round_prefer_ceil", "round_prefer_floor")
            ]
        if mode == "cubic":
            found += [w.add("Resize", x, "", factors, mode=mode, exclude_outside=1, cubic_coeff_a=-0.5)]
        return tuple(found)

    check(tmp_path / "m.onnx", build)


def test_resize_without_aliasing(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x = w.input("x", (1, 2, 12, 15))
        return tuple(
            w.add("Resize", x, "", "", w.whole(1, 2, 5, 8), mode=mode, antialias=1)
            for mode in ("linear", "cubic")
        )

    check(tmp_path / "m.onnx", build, opset=18)


@pytest.mark.slow(after=4)
@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(("direction", "hidden"), [("forward", 11), ("reverse", 32), ("bidirectional", 11)])
def test_recurrent_layers(tmp_path: Path, operator: str, direction: str, hidden: int) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x = w.input("x", (5, 2, 6))
        more = {"linear_before_reset": 1} if operator == "GRU" else {}
        size = 2 if direction == "bidirectional" else 1
        lengths = w.constant(np.array([3, 5], np.int32))
        states = [w.input(name, (size, 2, hidden)) for name in ("h", "c")[: 2 if operator == "LSTM" else 1]]
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
        weights = (
            w.weight(size, gates * hidden, 6),
            w.weight(size, gates * hidden, hidden),
            w.weight(size, 2 * gates * hidden),
        )
        count = 3 if operator == "LSTM" else 2
        common: dict[str, Any] = {"hidden_size": hidden, "direction": direction, "count": count}
        return (
            *w.add(operator, x, *weights, "", *states, **common, **more),
            *w.add(operator, x, *weights, lengths, *states, **common),
            w.add(operator, x, *weights[:2], **{**common, "count": 1}),
        )

    check(tmp_path / "m.onnx", build)


def test_recurrent_layers_with_options(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x = w.input("x", (4, 1, 3))
        lstm = w.weight(1, 32, 3), w.weight(1, 32, 8), w.weight(1, 64)
        rnn = w.weight(1, 8, 3), w.weight(1, 8, 8), w.weight(1, 16)
        return (
            *w.add("LSTM", x, *lstm, "", "", "", w.weight(1, 24), hidden_size=8, count=3),
            w.add("LSTM", x, *lstm, hidden_size=8, activations=["Sigmoid", "Relu", "Tanh"]),
            w.add("LSTM", x, *lstm, hidden_size=8, clip=0.3),
            w.add("RNN", x, *rnn, hidden_size=8, activations=["Relu"]),
        )

    check(tmp_path / "m.onnx", build)


def test_products_with_vectors(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        a, b, m = w.input("a", (7,)), w.input("b", (7,)), w.input("m", (2, 3, 7))
        return (
            w.add("MatMul", a, b),
            w.add("MatMul", m, a),
            w.add("MatMul", a, w.weight(7, 4)),
            w.add("MatMul", a, w.add("Transpose", m, perm=[0, 2, 1])),
            w.add("Relu", w.add("MatMul", m, w.weight(7))),
        )

    check(tmp_path / "m.onnx", build)


def test_einsum(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        a, b, c = w.input("a", (2, 3, 4)), w.input("b", (2, 5, 4)), w.input("c", (4,))
        pairs = [("bij,bkj->bik", b), ("...j,j", c), ("bij,bkj", b), ("bij,j->ib", c), ("bij,bkj->", b)]
        return (
            *[w.add("Einsum", a, other, equation=equation) for equation, other in pairs],
            w.add("Relu", w.add("Einsum", a, equation="bij->ji")),
            w.add("Einsum", a, b, c, equation="bij,bkj,j->ik"),
        )

    check(tmp_path / "m.onnx", build)


def test_normalizations(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x, y = w.input("x", (2, 6, 4, 5)), w.input("y", (2, 3, 8))
        return (
            w.add("LRN", x, size=3, alpha=0.1, beta=0.75, bias=2.0),
            w.add("ReduceLogSumExp", y, w.whole(1), keepdims=0),
            w.add("ReduceLogSum", w.add("Abs", y), w.whole(-1)),
            w.add("Mean", y, y, w.weight(8)),
            *[w.add(name, y, domain="com.microsoft") for name in ("QuickGelu", "FastGelu", "Gelu")],
            w.add("BiasGelu", y, w.weight(8), domain="com.microsoft"),
            w.add(
                "SkipLayerNormalization", y, y, w.weight(8), w.weight(8), w.weight(8), domain="com.microsoft"
            ),
            w.add("Softmax", y, axis=1),
            *[
                w.add(name, y)
                for name in ("Celu", "Mish", "Selu", "Shrink", "Sign", "ThresholdedRelu", "IsNaN", "IsInf")
            ],
        )

    check(tmp_path / "m.onnx", build, opset=18)


def test_quantization_and_further_outputs(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x = w.input("x", (2, 6, 5))
        scales, zeros = w.positive(6), w.constant(np.arange(6, dtype=np.uint8) * 20)
        whole = w.add("QuantizeLinear", x, w.number(0.1), w.constant(np.array(3, np.int8)))
        wide = w.add("QuantizeLinear", x, scales, zeros, axis=1)
        layer = w.add("LayerNormalization", x, w.weight(5), w.weight(5), count=3)
        return (
            whole,
            wide,
            w.add("DequantizeLinear", whole, w.number(0.1), w.constant(np.array(3, np.int8))),
            w.add("DequantizeLinear", wide, scales, zeros, axis=1),
            *layer,
            w.add("LpNormalization", x, axis=1),
            w.add("LpNormalization", x, p=1),
        )

    check(tmp_path / "m.onnx", build)


def test_reductions_of_no_elements(tmp_path: Path) -> None:
    x = np.zeros((2, 0, 3), np.float32)

    def build(w: ModelWriter) -> tuple[str, ...]:
        axes = w.whole(1)
        return (
            *[w.add(f"Reduce{name}", "x", axes) for name in ("Sum", "Prod", "Max", "Min", "L2")],
            w.add("MatMul", w.add("Transpose", "x", perm=[0, 2, 1]), "x"),
            w.add("Concat", "x", w.weight(2, 1, 3), axis=1),
        )

    check(tmp_path / "m.onnx", build, {"x": x}, opset=20)


def test_arguments_that_are_computed_are_named(tmp_path: Path) -> None:
    w = ModelWriter()
    values, _ = w.add("TopK", w.input("x", (3, 4)), w.input("k", (1,), TensorProto.INT64), count=2)
    model = w.model(values)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(values, TensorProto.FLOAT, (3, 2)))
    onnx.save(model, str(tmp_path / "m.onnx"))
    with pytest.raises(ProgramError, match="'TopK_0' \\(TopK\\): input 1 is computed"):
        compiled(tmp_path / "m.onnx")


def test_group_normalization(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> str:
        return w.add("GroupNormalization", w.input("x", (2, 6, 4, 5)), w.weight(6), w.weight(6), num_groups=3)

    check(tmp_path / "m.onnx", build, opset=21)


def test_transposed_convolutions_of_a_given_size(tmp_path: Path) -> None:
    def build(w: ModelWriter) -> tuple[str, ...]:
        x, weights = w.input("x", (1, 4, 5, 6)), w.weight(4, 3, 3, 3)
        return (
            w.add("ConvTranspose", x, weights, strides=[2, 2], auto_pad="SAME_UPPER"),
            w.add("ConvTranspose", x, weights, strides=[2, 3], output_shape=[11, 17]),
            w.add("ConvTranspose", x, w.weight(4, 2, 3, 3), group=2, strides=[2, 2], output_padding=[1, 0]),
        )

    check(tmp_path / "m.onnx", build)


def test_inputs_and_outputs_of_all_types(tmp_path: Path) -> None:
    image = np.arange(24, dtype=np.uint8).reshape(2, 3, 4) * 10
    mask = np.array([[True, False, True, True]])

    def build(w: ModelWriter) -> tuple[str, ...]:
        x = w.add("Mul", w.add("Cast", "image", to=TensorProto.FLOAT), w.number(1 / 255))
        shown = w.add("Where", "mask", x, w.number(0))
        return (
            shown,
            w.add("Identity", "mask"),
            w.add("Cast", w.add("Mul", x, w.number(9)), to=TensorProto.UINT8),
            w.add("Cast", w.add("Floor", x), to=TensorProto.BOOL),
            w.add("Cast", "double", to=TensorProto.FLOAT),
            w.add("Cast", x, to=TensorProto.DOUBLE),
        )

    check(tmp_path / "m.onnx", build, {"image": image, "mask": mask, "double": np.array([0.5, 2.0])})
