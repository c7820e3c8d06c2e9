"""Which convolutions may be joined: those that read one value in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from planish.graph.rewriting.parallel.branch import Branch, attributes, is_standard

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

_CHANNELS = 1


def convolution(node: NodeProto, constants: Mapping[str, TensorProto], opset: int) -> Branch | None:
    """Describe a convolution that may be joined with others along its output channels.

    Kernel sizes, strides, dilations and paddings have to be the same, and all of them have a bias, or none.
    Grouped convolutions are left alone: more output channels would belong to other groups. So are quantised
    ones, whose weights come with scales.
    """
    del opset
    named = attributes(node)
    weights = [constants.get(name) for name in node.input[1:]]
    known = [each for each in weights if each is not None]
    if not is_standard(node, "Conv") or named.get("group", 1) != 1 or len(known) < len(weights):
        return None
    filters, *rest = known
    kernel, sides = tuple(filters.dims[2:]), len(filters.dims) - 2
    window = (
        kernel,
        tuple(named.get("strides", [1] * sides)),
        tuple(named.get("dilations", [1] * sides)),
        tuple(named.get("pads", [0] * 2 * sides)),
        named.get("auto_pad", b"NOTSET"),
    )
    key = (node.input[0], window, tuple(filters.dims[1:2]), filters.data_type, len(rest))
    return Branch(node, key, dict.fromkeys(range(1, 1 + len(weights)), 0), _CHANNELS, filters.dims[0])
