"""ONNX models as messages: their parts at any depth, data flow, node counts, and identity.

The data flow is without shapes, types and constants. Exporters differ in what they write around an operation:
constants as nodes or initializers, weights after casts and expansions, sizes computed on the way. What does
not depend on the values of the model's inputs is constant there, however it is written.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto


def bodies(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs within a node: the branches of an `If`, the body of a `Loop`."""
    for attribute in node.attribute:
        yield from [attribute.g] if attribute.HasField("g") else attribute.graphs


def names_read(graph: GraphProto) -> set[str]:
    """Return the names that a graph reads, its own values' too: what is around it may lend it any of them."""
    found = {value.name for value in graph.output}
    for node in graph.node:
        found.update(node.input, *map(names_read, bodies(node)))
    return found


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Yield every node of a model; in no particular order."""
    todo = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    while todo:
        node = todo.pop()
        yield node
        todo += (inner for body in bodies(node) for inner in body.node)


def all_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor of a model: the weights, and those that are written into nodes."""
    yield from _weights_of(model.graph)
    for node in all_nodes(model):
        for attribute in node.attribute:
            yield from [attribute.t] if attribute.HasField("t") else attribute.tensors
            sparse = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
            yield from _parts([*sparse, *attribute.sparse_tensors])
        for body in bodies(node):
            yield from _weights_of(body)


def _weights_of(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the weights of a graph, and the values and indices of those that are stored sparsely."""
    yield from graph.initializer
    yield from _parts(graph.sparse_initializer)


def _parts(sparse: Iterable[SparseTensorProto]) -> Iterator[TensorProto]:
    for each in sparse:
        yield from (each.values, each.indices)


def identity(model: ModelProto) -> str:
    """Hash a model: equal hashes mean the same nodes, wired alike, over equal weights.

    Names, documentation, and the order of independent nodes do not count; nodes whose results are not used
    do. Graphs within nodes count by their text, and by what the names in them stand for.
    """
    weights = {tensor.name: _digest(b"w", _content(tensor)) for tensor in model.graph.initializer}
    # By their names, which callers use; other names do not count.
    inputs = {value.name: _digest(b"i", value.name.encode()) for value in model.graph.input}
    values = {"": b"", **inputs, **weights}
    made: list[bytes] = []
    # A Merkle hash: a value's digest holds those of all that it was made of. Nodes come in topological order.
    for node in model.graph.node:
        attributes = sorted(
            (attribute.name, attribute.SerializeToString(deterministic=True)) for attribute in node.attribute
        )
        lent = sorted({name for body in bodies(node) for name in names_read(body) if name in values})
        own = _digest(
            f"{node.domain}:{node.op_type}:{len(node.output)}".encode(),
            *(values.get(name, name.encode()) for name in node.input),
            *(content for _, content in attributes),
            *(part for name in lent for part in (name.encode(), values[name])),
        )
        made.append(own)
        # What is left out has no name, and what has none stands for nothing.
        values |= {name: _digest(b"o", own, b"%d" % n) for n, name in enumerate(node.output) if name}
    outputs = [values.get(value.name, b"?") for value in model.graph.output]
    opsets = sorted(f"{each.domain}:{each.version}" for each in model.opset_import)
    # Deterministic: protobuf promises no order of maps otherwise.
    functions = sorted(function.SerializeToString(deterministic=True) for function in model.functions)
    parts = [*outputs, b"|", *sorted(made), b"|", *map(str.encode, opsets), *functions]
    return _digest(*parts, *sorted(weights.values())).hex()


def node_counts(model: ModelProto) -> Mapping[str, int]:
    """Count a model's nodes by the type of their operator, the most frequent first."""
    return dict(Counter(node.op_type for node in model.graph.node).most_common())


def _content(tensor: TensorProto) -> bytes:
    head = f"{tensor.data_type}{list(tensor.dims)}".encode()
    if tensor.HasField("raw_data"):
        return head + tensor.raw_data
    if tensor.string_data:  # of which an array has the addresses
        return head + _digest(*tensor.string_data)
    from onnx.numpy_helper import to_array

    # Equal weights may be stored in several fields of the format: the array is the same.
    return head + to_array(tensor).tobytes()


def _digest(*parts: bytes) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))  # so that parts cannot run into each other
        found.update(part)
    return found.digest()


_SHAPES = frozenset({"Shape", "Size", "ConstantOfShape", "EyeLike"})
"""Their results depend on the sizes of their inputs alone."""
_FIRST_ALONE = frozenset({"CastLike", "Expand", "Reshape", "Unsqueeze", "Squeeze", "Tile"})
"""Of their inputs, only the first is data; the others say how large or of which type."""

_SAME_SHAPE = frozenset({"Identity", "Cast", "CastLike", "DequantizeLinear"})


@dataclass(frozen=True)
class Node:
    """One operation.

    Args:
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
        """Return the tensor that a constant was written as, as an initializer or a node; None for others."""
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
