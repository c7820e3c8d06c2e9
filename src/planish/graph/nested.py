"""What a model is made of at any depth: in the bodies of branches and loops, and in functions, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto


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
    yield from model.graph.initializer
    for node in all_nodes(model):
        for attribute in node.attribute:
            yield from [attribute.t] if attribute.HasField("t") else attribute.tensors
        for body in bodies(node):
            yield from body.initializer
