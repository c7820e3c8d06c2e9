"""Small models, made with onnx alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


def weight(name: str, *shape: int) -> onnx.TensorProto:
    """Make a weight of normal numbers."""
    return numpy_helper.from_array(_normal(name, *shape), name)


def constant(name: str, value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> onnx.TensorProto:
    """Make a weight of an array."""
    return numpy_helper.from_array(value, name)


def model(
    nodes: Sequence[onnx.NodeProto],
    weights: Sequence[onnx.TensorProto],
    shape: Sequence[int | str] = (1, 3, 8, 8),
    dtype: int = TensorProto.FLOAT,
    outputs: Sequence[str] = ("y",),
    opset: int = OPSET,
) -> onnx.ModelProto:
    """Make a model of one input `x`."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        list(weights),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def convolutions(shape: Sequence[int | str] = (1, 3, 8, 8)) -> onnx.ModelProto:
    """Make two convolutions with a batch normalization, an identity, a dropout and a residual addition."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1"], ["c1"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c1", "scale", "shift", "mean", "variance"], ["b1"]),
        node("Relu", ["b1"], ["r1"]),
        node("Identity", ["r1"], ["i1"]),
        node("Conv", ["i1", "w2"], ["c2"], pads=[1, 1, 1, 1]),
        node("Add", ["c2", "r1"], ["a"]),
        node("Dropout", ["a"], ["d"]),
        node("GlobalAveragePool", ["d"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("MatMul", ["f", "w3"], ["m"]),
        node("Add", ["m", "bias"], ["y"]),
    ]
    weights = [
        weight("w1", 8, 3, 3, 3),
        weight("w2", 8, 8, 3, 3),
        weight("w3", 8, 5),
        weight("bias", 5),
        weight("scale", 8),
        weight("shift", 8),
        weight("mean", 8),
        constant("variance", np.full(8, 0.5, np.float32)),
    ]
    return model(nodes, weights, shape)


def tokens(shape: Sequence[int | str] = (2, 4), rows: int = 11) -> onnx.ModelProto:
    """Make a lookup of token ids, and a product."""
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["g"]),
        helper.make_node("MatMul", ["g", "w"], ["y"]),
    ]
    return model(nodes, [weight("table", rows, 6), weight("w", 6, 3)], shape, TensorProto.INT64)


def one_node(operator: str, **attributes: Any) -> onnx.ModelProto:
    """Make a model of one operator with one input."""
    return model([helper.make_node(operator, ["x"], ["y"], **attributes)], [])


def write(made: onnx.ModelProto, file: Path) -> Path:
    """Write a model."""
    onnx.save(made, file)
    return file


def _normal(name: str, *shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    seed = sum(name.encode())
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
