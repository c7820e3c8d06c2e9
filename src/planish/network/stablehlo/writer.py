"""Writer of an ONNX graph, in which transpositions and broadcasts wait until an operator needs them.

JAX stores images with their channels last, and broadcasts before each element-wise operation. ONNX has the
channels second, and broadcasts by itself. Therefore a value of a module may be a tensor whose dimensions
are in another order, and which has one element along those that it is broadcast along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.network.ir import Array, Shape

if TYPE_CHECKING:
    from onnx import NodeProto


_NUMBERS: Mapping[str, Callable[..., Any]] = {
    "Add": np.add, "And": np.logical_and, "Equal": np.equal, "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal, "Less": np.less, "LessOrEqual": np.less_equal, "Max": np.maximum,
    "Min": np.minimum, "Mul": np.multiply, "Not": np.logical_not, "Or": np.logical_or, "Sub": np.subtract,
    "Where": np.where,
}  # fmt: skip
"""Operators that are computed where all operands are constant numbers, such as the counters of loops."""


@dataclass(frozen=True)
class Tensor:
    """A value of a module.

    Args:
        name: of the tensor in ONNX.
        shape: of the value.
        dtype: NumPy's name.
        order: the value's dimensions, in the order of the tensor's.
        extents: of the tensor, in its own order; 1 where it is broadcast.
    """

    name: str
    shape: Shape
    dtype: str
    order: Shape
    extents: Shape

    def axis(self, dimension: int) -> int:
        """Return which dimension of the tensor is one of the value."""
        return self.order.index(dimension)

    def full_extents(self) -> Shape:
        """Return the extents of the tensor once it is broadcast."""
        return tuple(self.shape[d] for d in self.order)


class GraphWriter:
    """Writes nodes and weights of an ONNX graph.

    Attributes:
        nodes: so far.
        weights: constants by name.
        joined: tensors that are joined of others: along which of their dimensions, and the parts with their
            extents.
        layer: name of the part of the module that is translated.
    """

    def __init__(self) -> None:
        self.nodes = list["NodeProto"]()
        self.weights = dict[str, Array]()
        self.joined = dict[str, tuple[int, Sequence[tuple[str, int]]]]()
        self.layer = ""

    def emit(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node; return its output."""
        return self.emit_several(operator, inputs, 1, **attributes)[0]

    def emit_several(self, operator: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        """Add a node; return its outputs."""
        from onnx import helper

        number = len(self.nodes)
        names = [f"%{number}.{index}" for index in range(count)]
        label = f"{self.layer or operator.lower()}_{number}"
        self.nodes.append(helper.make_node(operator, list(inputs), names, name=label, **attributes))
        return names

    def weight(self, array: Array) -> str:
        """Add a constant; return its name."""
        name = f"%w{len(self.weights)}"
        self.weights[name] = np.ascontiguousarray(array).reshape(array.shape)
        return name

    def whole_numbers(self, numbers: Sequence[int]) -> str:
        """Add a constant of whole numbers."""
        return self.weight(np.array(numbers, np.int64))

    def plain(self, name: str, shape: Shape, dtype: str) -> Tensor:
        """Return a tensor as a value of the same dimensions."""
        return Tensor(name, shape, dtype, tuple(range(len(shape))), shape)

    def constant(self, array: Array) -> Tensor:
        """Add a constant; return it as a value."""
        return self.plain(self.weight(array), array.shape, array.dtype.name)

    def known(self, tensor: Tensor) -> Array | None:
        """Return a value that is constant; None for any other."""
        found = self.weights.get(tensor.name)
        if found is None:
            return None
        places = [tensor.axis(d) for d in range(len(tensor.shape))]
        return np.broadcast_to(found.transpose(places), tensor.shape)

    def known_scalar(self, tensor: Tensor) -> float | None:
        """Return the number that all elements of a constant are; None for any other value."""
        found = self.weights.get(tensor.name)
        return found.reshape(-1)[0].item() if found is not None and found.size == 1 else None

    def reshape(self, name: str, extents: Shape) -> str:
        """Reshape a tensor; the name of a constant's becomes that of another constant."""
        if name in self.weights:
            return self.weight(self.weights[name].reshape(extents))
        return self.emit("Reshape", [name, self.whole_numbers(extents)])

    def ordered(self, tensor: Tensor, order: Shape) -> Tensor:
        """Return a value as a tensor whose dimensions are in some order."""
        if tensor.order == order:
            return tensor
        extents = tuple(tensor.extents[tensor.axis(d)] for d in order)
        moved = [tensor.axis(d) for d in order]
        if [d for d in tensor.order if tensor.extents[tensor.axis(d)] != 1] == [
            d for d, extent in zip(order, extents, strict=True) if extent != 1
        ]:
            name = self.reshape(tensor.name, extents)
        elif tensor.name in self.weights:
            name = self.weight(self.weights[tensor.name].transpose(moved))
        else:
            name = self.emit("Transpose", [tensor.name], perm=moved)
        return replace(tensor, name=name, order=order, extents=extents)

    def dense(self, tensor: Tensor, order: Shape | None = None) -> str:
        """Return the name of a tensor that holds a value's elements, broadcast, in some order.

        Args:
            tensor: the value.
            order: of its dimensions; as the value has them by default.
        """
        made = self.ordered(tensor, tuple(range(len(tensor.shape))) if order is None else order)
        full = made.full_extents()
        if made.extents == full:
            return made.name
        return self.emit("Expand", [made.name, self.whole_numbers(full)])

    def elementwise(
        self, operator: str, tensors: Sequence[Tensor], dtype: str = "", **attributes: Any
    ) -> Tensor:
        """Apply an element-wise operator to values of one shape.

        Args:
            operator: of ONNX.
            tensors: the operands.
            dtype: of the result; by default that of the last operand.
            attributes: of the operator.
        """
        numbers = [self.known_scalar(each) for each in tensors]
        if operator in _NUMBERS and None not in numbers:
            kind = dtype or tensors[-1].dtype
            values = [np.array(n, each.dtype) for n, each in zip(numbers, tensors, strict=True)]
            with np.errstate(all="ignore"):
                result = np.asarray(_NUMBERS[operator](*values), kind)
            return self._filled(tensors[-1], result)
        largest = max(tensors, key=lambda each: prod(each.extents))
        same = [self.ordered(each, largest.order) for each in tensors]
        name = self.emit(operator, [each.name for each in same], **attributes)
        extents = tuple(np.broadcast_shapes(*(each.extents for each in same)))
        return replace(largest, name=name, dtype=dtype or tensors[-1].dtype, extents=extents)

    def scalar_like(self, tensor: Tensor, number: float) -> Tensor:
        """Return a constant of a value's shape and type, all of whose elements are one number."""
        return self._filled(tensor, np.array(number, tensor.dtype))

    def _filled(self, tensor: Tensor, number: Array) -> Tensor:
        """Return a constant of a value's shape, all of whose elements are one number."""
        extents = (1,) * len(tensor.shape)
        name = self.weight(number.reshape(extents))
        return replace(tensor, name=name, dtype=number.dtype.name, extents=extents)

    def cast(self, tensor: Tensor, dtype: str) -> Tensor:
        """Convert a value to another element type."""
        from onnx import helper

        if tensor.dtype == dtype:
            return tensor
        if (number := self.known_scalar(tensor)) is not None:
            return self._filled(tensor, np.array(number, tensor.dtype).astype(dtype))
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return replace(tensor, name=self.emit("Cast", [tensor.name], to=kind), dtype=dtype)

    def broadcast(self, tensor: Tensor, dimensions: Sequence[int], shape: Shape) -> Tensor:
        """Broadcast a value.

        Args:
            tensor: the value.
            dimensions: of the result, one for each of the value's.
            shape: of the result.
        """
        return self._relabel(tensor, dict(enumerate(dimensions)), shape)

    def _relabel(self, tensor: Tensor, places: dict[int, int], shape: Shape) -> Tensor:
        """Renumber a value's dimensions; those that are left out have one element."""
        pairs = zip(tensor.order, tensor.extents, strict=True)
        held = [(places[d], extent) for d, extent in pairs if d in places]
        new = [d for d in range(len(shape)) if d not in places.values()]
        order = (*new, *(d for d, _ in held))
        long = [d for d, extent in held if extent != 1]
        if long == sorted(long):
            order = tuple(range(len(shape)))
        sizes = dict(held)
        extents = tuple(sizes.get(d, 1) for d in order)
        name = tensor.name if extents == tensor.extents else self.reshape(tensor.name, extents)
        return Tensor(name, shape, tensor.dtype, order, extents)

    def with_shape(self, tensor: Tensor, shape: Shape) -> Tensor:
        """Reshape a value."""
        long = [d for d, extent in enumerate(tensor.shape) if extent != 1]
        places = [d for d, extent in enumerate(shape) if extent != 1]
        if [tensor.shape[d] for d in long] == [shape[d] for d in places]:
            return self._relabel(tensor, dict(zip(long, places, strict=True)), shape)
        return self.plain(self.reshape(self.dense(tensor), shape), shape, tensor.dtype)

    def transposed(self, tensor: Tensor, permutation: Sequence[int]) -> Tensor:
        """Transpose a value: dimension i of the result is `permutation[i]` of the value's."""
        places = {d: index for index, d in enumerate(permutation)}
        order, shape = tuple(places[d] for d in tensor.order), tuple(tensor.shape[d] for d in permutation)
        return replace(tensor, shape=shape, order=order)

    def sliced(
        self, tensor: Tensor, starts: Sequence[int], limits: Sequence[int], steps: Sequence[int]
    ) -> Tensor:
        """Slice a value; with a negative step, the start is the last element, and the limit is below 0."""
        shape = tuple(len(range(*each)) for each in zip(starts, limits, steps, strict=True))
        extents, axes = list(tensor.extents), list[int]()
        for d, bounds in enumerate(zip(starts, limits, steps, strict=True)):
            axis = tensor.axis(d)
            if tensor.extents[axis] != 1 and range(*bounds) != range(tensor.shape[d]):
                axes.append(d)
                extents[axis] = shape[d]
        name = tensor.name
        if tensor.name in self.joined and len(axes) == 1 and steps[axes[0]] == 1:
            (d,) = axes
            if self.joined[tensor.name][0] == tensor.axis(d):
                parts = self.parts(tensor, d, starts[d], limits[d])
                if len(parts) == 1:
                    return parts[0]
        if axes:
            # ONNX counts a negative limit from the end.
            ends = [limits[d] if limits[d] >= 0 else -(1 << 31) for d in axes]
            lists = [starts[d] for d in axes], ends, [tensor.axis(d) for d in axes], [steps[d] for d in axes]
            name = self.emit("Slice", [name, *map(self.whole_numbers, lists)])
        return replace(tensor, name=name, shape=shape, extents=tuple(extents))

    def join(self, parts: Sequence[Tensor], dimension: int) -> Tensor:
        """Join values along a dimension."""
        order, shape = parts[0].order, list(parts[0].shape)
        shape[dimension] = sum(part.shape[dimension] for part in parts)
        names, axis = [self.dense(part, order) for part in parts], order.index(dimension)
        name = self.emit("Concat", names, axis=axis)
        self.joined[name] = axis, list(zip(names, (part.shape[dimension] for part in parts), strict=True))
        return Tensor(name, tuple(shape), parts[0].dtype, order, tuple(shape[d] for d in order))

    def parts(self, tensor: Tensor, dimension: int, start: int, limit: int) -> list[Tensor]:
        """Return values that are a range of a value, as far as possible those that it is joined of."""
        axis, rank = tensor.axis(dimension), len(tensor.shape)
        along, names = self.joined.get(tensor.name, (axis, ()))
        found, at = list[Tensor](), 0
        for name, extent in names if along == axis and names else ((tensor.name, tensor.shape[dimension]),):
            first, last = max(start - at, 0), min(limit - at, extent)
            at += extent
            if first >= last:
                continue
            part = tensor
            if name != tensor.name:
                shape = (extent if d == dimension else n for d, n in enumerate(tensor.shape))
                extents = (extent if d == axis else n for d, n in enumerate(tensor.extents))
                part = replace(tensor, name=name, shape=tuple(shape), extents=tuple(extents))
            if (first, last) != (0, extent):
                starts, limits = [0] * rank, list(part.shape)
                starts[dimension], limits[dimension] = first, last
                part = self.sliced(part, starts, limits, [1] * rank)
            found.append(part)
        return found
