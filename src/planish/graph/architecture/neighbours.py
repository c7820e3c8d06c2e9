"""What networks over graphs are recognised by: states that are added up over edges, or by a matrix given."""

from __future__ import annotations

from collections import Counter

from planish.graph.architecture.convolutions import PRODUCTS
from planish.graph.architecture.wiring import Node, Wiring

_SCATTERS = frozenset({"ScatterElements", "ScatterND", "Scatter"})
_PASSING = frozenset(
    {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Gather", "Slice", "Split"}
)


def neighbourhoods(wiring: Wiring) -> int:
    """Count how often states of nodes are added up: over edges, or by a matrix that is given."""
    edges = sum(_adds(node) and _is_given(wiring, node.inputs[1]) for node in wiring.nodes)
    matrices: Counter[str] = Counter()
    for node in wiring.nodes:
        if node.op in PRODUCTS and len(node.data) == 2:
            first, second = (_source(wiring, name) for name in node.data)
            # One factor is given and the other computed: a product of two inputs is no sum over neighbours.
            matrices.update(name for name in {first, second} if name and not (first and second))
    return max(edges, max(matrices.values(), default=0))


def _adds(node: Node) -> bool:
    return node.op in _SCATTERS and len(node.data) >= 2 and node.attribute("reduction", b"none") == b"add"


def _is_given(wiring: Wiring, name: str) -> bool:
    """Whether indices come from an input of the model as they are."""
    return bool(_source(wiring, name))


def _source(wiring: Wiring, name: str) -> str:
    """Give the input of the model that a value is, but for its shape; empty where it is computed."""
    for _ in wiring.nodes:
        made = wiring.producers.get(name)
        if made is None:
            return name
        if not made.data or made.op not in _PASSING | {"Expand"}:
            return ""
        name = made.data[0]
    return name
