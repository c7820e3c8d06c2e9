"""ONNX models of the usual families of networks, with random weights, made with onnx alone.

`NETWORKS` has each family at a size at which it is used. Tests pass smaller sizes to the same builders.
`python tools/network_models.py FOLDER --networks bert gpt` writes them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
        """Add an input."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, array: NDArray[Any]) -> str:
        """Add a constant."""
        name = f"w{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(array, name))
        return name

    def number(self, value: float) -> str:
        """Add a constant of one number."""
        return self.constant(np.array(value, np.float32))

    def whole(self, *values: int) -> str:
        """Add a constant vector of whole numbers."""
        return self.constant(np.array(values, np.int64))

    def weight(self, *shape: int) -> str:
        """Add a weight of normal numbers, scaled by its fan-in."""
        scale = 1 / np.sqrt(max(1, int(np.prod(shape[1:]))))
        return self.constant((scale * self._random.standard_normal(shape)).astype(np.float32))

    def positive(self, size: int) -> str:
        """Add a vector of numbers around 1."""
        return self.constant(self._random.uniform(0.5, 1.5, size).astype(np.float32))

    def add(self, operator: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or a list of several."""
        names = [f"t{len(self._nodes)}_{i}" for i in range(count)]
        made = helper.make_node(operator, inputs, names, f"{operator}_{len(self._nodes)}", **attributes)
        self._nodes.append(made)
        return names[0] if count == 1 else names

    def conv(self, x: str, inner: int, outer: int, size: int, stride: int = 1, groups: int = 1) -> str:
        """Add a convolution with a bias, padded to the size of its input."""
        weights, bias = self.weight(outer, inner // groups, size, size), self.weight(outer)
        pads = [size // 2] * 4
        return self.add("Conv", x, weights, bias, pads=pads, strides=[stride, stride], group=groups)

    def batch_norm(self, x: str, channels: int) -> str:
        """Add a batch normalization."""
        statistics = self.positive(channels), self.weight(channels), self.weight(channels)
        return self.add("BatchNormalization", x, *statistics, self.positive(channels))

    def dense(self, x: str, inner: int, outer: int) -> str:
        """Add a product with a weight, and a bias."""
        return self.add("Add", self.add("MatMul", x, self.weight(inner, outer)), self.weight(outer))

    def linear(self, x: str, inner: int, outer: int) -> str:
        """Add a layer of a matrix."""
        return self.add("Gemm", x, self.weight(outer, inner), self.weight(outer), transB=1)

    def layer_norm(self, x: str, width: int) -> str:
        """Add a layer normalization over the last dimension."""
        return self.add("LayerNormalization", x, self.positive(width), self.weight(width), axis=-1)

    def swish(self, x: str) -> str:
        """Add x * sigmoid(x)."""
        return self.add("Mul", x, self.add("Sigmoid", x))

    def gelu(self, x: str) -> str:
        """Add the exact GELU, by parts."""
        curve = self.add("Add", self.add("Erf", self.add("Div", x, self.number(2**0.5))), self.number(1.0))
        return self.add("Mul", self.add("Mul", x, curve), self.number(0.5))

    def attention(self, x: str, width: int, heads: int, source: str = "", bias: str = "") -> str:
        """Add attention of several heads over a batch of sequences.

        Args:
            x: of the queries.
            width: of each element.
            heads: how many.
            source: what is attended to; x by default.
            bias: is added to the scores, if given.
        """
        shape, back = self.whole(0, -1, heads, width // heads), self.whole(0, -1, width)
        q, k, v = (
            self.add("Reshape", self.dense(each, width, width), shape)
            for each in (x, source or x, source or x)
        )
        q, v = (self.add("Transpose", each, perm=[0, 2, 1, 3]) for each in (q, v))
        k = self.add("Transpose", k, perm=[0, 2, 3, 1])
        scores = self.add("Div", self.add("MatMul", q, k), self.number((width / heads) ** 0.5))
        scores = self.add("Add", scores, bias) if bias else scores
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        mixed = self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), back)
        return self.dense(mixed, width, width)

    def recurrent(
        self, operator: str, x: str, inner: int, hidden: int, direction: str = "forward", **more: Any
    ) -> Any:
        """Add LSTM, GRU or RNN over x of (steps, batch, inner); return its outputs."""
        gates, count = {"LSTM": (4, 3), "GRU": (3, 2), "RNN": (1, 2)}[operator]
        directions = 2 if direction == "bidirectional" else 1
        weights = (
            self.weight(directions, gates * hidden, inner),
            self.weight(directions, gates * hidden, hidden),
            self.weight(directions, 2 * gates * hidden),
        )
        return self.add(operator, x, *weights, count=count, hidden_size=hidden, direction=direction, **more)

    def model(self, *outputs: str, opset: int = 17) -> onnx.ModelProto:
        """Return the model, with its shapes inferred."""
        ends = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self._nodes, "net", self._inputs, ends, self._weights)
        sets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        made = helper.make_model(graph, opset_imports=sets, ir_version=8)
        return onnx.shape_inference.infer_shapes(made, data_prop=True)

    def save(self, path: Path, *outputs: str, opset: int = 17) -> Path:
        """Write the model, and return its path."""
        onnx.save(self.model(*outputs, opset=opset), str(path))
        return path


# Images


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
    return w.save(path, w.linear(x, inner, 1000))


def resnet50(path: Path, size: int = 224, width: int = 64, blocks: Sequence[int] = (3, 4, 6, 3)) -> Path:
    """Write ResNet-50, with batch normalizations."""
    w = ModelWriter()

    def conv(x: str, inner: int, outer: int, size: int, stride: int = 1) -> str:
        return w.batch_norm(w.conv(x, inner, outer, size, stride), outer)

    x = w.add("Relu", conv(w.input("x", (1, 3, size, size)), 3, width, 7, 2))
    x, inner = w.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), width
    for stage, count in enumerate(blocks):
        narrow = width << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            y = w.add("Relu", conv(x, inner, narrow, 1))
            y = conv(w.add("Relu", conv(y, narrow, narrow, 3, stride)), narrow, 4 * narrow, 1)
            x = w.add("Relu", w.add("Add", y, x if block else conv(x, inner, 4 * narrow, 1, stride)))
            inner = 4 * narrow
    x = w.add("Flatten", w.add("GlobalAveragePool", x))
    return w.save(path, w.linear(x, inner, 1000))


def vgg16(path: Path, size: int = 224, width: int = 64, hidden: int = 4096) -> Path:
    """Write VGG-16."""
    w = ModelWriter()
    x, inner = w.input("x", (1, 3, size, size)), 3
    for stage, count in enumerate((2, 2, 3, 3, 3)):
        for _ in range(count):
            outer = width << min(stage, 3)
            x, inner = w.add("Relu", w.conv(x, inner, outer, 3)), outer
        x = w.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = w.add("Flatten", x)
    x = w.add("Relu", w.linear(x, inner * (size // 32) ** 2, hidden))
    return w.save(path, w.linear(w.add("Relu", w.linear(x, hidden, hidden)), hidden, 1000))


def mobilenet_v1(path: Path, size: int = 224, width: int = 32) -> Path:
    """Write MobileNet V1."""
    w = ModelWriter()
    x, inner = w.add("Relu", w.conv(w.input("x", (1, 3, size, size)), 3, width, 3, 2)), width
    for factor, stride in ((2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), *[(16, 1)] * 5, (32, 2), (32, 1)):
        x = w.add("Relu", w.conv(x, inner, inner, 3, stride, inner))
        x, inner = w.add("Relu", w.conv(x, inner, factor * width, 1)), factor * width
    x = w.add("Flatten", w.add("GlobalAveragePool", x))
    return w.save(path, w.add("Softmax", w.linear(x, inner, 1000), axis=-1))


MOBILENET: Sequence[tuple[int, int, int, int]] = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip
"""Expansion, channels, blocks, stride of MobileNetV2."""


def mobilenet(path: Path, size: int = 224, blocks: Sequence[tuple[int, int, int, int]] = MOBILENET) -> Path:
    """Write MobileNetV2."""
    w = ModelWriter()
    low, high = w.number(0), w.number(6)

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
    return w.save(path, w.linear(x, 1280, 1000))


MOBILENET_V3: Sequence[tuple[int, int, int, bool, bool, int]] = (
    (3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1),
)  # fmt: skip
"""Window, wide channels, channels, squeeze-and-excitation, hard swish, stride of MobileNetV3 (large)."""


def _excited(w: ModelWriter, x: str, channels: int, narrow: int, gate: str, act: Callable[[str], str]) -> str:
    """Add squeeze-and-excitation."""
    y = act(w.conv(w.add("GlobalAveragePool", x), channels, narrow, 1))
    return w.add("Mul", x, w.add(gate, w.conv(y, narrow, channels, 1)))


def mobilenet_v3(
    path: Path, size: int = 224, blocks: Sequence[tuple[int, int, int, bool, bool, int]] = MOBILENET_V3
) -> Path:
    """Write MobileNetV3 (large)."""
    w = ModelWriter()
    x, inner = w.add("HardSwish", w.conv(w.input("x", (1, 3, size, size)), 3, 16, 3, 2)), 16
    for window, wide, outer, excites, hard, stride in blocks:
        act = "HardSwish" if hard else "Relu"
        y = w.add(act, w.conv(x, inner, wide, 1)) if wide != inner else x
        y = w.add(act, w.conv(y, wide, wide, window, stride, wide))
        y = _excited(w, y, wide, wide // 4, "HardSigmoid", partial(w.add, "Relu")) if excites else y
        y = w.conv(y, wide, outer, 1)
        x, inner = w.add("Add", x, y) if inner == outer and stride == 1 else y, outer
    x = w.add("GlobalAveragePool", w.add("HardSwish", w.conv(x, inner, 6 * inner, 1)))
    x = w.add("HardSwish", w.linear(w.add("Flatten", x), 6 * inner, 1280))
    return w.save(path, w.linear(x, 1280, 1000))


EFFICIENTNET: Sequence[tuple[int, int, int, int, int]] = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
)  # fmt: skip
"""Expansion, channels, blocks, stride, window of EfficientNet-B0."""


def efficientnet(
    path: Path, size: int = 224, blocks: Sequence[tuple[int, int, int, int, int]] = EFFICIENTNET
) -> Path:
    """Write EfficientNet-B0."""
    w = ModelWriter()
    x, inner = w.swish(w.conv(w.input("x", (1, 3, size, size)), 3, 32, 3, 2)), 32
    for expansion, outer, count, first, window in blocks:
        for block in range(count):
            stride, wide = first if not block else 1, inner * expansion
            y = w.swish(w.conv(x, inner, wide, 1)) if expansion > 1 else x
            y = w.swish(w.conv(y, wide, wide, window, stride, wide))
            y = w.conv(_excited(w, y, wide, max(1, inner // 4), "Sigmoid", w.swish), wide, outer, 1)
            x, inner = w.add("Add", x, y) if inner == outer and stride == 1 else y, outer
    x = w.add("GlobalAveragePool", w.swish(w.conv(x, inner, 1280, 1)))
    return w.save(path, w.linear(w.add("Flatten", x), 1280, 1000))


def densenet(path: Path, size: int = 224, growth: int = 32, blocks: Sequence[int] = (6, 12, 24, 16)) -> Path:
    """Write DenseNet-121, whose batch normalizations go before its convolutions."""
    w, inner = ModelWriter(), 2 * growth
    x = w.add("Relu", w.batch_norm(w.conv(w.input("x", (1, 3, size, size)), 3, inner, 7, 2), inner))
    x = w.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stage, count in enumerate(blocks):
        for _ in range(count):
            y = w.conv(w.add("Relu", w.batch_norm(x, inner)), inner, 4 * growth, 1)
            y = w.conv(w.add("Relu", w.batch_norm(y, 4 * growth)), 4 * growth, growth, 3)
            x, inner = w.add("Concat", x, y, axis=1), inner + growth
        if stage < len(blocks) - 1:
            x, inner = w.conv(w.add("Relu", w.batch_norm(x, inner)), inner, inner // 2, 1), inner // 2
            x = w.add("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = w.add("Flatten", w.add("GlobalAveragePool", w.add("Relu", w.batch_norm(x, inner))))
    return w.save(path, w.linear(x, inner, 1000))


def unet(path: Path, size: int = 128, width: int = 32, depth: int = 3, linear: bool = False) -> Path:
    """Write a U-Net.

    Args:
        path: of the model.
        size: of the image.
        width: channels at the top.
        depth: how often the image is halved.
        linear: whether it is enlarged by linear interpolation, else by transposed convolutions.
    """
    w = ModelWriter()

    def double(x: str, inner: int, outer: int) -> str:
        x = w.add("Relu", w.conv(x, inner, outer, 3))
        return w.add("Relu", w.conv(x, outer, outer, 3))

    x, skips = double(w.input("x", (1, 3, size, size)), 3, width), list[str]()
    for level in range(depth):
        skips.append(x)
        x = w.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = double(x, width << level, width << level + 1)
    for level in range(depth)[::-1]:
        outer = width << level
        if linear:
            twice = w.constant(np.array([1, 1, 2, 2], np.float32))
            x = w.add("Resize", x, "", twice, mode="linear", coordinate_transformation_mode="half_pixel")
            x = w.conv(x, 2 * outer, outer, 1)
        else:
            x = w.add("ConvTranspose", x, w.weight(2 * outer, outer, 2, 2), w.weight(outer), strides=[2, 2])
        x = double(w.add("Concat", skips.pop(), x, axis=1), 2 * outer, outer)
    return w.save(path, w.conv(x, width, 2, 1))


def yolo(path: Path, size: int = 320, width: int = 16, classes: int = 80, selects: bool = False) -> Path:
    """Write a detector as YOLOv8n is built, with its head up to boxes and scores.

    Args:
        path: of the model.
        size: of the image.
        width: channels of the first layer.
        classes: of what is detected.
        selects: whether it ends with a selection of boxes, of which there are as many as the image has.
    """
    w = ModelWriter()

    def conv(x: str, inner: int, outer: int, size: int = 1, stride: int = 1) -> str:
        return w.swish(w.conv(x, inner, outer, size, stride))

    def c2f(x: str, inner: int, outer: int, count: int, adds: bool) -> str:
        half = outer // 2
        parts = w.add("Split", conv(x, inner, outer), w.whole(half, half), axis=1, count=2)
        for _ in range(count):
            y = conv(conv(parts[-1], half, half, 3), half, half, 3)
            parts.append(w.add("Add", parts[-1], y) if adds else y)
        return conv(w.add("Concat", *parts, axis=1), half * len(parts), outer)

    def larger(x: str) -> str:
        twice = w.constant(np.array([1, 1, 2, 2], np.float32))
        modes: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return w.add("Resize", x, "", twice, mode="nearest", **modes)

    a, b, c, d, e = (width << i for i in range(5))
    x = conv(conv(w.input("x", (1, 3, size, size)), 3, a, 3, 2), a, b, 3, 2)
    p3 = c2f(conv(c2f(x, b, b, 1, True), b, c, 3, 2), c, c, 2, True)
    p4 = c2f(conv(p3, c, d, 3, 2), d, d, 2, True)
    x = conv(c2f(conv(p4, d, e, 3, 2), e, e, 1, True), e, d)
    pools = [x]
    for _ in range(3):
        pools.append(w.add("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
    p5 = conv(w.add("Concat", *pools, axis=1), 4 * d, e)
    n4 = c2f(w.add("Concat", larger(p5), p4, axis=1), e + d, d, 1, False)
    n3 = c2f(w.add("Concat", larger(n4), p3, axis=1), d + c, c, 1, False)
    n4 = c2f(w.add("Concat", conv(n3, c, c, 3, 2), n4, axis=1), c + d, d, 1, False)
    n5 = c2f(w.add("Concat", conv(n4, d, d, 3, 2), p5, axis=1), d + e, e, 1, False)
    heads = list[str]()
    for x, inner in ((n3, c), (n4, d), (n5, e)):
        box = w.conv(conv(conv(x, inner, 64, 3), 64, 64, 3), 64, 64, 1)
        score = w.conv(conv(conv(x, inner, 64, 3), 64, 64, 3), 64, classes, 1)
        heads.append(w.add("Reshape", w.add("Concat", box, score, axis=1), w.whole(1, 64 + classes, -1)))
    every, cells = w.add("Concat", *heads, axis=2), 21 * (size // 32) ** 2
    boxes, scores = w.add("Split", every, w.whole(64, classes), axis=1, count=2)
    shares = w.add("Transpose", w.add("Reshape", boxes, w.whole(1, 4, 16, cells)), perm=[0, 2, 1, 3])
    bins = w.constant(np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1))
    distances = w.add("Conv", w.add("Softmax", shares, axis=1), bins)
    distances = w.add("Reshape", distances, w.whole(1, 4, cells))
    near, far = w.add("Split", distances, w.whole(2, 2), axis=1, count=2)
    centers = w.weight(1, 2, cells)
    low, high = w.add("Sub", centers, near), w.add("Add", centers, far)
    middle = w.add("Div", w.add("Add", low, high), w.number(2.0))
    found = w.add("Concat", w.add("Concat", middle, w.add("Sub", high, low), axis=1),
                  w.add("Sigmoid", scores), axis=1)  # fmt: skip
    return w.save(path, *(_selected_boxes(w, found, classes) if selects else [found]))


def _selected_boxes(w: ModelWriter, found: str, classes: int) -> list[str]:
    """Add a selection of boxes that do not overlap; return their corners, scores and kinds, and indices."""
    boxes, scores = w.add("Split", found, w.whole(4, classes), axis=1, count=2)
    boxes = w.add("Transpose", boxes, perm=[0, 2, 1])
    limits = w.whole(20), w.number(0.9), w.number(0.5)
    chosen = w.add("NonMaxSuppression", boxes, scores, *limits, center_point_box=1)
    image, kind, box = w.add("Split", chosen, w.whole(1, 1, 1), axis=1, count=3)
    at = w.add("GatherND", boxes, w.add("Concat", image, box, axis=1))
    kinds = w.add("Cast", kind, to=TensorProto.FLOAT)
    rows = w.add("Unsqueeze", w.add("GatherND", scores, chosen), w.whole(1))
    return [w.add("Concat", at, rows, kinds, axis=1), chosen]


def dcgan(path: Path, width: int = 64) -> Path:
    """Write the generator of DCGAN: transposed convolutions."""
    w = ModelWriter()
    x, inner = w.input("z", (1, 100, 1, 1)), 100
    for factor, stride, pad in ((8, 1, 0), (4, 2, 1), (2, 2, 1), (1, 2, 1), (0, 2, 1)):
        outer = factor * width or 3
        x = w.add("ConvTranspose", x, w.weight(inner, outer, 4, 4), strides=[stride] * 2, pads=[pad] * 4)
        x, inner = w.add("Relu" if factor else "Tanh", x), outer
    return w.save(path, x)


def dqn(path: Path, width: int = 32) -> Path:
    """Write the network of DQN for Atari."""
    w = ModelWriter()
    x, inner = w.input("x", (1, 4, 84, 84)), 4
    for outer, size, stride in ((width, 8, 4), (2 * width, 4, 2), (2 * width, 3, 1)):
        x = w.add("Conv", x, w.weight(outer, inner, size, size), w.weight(outer), strides=[stride] * 2)
        x, inner = w.add("Relu", x), outer
    x = w.add("Relu", w.linear(w.add("Flatten", x), 49 * inner, 16 * width))
    return w.save(path, w.linear(x, 16 * width, 18))


def ppocr_detection(path: Path, size: int = 320, width: int = 16) -> Path:
    """Write a detector of text as PP-OCR's: MobileNetV3, a pyramid, and a head of transposed convolutions."""
    w = ModelWriter()
    x, inner = w.add("HardSwish", w.conv(w.input("x", (1, 3, size, size)), 3, width, 3, 2)), width
    levels, neck = list[str](), 6 * width
    for factor, count in ((1, 2), (2, 2), (4, 3), (8, 2)):
        for block in range(count):
            outer, wide, stride = factor * width, 4 * inner, 1 if block else 2
            y = w.add("HardSwish", w.conv(x, inner, wide, 1))
            y = w.add("HardSwish", w.conv(y, wide, wide, 5 if factor > 2 else 3, stride, wide))
            y = w.conv(_excited(w, y, wide, wide // 4, "HardSigmoid", partial(w.add, "Relu")), wide, outer, 1)
            x, inner = w.add("Add", x, y) if inner == outer and stride == 1 else y, outer
        levels.append(w.conv(x, inner, neck, 1))

    def larger(x: str, factor: int) -> str:
        scale = w.constant(np.array([1, 1, factor, factor], np.float32))
        modes: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return w.add("Resize", x, "", scale, mode="nearest", **modes)

    for level in (2, 1, 0):
        levels[level] = w.add("Add", levels[level], larger(levels[level + 1], 2))
    parts = [w.conv(each, neck, neck // 4, 3) for each in levels]
    parts = [parts[0], *(larger(each, 2**i) for i, each in enumerate(parts[1:], 1))]
    x = w.add("Concat", *parts[::-1], axis=1)
    x = w.add("Relu", w.conv(x, neck, neck // 4, 3))
    for inner, outer, act in ((neck // 4, neck // 4, "Relu"), (neck // 4, 1, "Sigmoid")):
        x = w.add("ConvTranspose", x, w.weight(inner, outer, 2, 2), w.weight(outer), strides=[2, 2])
        x = w.add(act, x)
    return w.save(path, x)


def ppocr_recognition(path: Path, length: int = 320, width: int = 32, letters: int = 6625) -> Path:
    """Write a recognizer of text as PP-OCR's: depthwise blocks, two blocks of attention, and scores."""
    w = ModelWriter()
    x, inner = w.add("HardSwish", w.conv(w.input("x", (1, 3, 48, length)), 3, width, 3, 2)), width
    for outer, window, high, wide in ((2, 3, 1, 1), (4, 3, 2, 1), (4, 3, 1, 1), (8, 3, 2, 1), (8, 5, 1, 1),
                                      (8, 5, 1, 1), (12, 5, 2, 2)):  # fmt: skip
        strides, pads, outer = [high, wide], [window // 2] * 4, outer * width
        weights = w.weight(inner, 1, window, window), w.weight(inner)
        x = w.add("HardSwish", w.add("Conv", x, *weights, group=inner, strides=strides, pads=pads))
        x, inner = w.add("HardSwish", w.conv(x, inner, outer, 1)), outer
    x = w.add("AveragePool", x, kernel_shape=[3, 2], strides=[3, 2])
    side, width = x, 4 * width
    x = w.swish(w.conv(w.swish(w.conv(x, inner, inner // 8, 3)), inner // 8, width, 1))
    shape = w.add("Shape", x)
    x = w.add("Transpose", w.add("Flatten", w.add("Squeeze", x, w.whole(0)), axis=1), perm=[1, 0])
    x = w.add("Unsqueeze", x, w.whole(0))
    for _ in range(2):
        x = w.add("Add", x, w.attention(w.layer_norm(x, width), width, 8))
        y = w.swish(w.dense(w.layer_norm(x, width), width, 2 * width))
        x = w.add("Add", x, w.dense(y, 2 * width, width))
    x = w.add("Reshape", w.add("Transpose", w.layer_norm(x, width), perm=[0, 2, 1]), shape)
    x = w.add("Concat", side, w.swish(w.conv(x, width, inner, 1)), axis=1)
    x = w.swish(w.conv(w.swish(w.conv(x, 2 * inner, inner // 8, 3)), inner // 8, width, 1))
    x = w.add("Transpose", w.add("Squeeze", x, w.whole(2)), perm=[0, 2, 1])
    return w.save(path, w.add("Softmax", w.dense(x, width, letters), axis=2))


# Sequences


def vit(path: Path, size: int = 224, layers: int = 12, width: int = 192, heads: int = 3) -> Path:
    """Write a vision transformer, of patches of 16 x 16."""
    w = ModelWriter()
    patches = w.input("x", (1, 3, size, size))
    patches = w.add("Conv", patches, w.weight(width, 3, 16, 16), w.weight(width), strides=[16, 16])
    patches = w.add("Transpose", w.add("Reshape", patches, w.whole(0, 0, -1)), perm=[0, 2, 1])
    x = w.add("Concat", w.weight(1, 1, width), patches, axis=1)
    x = w.add("Add", x, w.weight(1, (size // 16) ** 2 + 1, width))
    for _ in range(layers):
        x = w.add("Add", x, w.attention(w.layer_norm(x, width), width, heads))
        y = w.gelu(w.dense(w.layer_norm(x, width), width, 4 * width))
        x = w.add("Add", x, w.dense(y, 4 * width, width))
    first = w.add("Gather", w.layer_norm(x, width), w.constant(np.array(0, np.int64)), axis=1)
    return w.save(path, w.linear(first, width, 1000))


def bert(path: Path, layers: int = 4, width: int = 256, heads: int = 4, length: int = 128) -> Path:
    """Write an encoder as BERT has, over indices of words; its GELU is exact, by parts."""
    w = ModelWriter()
    ids = w.input("ids", (1, length), TensorProto.INT64)
    words = w.add("Gather", w.weight(1000, width), ids)
    x = w.layer_norm(w.add("Add", words, w.weight(length, width)), width)
    for _ in range(layers):
        x = w.layer_norm(w.add("Add", x, w.attention(x, width, heads)), width)
        h = w.gelu(w.dense(x, width, 4 * width))
        x = w.layer_norm(w.add("Add", x, w.dense(h, 4 * width, width)), width)
    return w.save(path, x)


def bert_masked(path: Path, layers: int = 2, width: int = 128, heads: int = 2, length: int = 64) -> Path:
    """Write BERT with a mask of words, which is an input, and segments."""
    w = ModelWriter()
    ids, mask, segments = (
        w.input(name, (1, length), TensorProto.INT64) for name in ("ids", "mask", "segments")
    )
    x = w.add(
        "Add", w.add("Gather", w.weight(1000, width), ids), w.add("Gather", w.weight(2, width), segments)
    )
    x = w.layer_norm(w.add("Add", x, w.weight(length, width)), width)
    seen = w.add("Cast", w.add("Unsqueeze", mask, w.whole(1, 2)), to=TensorProto.FLOAT)
    bias = w.add("Mul", w.add("Sub", w.number(1), seen), w.number(-1e4))
    for _ in range(layers):
        x = w.layer_norm(w.add("Add", x, w.attention(x, width, heads, bias=bias)), width)
        h = w.gelu(w.dense(x, width, 4 * width))
        x = w.layer_norm(w.add("Add", x, w.dense(h, 4 * width, width)), width)
    first = w.add("Gather", x, w.constant(np.array(0, np.int64)), axis=1)
    return w.save(path, x, w.add("Tanh", w.linear(first, width, width)))


def gpt(
    path: Path, layers: int = 6, width: int = 384, heads: int = 6, length: int = 128, words: int = 4000
) -> Path:
    """Write a decoder as GPT-2 has, with a causal mask and an output tied to its embedding."""
    w = ModelWriter()
    ids = w.input("ids", (1, length), TensorProto.INT64)
    table = w.weight(words, width)
    x = w.add("Add", w.add("Gather", table, ids), w.weight(length, width))
    mask = w.constant(np.triu(np.full((length, length), -1e9, np.float32), 1))
    for _ in range(layers):
        x = w.add("Add", x, w.attention(w.layer_norm(x, width), width, heads, bias=mask))
        h = w.dense(w.layer_norm(x, width), width, 4 * width)
        cube = w.add("Mul", w.add("Pow", h, w.number(3)), w.number(0.044715))
        curve = w.add("Tanh", w.add("Mul", w.add("Add", h, cube), w.number((2 / np.pi) ** 0.5)))
        h = w.add("Mul", w.add("Mul", h, w.number(0.5)), w.add("Add", curve, w.number(1)))
        x = w.add("Add", x, w.dense(h, 4 * width, width))
    head = w.add("Transpose", table, perm=[1, 0])
    return w.save(path, w.add("MatMul", w.layer_norm(x, width), head))


def t5(
    path: Path, layers: int = 4, width: int = 256, heads: int = 4, length: int = 64, words: int = 2000
) -> Path:
    """Write an encoder and a decoder as T5 has: RMS normalization, and biases of positions."""
    w = ModelWriter()
    table = w.weight(words, width)

    def norm(x: str) -> str:
        mean = w.add("ReduceMean", w.add("Pow", x, w.number(2)), axes=[-1])
        root = w.add("Sqrt", w.add("Add", mean, w.number(1e-6)))
        return w.add("Mul", w.positive(width), w.add("Mul", x, w.add("Div", w.number(1), root)))

    def plain(x: str, inner: int, outer: int) -> str:
        return w.add("MatMul", x, w.weight(inner, outer))

    def forward(x: str) -> str:
        return w.add("Add", x, plain(w.add("Relu", plain(norm(x), width, 4 * width)), 4 * width, width))

    x = w.add("Gather", table, w.input("ids", (1, length), TensorProto.INT64))
    bias = w.weight(1, heads, length, length)
    for _ in range(layers):
        x = forward(w.add("Add", x, w.attention(norm(x), width, heads, bias=bias)))
    memory = norm(x)
    y = w.add("Gather", table, w.input("decoder_ids", (1, length // 2), TensorProto.INT64))
    causal = w.constant(np.triu(np.full((length // 2, length // 2), -1e9, np.float32), 1))
    bias = w.add("Add", w.weight(1, heads, length // 2, length // 2), causal)
    for _ in range(layers):
        y = w.add("Add", y, w.attention(norm(y), width, heads, bias=bias))
        y = forward(w.add("Add", y, w.attention(norm(y), width, heads, source=memory)))
    head = w.add("Transpose", table, perm=[1, 0])
    return w.save(path, w.add("MatMul", w.add("Mul", norm(y), w.number(width**-0.5)), head))


def conformer(
    path: Path, layers: int = 4, width: int = 144, heads: int = 4, length: int = 256, bands: int = 80
) -> Path:
    """Write an encoder of speech as Conformer has."""
    w = ModelWriter()
    x, half = w.input("x", (1, 1, length, bands)), w.number(0.5)
    for inner in (1, width):
        weights = w.weight(width, inner, 3, 3), w.weight(width)
        x = w.add("Relu", w.add("Conv", x, *weights, strides=[2, 2], pads=[1, 1, 1, 1]))
    steps, high = -(-length // 4), -(-bands // 4)
    x = w.add("Reshape", w.add("Transpose", x, perm=[0, 2, 1, 3]), w.whole(1, steps, width * high))
    x = w.dense(x, width * high, width)

    def forward(x: str) -> str:
        y = w.dense(w.swish(w.dense(w.layer_norm(x, width), width, 4 * width)), 4 * width, width)
        return w.add("Add", x, w.add("Mul", y, half))

    def convolved(x: str) -> str:
        y = w.add("Transpose", w.layer_norm(x, width), perm=[0, 2, 1])
        y = w.add("Conv", y, w.weight(2 * width, width, 1), w.weight(2 * width))
        value, gate = w.add("Split", y, w.whole(width, width), axis=1, count=2)
        y = w.add("Mul", value, w.add("Sigmoid", gate))
        y = w.add("Conv", y, w.weight(width, 1, 31), w.weight(width), group=width, pads=[15, 15])
        y = w.swish(w.batch_norm(y, width))
        y = w.add("Conv", y, w.weight(width, width, 1), w.weight(width))
        return w.add("Add", x, w.add("Transpose", y, perm=[0, 2, 1]))

    for _ in range(layers):
        x = forward(x)
        x = w.add("Add", x, w.attention(w.layer_norm(x, width), width, heads))
        x = w.layer_norm(forward(convolved(x)), width)
    return w.save(path, x)


def recurrent(
    path: Path,
    operator: str = "LSTM",
    steps: int = 64,
    inner: int = 128,
    hidden: int = 128,
    layers: int = 2,
    direction: str = "forward",
) -> Path:
    """Write layers of LSTM, GRU or RNN, and scores of the last step."""
    w = ModelWriter()
    x, size = w.input("x", (steps, 1, inner)), inner
    for _ in range(layers):
        y = w.recurrent(operator, x, size, hidden, direction)[0]
        size = hidden * (2 if direction == "bidirectional" else 1)
        x = w.add("Reshape", w.add("Transpose", y, perm=[0, 2, 1, 3]), w.whole(0, 0, -1))
    last = w.add("Gather", x, w.constant(np.array(-1, np.int64)), axis=0)
    return w.save(path, w.linear(last, size, 10))


def dlrm(path: Path, tables: int = 26, rows: int = 1000, width: int = 64, batch: int = 16) -> Path:
    """Write DLRM: embeddings, their products with each other, and two stacks of layers."""
    w = ModelWriter()
    x = w.input("dense", (batch, 13))
    ids = w.input("ids", (batch, tables), TensorProto.INT64)
    for inner, outer in ((13, 512), (512, 256), (256, width)):
        x = w.add("Relu", w.linear(x, inner, outer))
    rows_of = [
        w.add("Gather", w.weight(rows, width), w.add("Gather", ids, w.whole(i), axis=1))
        for i in range(tables)
    ]
    every = w.add("Concat", w.add("Unsqueeze", x, w.whole(1)), *rows_of, axis=1)
    products = w.add("MatMul", every, w.add("Transpose", every, perm=[0, 2, 1]))
    first, second = np.tril_indices(tables + 1, -1)
    flat = w.add("Reshape", products, w.whole(batch, -1))
    pairs = w.add("Gather", flat, w.constant(first * (tables + 1) + second), axis=1)
    x, inner = w.add("Concat", x, pairs, axis=1), width + len(first)
    for outer in (512, 256):
        x, inner = w.add("Relu", w.linear(x, inner, outer)), outer
    return w.save(path, w.add("Sigmoid", w.linear(x, inner, 1)))


def silero(path: Path, samples: int = 576, hidden: int = 128) -> Path:
    """Write a voice detector as Silero VAD is built: a Fourier transform as a convolution, LSTM, a state."""
    w, bins = ModelWriter(), 129
    x = w.input("x", (1, samples))
    state = w.input("state", (2, 1, hidden))
    x = w.add("Unsqueeze", w.add("Pad", x, w.whole(0, 0, 0, 64), mode="reflect"), w.whole(1))
    x = w.add("Conv", x, w.weight(2 * bins, 1, 256), strides=[128])
    real, imaginary = w.add("Split", x, w.whole(bins, bins), axis=1, count=2)
    x = w.add("Sqrt", w.add("Add", *(w.add("Pow", each, w.number(2)) for each in (real, imaginary))))
    for inner, outer, stride in ((bins, hidden, 1), (hidden, 64, 2), (64, 64, 2), (64, hidden, 1)):
        weights = w.weight(outer, inner, 3), w.weight(outer)
        x = w.add("Relu", w.add("Conv", x, *weights, strides=[stride], pads=[1, 1]))
    x = w.add("Transpose", x, perm=[2, 0, 1])
    h, c = (w.add("Gather", state, w.whole(i), axis=0) for i in range(2))
    gates = [w.weight(1, 4 * hidden, hidden), w.weight(1, 4 * hidden, hidden), w.weight(1, 8 * hidden)]
    y, h, c = w.add("LSTM", x, *gates, "", h, c, count=3, hidden_size=hidden)
    y = w.add("Transpose", w.add("Squeeze", y, w.whole(1)), perm=[1, 2, 0])
    y = w.add("Conv", w.add("Relu", y), w.weight(1, hidden, 1), w.weight(1))
    found = w.add("ReduceMean", w.add("Squeeze", w.add("Sigmoid", y), w.whole(1)), axes=[1])
    return w.save(path, found, w.add("Concat", h, c, axis=0))


def magika(path: Path, length: int = 2048, width: int = 64, kinds: int = 214) -> Path:
    """Write a classifier of files as Magika is built: bytes, groups of them, a convolution, a maximum."""
    w = ModelWriter()
    ids = w.input("bytes", (1, length), TensorProto.INT32)
    ids = w.add("Cast", ids, to=TensorProto.INT64)
    x = w.add("OneHot", ids, w.whole(257), w.constant(np.array([0, 1], np.float32)), axis=-1)
    x = w.gelu(w.dense(x, 257, width))
    x = w.add("Reshape", x, w.whole(1, length // 4, 4 * width))
    x = w.add("Transpose", w.layer_norm(x, 4 * width), perm=[0, 2, 1])
    x = w.gelu(w.add("Conv", x, w.weight(4 * width, 4 * width, 5), w.weight(4 * width), pads=[2, 2]))
    x = w.layer_norm(w.add("ReduceMax", x, axes=[2], keepdims=0), 4 * width)
    return w.save(path, w.add("Softmax", w.dense(x, 4 * width, kinds), axis=-1))


def wav2vec(
    path: Path, samples: int = 16000, layers: int = 4, width: int = 256, heads: int = 4, filters: int = 256
) -> Path:
    """Write an encoder of speech as wav2vec 2.0 is built, smaller: convolutions of samples, and attention."""
    w = ModelWriter()
    x, inner, length = w.add("Unsqueeze", w.input("x", (1, samples)), w.whole(1)), 1, samples
    for index, (window, stride) in enumerate(((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))):
        x = w.add("Conv", x, w.weight(filters, inner, window), strides=[stride])
        x = w.add("InstanceNormalization", x, w.positive(filters), w.weight(filters)) if not index else x
        x, inner, length = w.gelu(x), filters, (length - window) // stride + 1
    x = w.dense(w.layer_norm(w.add("Transpose", x, perm=[0, 2, 1]), filters), filters, width)
    weights = w.weight(width, width // 16, 128), w.weight(width)
    y = w.add("Conv", w.add("Transpose", x, perm=[0, 2, 1]), *weights, pads=[64, 64], group=16)
    y = w.gelu(w.add("Slice", y, w.whole(0), w.whole(-1), w.whole(2)))
    x = w.layer_norm(w.add("Add", x, w.add("Transpose", y, perm=[0, 2, 1])), width)
    for _ in range(layers):
        x = w.layer_norm(w.add("Add", x, w.attention(x, width, heads)), width)
        y = w.dense(w.gelu(w.dense(x, width, 4 * width)), 4 * width, width)
        x = w.layer_norm(w.add("Add", x, y), width)
    return w.save(path, w.dense(x, width, 32))


NETWORKS: Mapping[str, Callable[[Path], Path]] = {
    "resnet18": resnet18,
    "resnet50": resnet50,
    "vgg16": vgg16,
    "mobilenet-v1": mobilenet_v1,
    "mobilenet-v2": mobilenet,
    "mobilenet-v3": mobilenet_v3,
    "efficientnet": efficientnet,
    "densenet": densenet,
    "unet": unet,
    "unet-linear": partial(unet, linear=True),
    "yolo": yolo,
    "dcgan": dcgan,
    "dqn": dqn,
    "ppocr-detection": ppocr_detection,
    "ppocr-recognition": ppocr_recognition,
    "vit": vit,
    "bert": bert,
    "bert-masked": bert_masked,
    "gpt": gpt,
    "t5": t5,
    "conformer": conformer,
    "lstm": recurrent,
    "gru": partial(recurrent, operator="GRU"),
    "lstm-bidirectional": partial(recurrent, direction="bidirectional"),
    "dlrm": dlrm,
    "silero": silero,
    "magika": magika,
    "wav2vec": wav2vec,
}
"""Name of a network to what writes its model at its usual size."""


def main() -> None:
    """Write the models into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/networks"))
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), help="all by default")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.networks:
        path = NETWORKS[name](options.folder / f"{name}.onnx")
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
