"""Rewriting of a network before its kernels are formed: views, layouts, and algorithms of convolutions."""

from __future__ import annotations

from dataclasses import replace

from planish.network.ir import VIEW, Network, Node, Shape, TensorType
from planish.network.operators.builder import align_shape
from planish.network.operators.tiled_convolutions import rewrite_transposed_convolutions
from planish.network.operators.winograd import expect_tiles, rewrite_winograd
from planish.network.registry import is_elementwise
from planish.network.rewrites.layouts import store_channels_last
from planish.network.rewrites.trimming import trim_windows

_SHAPED = ("Expand",)
"""Element-wise operators one of whose inputs is a shape."""


def sink_views(network: Network) -> Network:
    """Move views after the element-wise operators that read them, where only dimensions of 1 differ."""
    nodes, types, sources = list[Node](), dict(network.types), dict[str, str]()
    for node in network.nodes:
        if node.operator == VIEW and _long_extents(types[node.inputs[0]].shape) == _long_extents(
            types[node.output].shape
        ):
            source = node.inputs[0]
            sources[node.output] = sources.get(source, source)
        nodes += _sink(node, types, sources)
    return _without_unread(replace(network, nodes=tuple(nodes), types=types))


def _long_extents(shape: Shape) -> list[int]:
    return [extent for extent in shape if extent > 1]


def _sink(node: Node, types: dict[str, TensorType], sources: dict[str, str]) -> list[Node]:
    """Return a node, or the same on the source of a view that it reads, with views of its other inputs."""
    out = types[node.output].shape
    if not is_elementwise(node.operator) or node.operator in _SHAPED:
        return [node]
    viewed = [name for name in node.inputs if name in sources and types[name].shape == out]
    if not viewed or not _long_extents(out):
        return [node]
    shape = types[sources[viewed[0]]].shape
    inputs, views = list[str](), list[Node]()
    for name in node.inputs:
        if not name or types[name].size == 1:
            inputs.append(name)
            continue
        wanted = _shape_before_view(types[name].shape, out, shape)
        if sources.get(name) and types[sources[name]].shape == wanted:
            inputs.append(sources[name])
        elif types[name].shape == wanted:
            inputs.append(name)
        else:
            inputs.append(f"{name} for {node.output}")
            types[inputs[-1]] = replace(types[name], shape=wanted)
            views.append(Node(VIEW, f"{node.name} input", (name,), inputs[-1]))
    result = f"{node.output} before its view"
    types[result] = replace(types[node.output], shape=shape)
    sources[node.output] = result
    moved = replace(node, inputs=tuple(inputs), output=result)
    return [*views, moved, Node(VIEW, f"{node.name} view", (result,), node.output)]


def _shape_before_view(shape: Shape, out: Shape, source: Shape) -> Shape:
    """Return the shape of what is broadcast to `out`, where it is broadcast to `source` instead."""
    own = iter([own for own, extent in zip(align_shape(shape, len(out)), out, strict=True) if extent > 1])
    return tuple(next(own) if extent > 1 else 1 for extent in source)


def _without_unread(network: Network) -> Network:
    """Leave out views that nothing reads."""
    read, kept = set(network.outputs), list[Node]()
    for node in reversed(network.nodes):
        if node.operator != VIEW or node.output in read:
            kept.append(node)
            read.update(node.inputs)
    return replace(network, nodes=tuple(reversed(kept)))


def rewrite_layouts(network: Network) -> Network:
    """Return a network with its layouts, whose convolutions are direct."""
    return rewrite_transposed_convolutions(store_channels_last(trim_windows(sink_views(network))))


def rewrite(network: Network, tolerance: float) -> Network:
    """Return a network that computes the same, in fewer or quicker kernels.

    Args:
        network: as it was read.
        tolerance: largest difference of an output, as a share of its largest number.
    """
    network = rewrite_layouts(network)
    return rewrite_winograd(network, expect_tiles(network, tolerance))
