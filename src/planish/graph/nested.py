"""What a model is made of at any depth: in the bodies of branches and loops, and in functions, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto


def bodies(node: NodeProto) -> Iterator[GraphProto]:
    """Give the graphs within a node: the branches of an `If`, the body of a `Loop`."""
    for attribute in node.attribute:
        yield from [attribute.g] if attribute.HasField("g") else attribute.graphs


def names_read(graph: GraphProto) -> set[str]:
    """Give the names that a graph reads, its own values' too: what is around it may lend it any of them."""
    found = {value.name for value in graph.output}
    for node in graph.node:
        found.update(node.input, *map(names_read, bodies(node)))
    return found


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Give every node of a model; in no particular order."""
    todo = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    while todo:
        node = todo.pop()
        yield node
        todo += (inner for body in bodies(node) for inner in body.node)


def all_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Give every tensor of a model: the weights, and those that are written into nodes."""
    yield from weights_of(model.graph)
    for node in all_nodes(model):
        for attribute in node.attribute:
            yield from [attribute.t] if attribute.HasField("t") else attribute.tensors
            if attribute.HasField("sparse_tensor"):
                yield from _parts(attribute.sparse_tensor)
            for each in attribute.sparse_tensors:
                yield from _parts(each)
        for body in bodies(node):
            yield from weights_of(body)


def weights_of(graph: GraphProto) -> Iterator[TensorProto]:
    """Give the weights of a graph, and the values and indices of those that are stored sparsely."""
    yield from graph.initializer
    for each in graph.sparse_initializer:
        yield from _parts(each)


def _parts(sparse: SparseTensorProto) -> Iterator[TensorProto]:
    yield from (sparse.values, sparse.indices)
