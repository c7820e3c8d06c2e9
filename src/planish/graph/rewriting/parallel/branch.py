"""One of several nodes that read the same value, as the passes that join them see it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto


@dataclass(frozen=True)
class Branch:
    """A node that may be joined with those of the same key.

    Args:
        node: reads one value and constants.
        key: what joined nodes have in common: the value, the attributes, types, and whether there is a bias.
        joined: place of a constant input to the axis along which it is joined with the others'.
        axis: of the result, along which it is cut again.
        width: the result's extent there.
        bias: whether an addition of constants of one dimension, right after it, may be joined too.
    """

    node: NodeProto
    key: Hashable
    joined: Mapping[int, int]
    axis: int
    width: int
    bias: bool = False


Describe = Callable[["NodeProto", Mapping[str, "TensorProto"], int], Branch | None]
"""Tells of a node, the model's constants and its opset whether it may be joined; None where it may not."""


def attributes(node: NodeProto) -> dict[str, Any]:
    """Give a node's attributes: name to value."""
    from onnx import helper

    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def is_standard(node: NodeProto, *operators: str) -> bool:
    """Whether a node is one of ONNX's own operators."""
    return node.op_type in operators and node.domain in ("", "ai.onnx")
