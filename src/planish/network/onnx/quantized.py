"""Rewriting of operators on quantized tensors as those on floats, between dequantization and quantization.

So they are computed in float32, and rounded as ONNX says. ONNX Runtime's answers may differ by a step where a
number is halfway between two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.network.onnx.translator import attributes_of

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_FLOAT, _INT8, _INT32 = 1, 3, 6
"""Element types of ONNX."""


def write_as_floats(model: ModelProto) -> ModelProto:
    """Return a model without operators on quantized tensors."""
    if not any(node.op_type in _REWRITES for node in model.graph.node):
        return model
    made = deepcopy(model)
    del made.graph.node[:]
    for node in model.graph.node:
        rewrite = _REWRITES.get(node.op_type)
        made.graph.node.extend([node] if rewrite is None else rewrite(_Writer(node)))
    return made


def without_rounding(model: ModelProto) -> ModelProto | None:
    """Return a model that quantizes without rounding, only to limits; None of one that does not quantize."""
    from onnx import helper, numpy_helper
    from onnx.inliner import inline_selected_functions

    if not any(node.op_type in QUANTIZED for node in model.graph.node):
        return None
    expanded = inline_selected_functions(
        write_as_floats(model), [("", "DynamicQuantizeLinear")], inline_schema_functions=True
    )
    made = deepcopy(expanded)
    del made.graph.node[:], made.graph.value_info[:]
    signed = {each.name for each in made.graph.initializer if each.data_type == _INT8}
    codes = set[str]()
    for node in expanded.graph.node:
        w = _Writer(node, "unrounded")
        if node.op_type == "QuantizeLinear":
            low, high = (-128, 127) if w.has(2) and w.inputs[2] in signed else (0, 255)
            limits = [f"{node.output[0]} limit {n}" for n in (low, high)]
            for name, limit in zip(limits, (low, high), strict=True):
                made.graph.initializer.append(numpy_helper.from_array(np.array(limit, np.float32), name))
            share = w.add("Div", w.inputs[0], w.inputs[1])
            moved = w.add("Add", share, w.add("Cast", w.inputs[2], to=_FLOAT)) if w.has(2) else share
            w.add("Clip", moved, *limits, output=node.output[0])
            codes.add(node.output[0])
        elif node.op_type == "DequantizeLinear" and w.inputs[0] in codes:
            w.add("Mul", w.shifted(0, 2), w.inputs[1], output=node.output[0])
        else:
            w.made = [node]
            codes |= set(node.output) if w.inputs and w.inputs[0] in codes else set()
        made.graph.node.extend(w.made)
    for port in (each for each in made.graph.output if each.name in codes):
        port.CopyFrom(helper.make_tensor_value_info(port.name, _FLOAT, None))
    return made


class _Writer:
    """Writes the nodes that replace one; each method returns the name of a result.

    Args:
        node: that is replaced.
        part: what the results are called, after the name of the node's.
    """

    def __init__(self, node: NodeProto, part: str = "step") -> None:
        self.node, self.inputs, self.part = node, list(node.input), part
        self.attributes = attributes_of(node)
        self.made: list[Any] = []

    def has(self, index: int) -> bool:
        """Return whether an optional input is there."""
        return index < len(self.inputs) and bool(self.inputs[index])

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node."""
        from onnx import helper

        name = output or f"{self.node.output[0]} {self.part} {len(self.made)}"
        label = f"{self.node.name or self.node.output[0]} {self.part} {len(self.made)} {operator}"
        self.made.append(helper.make_node(operator, list(inputs), [name], label, **attributes))
        return name

    def floats(self, index: int, axis: int = 1) -> str:
        """Return the numbers of a tensor, which its scale and its zero point follow."""
        return self.add("DequantizeLinear", *self.inputs[index : index + 3], axis=axis)

    def quantized(self, name: str, index: int) -> Iterator[NodeProto]:
        """Quantize the result by the scale and the zero point at an index; return all nodes."""
        scale = [each for each in self.inputs[index : index + 2] if each]
        self.add("QuantizeLinear", name, *scale, output=self.node.output[0])
        yield from self.made

    def shifted(self, index: int, zero: int) -> str:
        """Return whole numbers as floats, less their zero point."""
        value = self.add("Cast", self.inputs[index], to=_FLOAT)
        if not self.has(zero):
            return value
        return self.add("Sub", value, self.add("Cast", self.inputs[zero], to=_FLOAT))


