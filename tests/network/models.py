"""ONNX models for tests, written node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper


class ModelWriter:
    """Collects nodes and weights; each method returns the name of a tensor.

    Args:
        seed: of the weights.
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self._inputs: list[Any] = []

    def input(self, name: str, shape: Sequence[int | str], kind: int = TensorProto.FLOAT) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, array: NDArray[Any]) -> str:
        name = f"w{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape: int) -> str:
        scale = 1 / np.sqrt(max(1, int(np.prod(shape[1:]))))
        return self.constant((scale * self._random.standard_normal(shape)).astype(np.float32))

    def add(self, operator: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        names = [f"t{len(self._nodes)}_{i}" for i in range(count)]
        made = helper.make_node(operator, inputs, names, f"{operator}_{len(self._nodes)}", **attributes)
        self._nodes.append(made)
        return names[0] if count == 1 else names

    def conv(self, x: str, inner: int, outer: int, size: int, stride: int = 1, groups: int = 1) -> str:
        weights, bias = self.weight(outer, inner // groups, size, size), self.weight(outer)
        pads = [size // 2] * 4
        return self.add("Conv", x, weights, bias, pads=pads, strides=[stride, stride], group=groups)

    def model(self, *outputs: str, opset: int = 17) -> onnx.ModelProto:
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self._nodes, "net", self._inputs, ends, self._weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made)

    def save(self, path: Path, *outputs: str, opset: int = 17) -> Path:
        onnx.save(self.model(*outputs, opset=opset), str(path))
        return path


def resnet18(path: Path, size: int = 224, width: int = 64) -> Path:
    """Write ResNet-18, whose batch normalizations are in its convolutions."""
    w = ModelWriter()
    x = w.input("x", (1, 3, size, size))
    x = w.add("Relu", w.conv(x, 3, width, 7, 2))
    x = w.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inner = width
    for stage in range(4):
        outer = width << stage
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = w.add("Relu", w.conv(x, inner, outer, 3, stride))
            y = w.conv(y, outer, outer, 3)
            shortcut = x if inner == outer and stride == 1 else w.conv(x, inner, outer, 1, stride)
            x, inner = w.add("Relu", w.add("Add", y, shortcut)), outer
    x = w.add("Flatten", w.add("GlobalAveragePool", x))
    return w.save(path, w.add("Gemm", x, w.weight(1000, inner), w.weight(1000), transB=1))


MOBILENET: Sequence[tuple[int, int, int, int]] = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip
"""Expansion, channels, blocks, stride of MobileNetV2."""


def mobilenet(path: Path, size: int = 224, blocks: Sequence[tuple[int, int, int, int]] = MOBILENET) -> Path:
    """Write MobileNetV2."""
    w = ModelWriter()
    low, high = (w.constant(np.array(v, np.float32)) for v in (0, 6))

    def act(x: str) -> str:
        return w.add("Clip", x, low, high)

    x, inner = act(w.conv(w.input("x", (1, 3, size, size)), 3, 32, 3, 2)), 32
    for expansion, outer, count, first in blocks:
        for block in range(count):
            stride, wide = first if not block else 1, inner * expansion
            y = act(w.conv(x, inner, wide, 1)) if expansion > 1 else x
            y = w.conv(act(w.conv(y, wide, wide, 3, stride, wide)), wide, outer, 1)
            x, inner = w.add("Add", x, y) if inner == outer and stride == 1 else y, outer
    x = w.add("ReduceMean", act(w.conv(x, inner, 1280, 1)), axes=[2, 3], keepdims=0)
    return w.save(path, w.add("Gemm", x, w.weight(1000, 1280), w.weight(1000), transB=1))


def bert(path: Path, layers: int = 4, width: int = 256, heads: int = 4, length: int = 128) -> Path:
    """Write an encoder as BERT has, over indices of words; its GELU is exact, by parts."""
    w = ModelWriter()
    ids = w.input("ids", (1, length), TensorProto.INT64)

    def dense(x: str, inner: int, outer: int) -> str:
        return w.add("Add", w.add("MatMul", x, w.weight(inner, outer)), w.weight(outer))

    def norm(x: str) -> str:
        return w.add("LayerNormalization", x, w.weight(width), w.weight(width), axis=-1)

    def number(value: float) -> str:
        return w.constant(np.array(value, np.float32))

    x = norm(w.add("Add", w.add("Gather", w.weight(1000, width), ids), w.weight(length, width)))
    shape = w.constant(np.array([0, 0, heads, width // heads], np.int64))
    back = w.constant(np.array([0, 0, width], np.int64))
    for _ in range(layers):
        q, k, v = (w.add("Reshape", dense(x, width, width), shape) for _ in range(3))
        q, v = (w.add("Transpose", each, perm=[0, 2, 1, 3]) for each in (q, v))
        k = w.add("Transpose", k, perm=[0, 2, 3, 1])
        scores = w.add("Div", w.add("MatMul", q, k), number((width / heads) ** 0.5))
        mixed = w.add("MatMul", w.add("Softmax", scores, axis=-1), v)
        mixed = w.add("Reshape", w.add("Transpose", mixed, perm=[0, 2, 1, 3]), back)
        x = norm(w.add("Add", x, dense(mixed, width, width)))
        h = dense(x, width, 4 * width)
        curve = w.add("Add", w.add("Erf", w.add("Div", h, number(2**0.5))), number(1.0))
        h = w.add("Mul", w.add("Mul", h, curve), number(0.5))
        x = norm(w.add("Add", x, dense(h, 4 * width, width)))
    return w.save(path, x)


def dcgan(path: Path) -> Path:
    """Write the generator of DCGAN: transposed convolutions."""
    w = ModelWriter()
    x, inner = w.input("z", (1, 100, 1, 1)), 100
    for outer, stride, pad in ((512, 1, 0), (256, 2, 1), (128, 2, 1), (64, 2, 1), (3, 2, 1)):
        x = w.add("ConvTranspose", x, w.weight(inner, outer, 4, 4), strides=[stride] * 2, pads=[pad] * 4)
        x, inner = w.add("Tanh" if outer == 3 else "Relu", x), outer
    return w.save(path, x)


def run_onnxruntime(path: Path, feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Run a model without optimizations."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [np.asarray(each) for each in session.run(None, dict(feed))]
