"""ONNX models as messages: their parts at any depth, node counts, and identity."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

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
