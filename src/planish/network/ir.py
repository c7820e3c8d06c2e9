"""Networks: operators over tensors of static shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError

Array = NDArray[Any]
Shape = tuple[int, ...]

VIEW = "View"
"""The operator of a node that changes a shape and moves nothing."""
PART = "StripOf"
"""The operator of a node whose output lies within its input's memory: attribute `offset`, in elements."""
JOIN = "JoinStrips"
"""The operator of a node whose inputs lie one after another in its output's memory."""
REORDER = "Reorder"
"""The operator of a node that copies a tensor to its other layout."""
STRIDED_SLICE = "StridedSlice"
"""The operator of a node that reads a part of a tensor: attributes `starts` and `steps`."""

PLACED = "Placed"
"""The operator of a node that does nothing, because its operands and its result have memory in common."""
COPY_PART = "CopyPart"
"""The operator of a node that copies a part of a Concat which cannot be computed in its place."""


@dataclass(frozen=True)
class Placement:
    """Position of a tensor within another one.

    Args:
        base: the other one, which has memory of its own.
        offset: of the first element there.
        row: elements that are contiguous; all of them, or a whole number of these.
        step: elements from a row to the next one.
    """

    base: str
    offset: int
    row: int
    step: int


@dataclass(frozen=True)
class TensorType:
    """Type of a tensor.

    Args:
        shape: its extents.
        dtype: NumPy's name. Truth values are 0 and 1 in float32, but for inputs and outputs of the network.
    """

    shape: Shape
    dtype: str = "float32"

    @property
    def size(self) -> int:
        """Return how many elements it has."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Return how many bytes it takes."""
        return self.size * self.item_bytes

    @property
    def item_bytes(self) -> int:
        """Return how many bytes an element takes."""
        return np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Node:
    """Application of an operator.

    Args:
        operator: ONNX's name, or `VIEW` or another one of this module.
        name: for messages.
        inputs: names of tensors; empty for an optional one that is left out.
        output: name of the tensor that it computes.
        attributes: by name.
        more: names of further tensors that it computes.
    """

    operator: str
    name: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    more: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """Return the operator without the element type that may be in its name."""
        return self.operator.partition(" ")[0]

    def has(self, index: int) -> bool:
        """Return whether an optional input is there."""
        return index < len(self.inputs) and bool(self.inputs[index])

    def refuse(self, why: str) -> ProgramError:
        """Return the error for something in this node that is not covered."""
        return ProgramError(f"node '{self.name}' ({self.operator}): {why}")


@dataclass(frozen=True)
class Network:
    """A graph of operators, in an order in which they can be computed.

    Args:
        name: of the model.
        nodes: in that order.
        inputs: names of the inputs.
        outputs: names of the outputs.
        types: of all tensors, by name.
        constants: weights by name.
        channels_last: tensors that are stored as [n, y, x, c]; all others are row-major.
        shape_outputs: outputs whose shapes depend on data, each with the output that receives its shape.
        placements: tensors that are within others.
    """

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    types: Mapping[str, TensorType]
    constants: Mapping[str, Array]
    channels_last: frozenset[str] = frozenset()
    shape_outputs: Mapping[str, str] = field(default_factory=dict[str, str])
    placements: Mapping[str, Placement] = field(default_factory=dict[str, Placement])

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """Return the node that computes each tensor."""
        return {name: node for node in self.nodes for name in (node.output, *node.more)}

    @cached_property
    def consumers(self) -> Mapping[str, Sequence[Node]]:
        """Return the nodes that read each tensor, each once, in their order."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found.setdefault(name, []).append(node)
        return found

    def shape(self, name: str) -> Shape:
        """Return the shape of a tensor."""
        return self.types[name].shape

    def order(self, name: str) -> tuple[int, ...]:
        """Return the dimensions of a tensor as they are in memory, outermost first."""
        rank = len(self.shape(name))
        return (0, *range(2, rank), 1) if name in self.channels_last else tuple(range(rank))

    def root(self, name: str) -> str:
        """Return the tensor whose memory holds another, which may be a view of it."""
        while (node := self.producers.get(name)) is not None and node.operator == VIEW:
            name = node.inputs[0]
        return name

    @cached_property
    def _joined(self) -> Mapping[str, tuple[str, int]]:
        """Return the inputs of joins, each with the output and where in it the input begins, in elements."""
        found = dict[str, tuple[str, int]]()
        for node in self.nodes:
            offset = 0
            for name in node.inputs if node.operator == JOIN else ():
                found[self.root(name)] = node.output, offset
                offset += self.types[name].size
        return found

    def whole(self, name: str) -> tuple[str, int]:
        """Return the tensor that another is some rows of, and where it begins there, in elements."""
        offset = 0
        while True:
            name = self.root(name)
            node = self.producers.get(name)
            if node is not None and node.operator == PART:
                name, start = node.inputs[0], node.attributes["offset"]
            elif name in self._joined:
                name, start = self._joined[name]
            else:
                return name, offset
            offset += start

    def memory(self, name: str) -> tuple[str, int]:
        """Return the tensor in whose memory another lies, and where it begins there, in elements."""
        name, offset = self.whole(name)
        place = self.placements.get(name)
        if place is None:
            return name, offset
        rows, rest = divmod(offset, place.row)
        return place.base, place.offset + rows * place.step + rest

    def rows_apart(self, name: str) -> tuple[str, Placement] | None:
        """Return the placement of what a tensor is, or is a part of, where that has rows which lie apart."""
        whole, _ = self.whole(name)
        place = self.placements.get(whole)
        return None if place is None or place.row == self.types[whole].size else (whole, place)

    def row_start(self, name: str) -> int | None:
        """Return the dimension at which rows begin that lie apart in memory; None where there are none."""
        found, shape = self.rows_apart(name), self.shape(name)
        if found is None or name in self.channels_last:
            return None
        return next((d for d in range(len(shape)) if prod(shape[d:]) == found[1].row), None)

    def constant(self, node: Node, index: int) -> Array | None:
        """Return the value of a constant input; None where it is missing.

        Raises:
            ProgramError: it is not constant.
        """
        if not node.has(index):
            return None
        name = self.root(node.inputs[index])
        if name not in self.constants:
            raise node.refuse(f"input {index} is computed, which is not covered")
        return self.constants[name].reshape(self.shape(node.inputs[index]))

    def without_unread(self) -> Network:
        """Leave out nodes whose results nothing reads."""
        read, kept = set(self.outputs), list[Node]()
        for node in reversed(self.nodes):
            if not read.isdisjoint((node.output, *node.more)):
                kept.append(node)
                read.update(node.inputs)
        return replace(self, nodes=tuple(reversed(kept)))

    def with_constant(self, name: str, value: Array) -> Network:
        """Return a network with one constant more."""
        types = {**self.types, name: TensorType(value.shape, value.dtype.name)}
        return replace(self, types=types, constants={**self.constants, name: value})

    def scalar(self, name: str) -> float | None:
        """Return the number that a constant of one element holds; None for NaN, and for any other tensor."""
        found = self.constants.get(name)
        one = found is not None and found.size == 1 and not np.isnan(found.reshape(()))
        return float(found.reshape(())) if found is not None and one else None

    def whole_numbers(self, node: Node, index: int) -> tuple[int, ...] | None:
        """Return a constant input of whole numbers; None where it is missing."""
        found = self.constant(node, index)
        return None if found is None else tuple(int(n) for n in np.atleast_1d(found))
