"""Data flow of a model's graph, without shapes, types and constants.

Exporters differ in what they write around an operation: constants as nodes or initialisers, weights behind
casts and expansions, sizes computed on the way. What does not depend on the values of the model's inputs is
constant here, however it is written, so that all of them look alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from planish.levels.graph.model_protos import bodies

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

_SHAPES = frozenset({"Shape", "Size", "ConstantOfShape", "EyeLike"})
"""Their results depend on the sizes of their inputs alone."""
_FIRST_ALONE = frozenset({"CastLike", "Expand", "Reshape", "Unsqueeze", "Squeeze", "Tile"})
"""Of their inputs, only the first is data; the others say how large or of which type."""

_SAME_SHAPE = frozenset({"Identity", "Cast", "CastLike", "DequantizeLinear"})


@dataclass(frozen=True)
class Node:
    """One operation.

    Args:
        index: in the order of computation.
        op: the operation's name, without its domain.
        inputs: names of values; empty for one left out.
        outputs: names of values.
        data: the inputs that depend on the model's inputs, in order.
        proto: the node as ONNX has it.
    """

    index: int
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    data: tuple[str, ...]
    proto: NodeProto

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute's value."""
        from onnx import helper

        found = next((a for a in self.proto.attribute if a.name == name), None)
        return default if found is None else helper.get_attribute_value(found)


PathPair = tuple[Sequence[Node], Sequence[Node]]
"""The operations on the paths from one value to two others, one path each."""


class DataFlowGraph:
    """Data-flow graph of a model, with its local functions inlined and the bodies of loops and branches."""

    def __init__(self, model: ModelProto) -> None:
        self.nodes: list[Node] = []
        self.weights: dict[str, TensorProto] = {}
        self._declared: dict[str, tuple[int, ...]] = {}
        self._data: set[str] = set()
        if model.functions:
            from onnx import inliner

            model = inliner.inline_local_functions(model)
        self._add(model.graph)

    def _add(self, graph: GraphProto) -> None:
        self.weights |= {tensor.name: tensor for tensor in graph.initializer}
        # Before version 4 of ONNX's IR, weights had to be among the inputs.
        self._data |= {given.name for given in graph.input if given.name not in self.weights}
        for value in graph.value_info:
            dims = value.type.tensor_type.shape.dim
            if all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims):
                self._declared[value.name] = tuple(dim.dim_value for dim in dims)
        for proto in graph.node:
            # Before the node: indices are in the order of computation, and its results are the bodies'.
            for body in bodies(proto):
                self._add(body)
            data_inputs = proto.input[:1] if proto.op_type in _FIRST_ALONE else proto.input
            inner = [name for body in bodies(proto) for node in body.node for name in node.input]
            data = tuple(name for name in [*data_inputs, *inner] if name in self._data)
            self.nodes.append(
                Node(len(self.nodes), proto.op_type, tuple(proto.input), tuple(proto.output), data, proto)
            )
            if data and proto.op_type not in _SHAPES:
                self._data.update(filter(None, proto.output))

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """The node that computes each value."""
        return {name: node for node in self.nodes for name in node.outputs if name}

    @cached_property
    def consumers(self) -> Mapping[str, Sequence[Node]]:
        """The nodes for which each value is data."""
        found: defaultdict[str, list[Node]] = defaultdict(list)
        for node in self.nodes:
            for name in dict.fromkeys(node.data):
                found[name].append(node)
        return found

    def before(self, node: Node) -> Iterator[Node]:
        """Iterate over the nodes whose results are this one's data."""
        return (self.producers[name] for name in node.data if name in self.producers)

    def after(self, node: Node) -> Iterator[Node]:
        """Iterate over the nodes that use this one's results as data."""
        return (after for name in node.outputs for after in self.consumers.get(name, ()))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a constant; empty where it is unknown."""
        for _ in self.nodes:
            if self._declared.get(name):
                return self._declared[name]
            made = self.producers.get(name)
            if made is None or made.op not in _SAME_SHAPE:
                tensor = self.tensor(name)
                return () if tensor is None else tuple(tensor.dims)
            name = made.inputs[0]
        return ()

    def tensor(self, name: str) -> TensorProto | None:
        """Return the tensor that a constant was written as, as an initialiser or a node; None for others."""
        made = self.producers.get(name)
        if made is not None and made.op == "Constant":
            return made.attribute("value")
        return self.weights.get(name)

    def nearest_common_ancestor(self, first: str, second: str) -> PathPair | None:
        """Find the nearest value that two depend on; return the paths from it, None where there is none."""
        inputs = {name: index for index, name in enumerate(sorted(self._data - set(self.producers)))}
        sides: defaultdict[int, int] = defaultdict(int)
        heap: list[int] = []

        def push(name: str, side: int) -> None:
            made = self.producers.get(name)
            # Inputs of the model come before all nodes: their indices are negative.
            index = made.index if made else -1 - inputs[name]
            if not sides[index]:
                heappush(heap, -index)
            sides[index] |= side

        push(first, 1)
        push(second, 2)
        paths: dict[int, list[Node]] = {1: [], 2: []}
        # The latest first: all nodes after a node precede it here, so the first common one is the nearest.
        while heap:
            index = -heappop(heap)
            if sides[index] == 3:  # both sides lead here
                return paths[1], paths[2]
            if index >= 0:
                paths[sides[index]].append(self.nodes[index])
                for name in self.nodes[index].data:
                    push(name, sides[index])
        return None

    def reached(
        self, starts: Iterable[Node], through: Callable[[Node], bool], *, back: bool = False
    ) -> Iterator[Node]:
        """Traverse the data flow from some nodes, continuing through those that a predicate accepts.

        Yields:
            Each node visited, those that the predicate rejects too, but not the starts.
        """
        todo, seen = list(starts), set[int]()
        while todo:
            node = todo.pop()
            for other in self.before(node) if back else self.after(node):
                if other.index not in seen:
                    seen.add(other.index)
                    yield other
                    if through(other):
                        todo.append(other)
