"""Views between element-wise operators and what they continue, moved behind them.

A product whose result is viewed as [1, m, n] before a bias or an activation is one kernel with these, if they
are computed as [m, n]. Views that add or remove dimensions of one element move; no others do.
"""

from __future__ import annotations

from dataclasses import replace

from planish.network.drafts import aligned
from planish.network.elementwise import ELEMENTWISE
from planish.network.model import VIEW, Network, Node, Shape, Value

_SHAPED = ("Expand",)
"""Element-wise operators one of whose inputs is a shape."""


def with_views_behind(network: Network) -> Network:
    """Move views behind the element-wise operators that read them, where only dimensions of 1 differ."""
    nodes, values, sources = list[Node](), dict(network.values), dict[str, str]()
    for node in network.nodes:
        if node.operator == VIEW and _long(values[node.inputs[0]].shape) == _long(values[node.output].shape):
            source = node.inputs[0]
            sources[node.output] = sources.get(source, source)
        nodes += _moved(node, values, sources)
    return _without_unread(replace(network, nodes=tuple(nodes), values=values))


def _long(shape: Shape) -> list[int]:
    return [extent for extent in shape if extent > 1]


def _moved(node: Node, values: dict[str, Value], sources: dict[str, str]) -> list[Node]:
    """Return a node, or the same on the source of a view that it reads, with views of its other inputs."""
    out = values[node.output].shape
    if node.operator not in ELEMENTWISE or node.operator in _SHAPED:
        return [node]
    viewed = [name for name in node.inputs if name in sources and values[name].shape == out]
    if not viewed or not _long(out):
        return [node]
    shape = values[sources[viewed[0]]].shape
    inputs, views = list[str](), list[Node]()
    for name in node.inputs:
        if not name or values[name].size == 1:
            inputs.append(name)
            continue
        wanted = _seen_as(values[name].shape, out, shape)
        if sources.get(name) and values[sources[name]].shape == wanted:
            inputs.append(sources[name])
        elif values[name].shape == wanted:
            inputs.append(name)
        else:
            inputs.append(f"{name} for {node.output}")
            values[inputs[-1]] = replace(values[name], shape=wanted)
            views.append(Node(VIEW, f"{node.name} input", (name,), inputs[-1]))
    result = f"{node.output} before its view"
    values[result] = replace(values[node.output], shape=shape)
    sources[node.output] = result
    moved = replace(node, inputs=tuple(inputs), output=result)
    return [*views, moved, Node(VIEW, f"{node.name} view", (result,), node.output)]


def _seen_as(shape: Shape, out: Shape, source: Shape) -> Shape:
    """Return the shape of what is broadcast to `out`, where it is broadcast to `source` instead."""
    own = iter([own for own, extent in zip(aligned(shape, len(out)), out, strict=True) if extent > 1])
    return tuple(next(own) if extent > 1 else 1 for extent in source)


def _without_unread(network: Network) -> Network:
    """Leave out views that nothing reads."""
    read, kept = set(network.outputs), list[Node]()
    for node in reversed(network.nodes):
        if node.operator != VIEW or node.output in read:
            kept.append(node)
            read.update(node.inputs)
    return replace(network, nodes=tuple(reversed(kept)))
