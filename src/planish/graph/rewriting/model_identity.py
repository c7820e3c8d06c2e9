"""When two models are the same: by what they compute and of what nodes, whatever the names."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from planish.graph.nested import bodies, names_read

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

Counts = Mapping[str, int]


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
        own = _node(node, values)
        made.append(own)
        # What is left out has no name, and what has none stands for nothing.
        named = [(n, name) for n, name in enumerate(node.output) if name]
        values |= {name: _digest(b"o", own, str(n).encode()) for n, name in named}
    outputs = [values.get(value.name, b"?") for value in model.graph.output]
    opsets = sorted(f"{each.domain}:{each.version}" for each in model.opset_import)
    # Deterministic: protobuf promises no order of maps otherwise.
    functions = sorted(function.SerializeToString(deterministic=True) for function in model.functions)
    parts = [*outputs, b"|", *sorted(made), b"|", *map(str.encode, opsets), *functions]
    return _digest(*parts, *sorted(weights.values())).hex()


def node_counts(model: ModelProto) -> Counts:
    """Count a model's nodes by the type of their operator, the most frequent first."""
    return dict(Counter(node.op_type for node in model.graph.node).most_common())


def _node(node: NodeProto, values: Mapping[str, bytes]) -> bytes:
    attributes = sorted(
        (attribute.name, attribute.SerializeToString(deterministic=True)) for attribute in node.attribute
    )
    lent = sorted({name for body in bodies(node) for name in names_read(body) if name in values})
    return _digest(
        f"{node.domain}:{node.op_type}:{len(node.output)}".encode(),
        *(values.get(name, name.encode()) for name in node.input),
        *(content for _, content in attributes),
        *(part for name in lent for part in (name.encode(), values[name])),
    )


def _content(tensor: TensorProto) -> bytes:
    head = f"{tensor.data_type}{list(tensor.dims)}".encode()
    if tensor.HasField("raw_data"):
        return head + tensor.raw_data
    if tensor.string_data:  # of which an array has the addresses
        return head + _digest(*tensor.string_data)
    from onnx.numpy_helper import to_array

    # Equal weights may be stored in several fields of the format: the array tells.
    return head + to_array(tensor).tobytes()


def _digest(*parts: bytes) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))  # so that parts cannot run into each other
        found.update(part)
    return found.digest()
