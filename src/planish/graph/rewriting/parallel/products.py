"""Which dense layers may be joined: products of one value with matrices of constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from planish.graph.rewriting.parallel.branch import Branch, attributes, is_standard

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

_NEGATIVE_AXES = 11
"""The first opset whose Split counts axes from the end."""


def product(node: NodeProto, constants: Mapping[str, TensorProto], opset: int) -> Branch | None:
    """Describe a product that may be joined with others along its columns.

    A bias is joined where each has one of its own columns' length; products of quantised numbers are other
    operators, and are left alone.
    """
    weights = constants.get(node.input[1]) if len(node.input) > 1 else None
    if weights is None or len(weights.dims) != 2:
        return None
    if is_standard(node, "MatMul") and opset >= _NEGATIVE_AXES:
        key = (node.input[0], "MatMul", weights.dims[0], weights.data_type)
        return Branch(node, key, {1: 1}, -1, weights.dims[1], bias=True)
    return _gemm(node, weights, constants) if is_standard(node, "Gemm") else None


def _gemm(node: NodeProto, weights: TensorProto, constants: Mapping[str, TensorProto]) -> Branch | None:
    named = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0} | attributes(node)
    columns = 0 if named["transB"] else 1
    key = (node.input[0], "Gemm", weights.dims[1 - columns], weights.data_type, *sorted(named.items()))
    width = weights.dims[columns]
    if len(node.input) < 3 or not node.input[2]:
        return Branch(node, (*key, 0), {1: columns}, 1, width)
    bias = constants.get(node.input[2])
    if bias is None or not bias.dims or bias.dims[-1] != width or max(bias.dims[:-1], default=1) > 1:
        return None
    return Branch(node, (*key, len(bias.dims)), {1: columns, 2: len(bias.dims) - 1}, 1, width)