def _bias(w: _Writer, index: int) -> list[str]:
    """Return the bias of a product, whose scale is that of the products."""
    if not w.has(index):
        return []
    scale = w.add("Mul", w.inputs[1], w.inputs[4])
    return [w.add("Mul", w.add("Cast", w.inputs[index], to=_FLOAT), scale)]


def _convolution(w: _Writer) -> Iterator[NodeProto]:
    x, weights = w.floats(0), w.floats(3, axis=0)
    return w.quantized(w.add("Conv", x, weights, *_bias(w, 8), **w.attributes), 6)


def _product(w: _Writer) -> Iterator[NodeProto]:
    return w.quantized(w.add("MatMul", w.floats(0, axis=-2), w.floats(3, axis=-1)), 6)


def _gemm(w: _Writer) -> Iterator[NodeProto]:
    axis = 0 if w.attributes.get("transB") else 1
    a, b = w.floats(0), w.floats(3, axis=axis)
    found = w.add("Gemm", a, b, *_bias(w, 6), **w.attributes)
    if w.has(7):
        return w.quantized(found, 7)
    w.made[-1].output[0] = w.node.output[0]
    return iter(w.made)


def _integers(w: _Writer, operator: str) -> Iterator[NodeProto]:
    found = w.add(operator, w.shifted(0, 2), w.shifted(1, 3), **w.attributes)
    w.add("Cast", w.add("Round", found), output=w.node.output[0], to=_INT32)
    yield from w.made


def _product_to_floats(w: _Writer) -> Iterator[NodeProto]:
    """Rewrite MatMulIntegerToFloat: A, B, their scales, their zero points, and a bias."""
    a, b = w.add("Mul", w.shifted(0, 4), w.inputs[2]), w.add("Mul", w.shifted(1, 5), w.inputs[3])
    found = w.add("MatMul", a, b)
    found = w.add("Add", found, w.inputs[6]) if w.has(6) else found
    w.made[-1].output[0] = w.node.output[0]
    yield from w.made


def _of_two(w: _Writer, operator: str) -> Iterator[NodeProto]:
    return w.quantized(w.add(operator, w.floats(0), w.floats(3)), 6)


def _of_one(w: _Writer, operator: str) -> Iterator[NodeProto]:
    left_out = ("channels_last", "opset")
    attributes = {key: value for key, value in w.attributes.items() if key not in left_out}
    return w.quantized(w.add(operator, w.floats(0), **attributes), 3)


def _concatenation(w: _Writer) -> Iterator[NodeProto]:
    parts = [w.floats(index) for index in range(2, len(w.inputs), 3)]
    return w.quantized(w.add("Concat", *parts, **w.attributes), 0)


_REWRITES: Mapping[str, Callable[[_Writer], Iterator[NodeProto]]] = {
    "ConvInteger": partial(_integers, operator="Conv"),
    "MatMulInteger": partial(_integers, operator="MatMul"),
    "MatMulIntegerToFloat": _product_to_floats,
    "QGemm": _gemm,
    "QLinearAdd": partial(_of_two, operator="Add"),
    "QLinearAveragePool": partial(_of_one, operator="AveragePool"),
    "QLinearConcat": _concatenation,
    "QLinearConv": _convolution,
    "QLinearGlobalAveragePool": partial(_of_one, operator="GlobalAveragePool"),
    "QLinearLeakyRelu": partial(_of_one, operator="LeakyRelu"),
    "QLinearMatMul": _product,
    "QLinearMul": partial(_of_two, operator="Mul"),
    "QLinearSigmoid": partial(_of_one, operator="Sigmoid"),
    "QLinearSoftmax": partial(_of_one, operator="Softmax"),
}
"""Operators of ONNX, and of ONNX Runtime's own domain."""
QUANTIZED: Sequence[str] = ("DynamicQuantizeLinear", "QuantizeLinear", *_REWRITES)
"""Operators that round to steps."""
