"""Translator of ONNX's nodes into those of a network.

Truth values and numbers of float16 and float64 are stored as float32. Operators over floats become kernels
of `loops`, where these can compute them. All others, and those of integers, become Python kernels: a node
whose operator also exists for floats then has the element type in its name, as in `Add int64`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.network.ir import VIEW, Array, Node, Shape, TensorType
from planish.network.operators.elementwise import POWERS

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

FLOAT = "float32"


_AS_FLOATS = (FLOAT, "float16", "float64", "bool")


_VARIADIC = ("Max", "Min", "Sum")


CONTRIBUTED = (
    "Gelu", "FastGelu", "QuickGelu", "BiasGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
)  # fmt: skip
"""Operators of ONNX Runtime's own domain that are covered."""


def stored(dtype: str) -> str:
    """Return the type in which tensors of a type are stored."""
    return FLOAT if dtype in _AS_FLOATS else dtype


def tensor_types(graph: GraphProto) -> Iterator[tuple[str, TensorType]]:
    """Return the types of a graph's tensors whose shapes are known."""
    from onnx.helper import tensor_dtype_to_np_dtype

    for info in (*graph.input, *graph.value_info, *graph.output):
        tensor = info.type.tensor_type
        dims = tensor.shape.dim
        if tensor.elem_type and tensor.HasField("shape") and all(d.HasField("dim_value") for d in dims):
            dtype = tensor_dtype_to_np_dtype(tensor.elem_type).name
            yield info.name, TensorType(tuple(d.dim_value for d in dims), dtype)


def type_of(tensor: TensorProto) -> TensorType:
    """Return the type of a constant."""
    from onnx.helper import tensor_dtype_to_np_dtype

    return TensorType(tuple(tensor.dims), tensor_dtype_to_np_dtype(tensor.data_type).name)


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """Return the attributes of a node by name."""
    from onnx import helper

    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


class Translator:
    """Translates nodes, and keeps the types of all tensors, and the values of the constant ones.

    Args:
        types: by name, as tensors are stored.
        constants: values by name, likewise.
        truths: tensors of truth values.
        has_integers: whether an operator has a kernel for integers, beside the one for floats.
    """

    def __init__(
        self,
        types: dict[str, TensorType],
        constants: dict[str, Array],
        truths: set[str],
        has_integers: Callable[[str], bool],
    ) -> None:
        self.types, self.constants, self.truths, self.has_integers = types, constants, truths, has_integers

    def shape(self, name: str) -> Shape:
        """Return a tensor's shape."""
        return self.types[name].shape

    def is_float(self, *names: str) -> bool:
        """Return whether all tensors are stored as floats."""
        return all(self.types[name].dtype == FLOAT for name in names if name)

    def constant(self, name: str, array: Array) -> str:
        """Add a constant."""
        self.constants[name] = np.ascontiguousarray(array).reshape(array.shape)
        self.types[name] = TensorType(array.shape, array.dtype.name)
        return name

    def numbers(self, node: Node, index: int) -> list[int] | None:
        """Return the whole numbers of a constant input; None where it is left out.

        Raises:
            ProgramError: it is computed.
        """
        if not node.has(index):
            return None
        found = self.constants.get(node.inputs[index])
        if found is None:
            raise node.refuse(f"input {index} is computed, which is not covered")
        return [int(n) for n in np.atleast_1d(found)]

    def step(
        self,
        node: Node,
        operator: str,
        inputs: Sequence[str],
        shape: Shape,
        suffix: str = "",
        **attributes: Any,
    ) -> Node:
        """Make a node of a part of an operator.

        Args:
            node: of ONNX.
            operator: of the part.
            inputs: of the part.
            shape: of its result.
            suffix: of the name of its result; empty for that of the node.
            attributes: of the part.
        """
        name = f"{node.output} {suffix}" if suffix else node.output
        if suffix:
            self.types[name] = TensorType(shape, self.types[inputs[0]].dtype)
        return Node(operator, node.name, tuple(inputs), name, attributes)

    def typed(self, node: Node) -> Iterator[Node]:
        """Return an operator for the types of its operands."""
        if node.operator in _REDUCED or (node.operator == "Pow" and self.is_float(node.inputs[0])):
            # The axes are whole numbers, and an exponent may be.
            node = self._with_floats(node) if node.operator == "Pow" else node
            data = (node.inputs[0],)
        else:
            data = node.inputs
        if self.is_float(*data, node.output):
            if node.operator == "Pow" and not (self.is_float(node.inputs[1]) and self._known_power(node)):
                yield Node("Power", node.name, node.inputs, node.output)
            else:
                yield node
            return
        if node.operator in _VARIADIC and len(node.inputs) != 2:
            yield from self._chain(node)
            return
        kinds = [self.types[name].dtype for name in (*data, node.output) if name]
        kind = next(kind for kind in kinds if kind != FLOAT)
        name = f"{node.operator} {kind}" if self.has_integers(node.operator) else node.operator
        yield Node(name, node.name, node.inputs, node.output, node.attributes)

    def _with_floats(self, node: Node) -> Node:
        exponent = self.constants.get(node.inputs[1])
        if exponent is None or exponent.dtype == FLOAT:
            return node
        name = self.constant(f"{node.output} exponent", np.asarray(exponent, np.float32))
        return Node(node.operator, node.name, (node.inputs[0], name), node.output)

    def _known_power(self, node: Node) -> bool:
        found = self.constants.get(node.inputs[1])
        return found is not None and found.size == 1 and float(found.reshape(())) in POWERS

    def _chain(self, node: Node) -> Iterator[Node]:
        """Apply an operator to two operands after the other."""
        last = node.inputs[0]
        if len(node.inputs) == 1:
            yield Node(VIEW, node.name, node.inputs, node.output)
        for index, name in enumerate(node.inputs[1:], 1):
            end = index == len(node.inputs) - 1
            shape = np.broadcast_shapes(self.shape(last), self.shape(name))
            made = self.step(node, node.operator, (last, name), shape, "" if end else f"part {index}")
            yield from self.typed(made)
            last = made.output


Rule = Callable[[Translator, Node, Sequence[str]], Iterator[Node]]


_REDUCED = ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceMean", "ReduceL1", "ReduceSumSquare")
