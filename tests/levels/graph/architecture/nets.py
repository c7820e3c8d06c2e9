"""The small models of tests/levels/graph/small, and small graphs made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

SMALL = Path(__file__).parents[1] / "small"

EXPECTED = {
    "resnet50": ("resnet",),
    "mobilenetv2": ("mobilenet",),
    "ssd-resnet50": ("ssd", "resnet"),
    "bert-4x256": ("bert",),
    "gpt": ("gpt",),
    "lstm": ("recurrent",),
    "gru": ("recurrent",),
    "unet": ("unet",),
    "vgg16": ("plain",),
    "cnn": ("plain",),
    "vit": ("vit",),
    "efficientnet": ("efficientnet",),
    "yolo": ("yolo",),
    "conformer": ("conformer",),
    "t5": ("t5",),
    "dlrm": ("recommender",),
    "gnn": ("graph",),
}
CASES = [(name, exporter) for name in EXPECTED for exporter in ("torchscript", "dynamo-raw")]


def small_model(name: str, exporter: str = "torchscript") -> ModelProto:
    """Read one of the committed models."""
    return onnx.load(SMALL / f"{name}-small-{exporter}.onnx")


def renamed(model: ModelProto) -> ModelProto:
    """Rename every value and node."""
    names: dict[str, str] = {"": ""}
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    graph.name = "g"
    for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        value.name = names.setdefault(value.name, f"v{len(names)}")
    for index, node in enumerate(graph.node):
        node.name = f"n{index}"
        for values in (node.input, node.output):
            fresh = [names.setdefault(name, f"v{len(names)}") for name in values]
            del values[:]
            values.extend(fresh)
    return copy


class Sketch:
    """A graph made step by step; each method gives the name of its result."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._weights: list[TensorProto] = []

    def op(self, name: str, *inputs: str, **attributes: Any) -> str:
        """Add a node."""
        result = f"r{len(self._nodes)}"
        self._nodes.append(helper.make_node(name, inputs, [result], **attributes))
        return result

    def weight(self, shape: Sequence[int], values: NDArray[Any] | None = None) -> str:
        """Add a weight, of zeros where no values are given."""
        name = f"w{len(self._weights)}"
        array = np.zeros(shape, np.float32) if values is None else values
        self._weights.append(numpy_helper.from_array(array, name))
        return name

    def conv(
        self, x: str, inputs: int, outputs: int, kernel: int = 3, group: int = 1, stride: int = 1
    ) -> str:
        """Add a padded convolution."""
        filters = self.weight((outputs, inputs // group, kernel, kernel))
        pads, strides = [kernel // 2] * 4, [stride] * 2
        return self.op("Conv", x, filters, group=group, pads=pads, strides=strides, kernel_shape=[kernel] * 2)

    def model(self, *outputs: str, inputs: Sequence[str] = ("x",)) -> ModelProto:
        """Finish it."""
        given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in inputs]
        wanted = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        return helper.make_model(helper.make_graph(self._nodes, "g", given, wanted, self._weights))
