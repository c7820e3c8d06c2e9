"""Rewriting of a network before its kernels are formed: views, layouts, windows and convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from planish.core import Target
from planish.levels.loops.roofline import measured_peak, quick_bandwidth
from planish.network.ir import VIEW, Network, Node, Shape, TensorType
from planish.network.library.schedule import is_foreign
from planish.network.operators.builder import align_shape
from planish.network.operators.contractions import window_steps
from planish.network.operators.tiled_convolutions import rewrite_transposed_convolutions
from planish.network.operators.winograd import WEIGHT_COST, expect_tiles, rewrite_winograd
from planish.network.registry import is_elementwise
from planish.network.rewrites.gates import fold_gates
from planish.network.rewrites.layouts import store_channels_last
from planish.network.rewrites.lifting import drop_transposes, join_views, lift_convolutions
from planish.network.rewrites.normalizations import join_normalizations
from planish.network.rewrites.strips import Chain, expect_rows, find_chains, rewrite_strips

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
    return replace(network, nodes=tuple(nodes), types=types).without_unread()


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


def rewrite_layouts(network: Network) -> Network:
    """Return a network with its layouts, whose convolutions are direct."""
    network = join_views(sink_views(lift_convolutions(join_normalizations(network))))
    network = drop_transposes(store_channels_last(trim_windows(network)))
    return rewrite_transposed_convolutions(fold_gates(network))


def rewrite(network: Network, tolerance: float, target: Target) -> Network:
    """Return a network that computes the same, in fewer or quicker kernels.

    Args:
        network: with its layouts.
        tolerance: largest difference of an output, as a share of its largest number.
        target: the machine.
    """
    return rewrite_by_estimates(network, estimate_tiles(network, tolerance, target), target)


def estimate_tiles(network: Network, tolerance: float, target: Target) -> dict[str, int]:
    """Return the tiles of convolutions for which Winograd's algorithm is expected to be the fastest.

    Args:
        network: with its layouts.
        tolerance: largest difference of an output, as a share of its largest number.
        target: the machine, on which the cost of a weight is measured.
    """
    convolves = any(node.operator == "Conv" for node in network.nodes)
    return expect_tiles(network, tolerance, measure_weight_cost(target)) if convolves else {}


def rewrite_by_estimates(network: Network, tiles: Mapping[str, int], target: Target) -> Network:
    """Rewrite convolutions to their algorithms, and chains of kernels to strips of estimated rows.

    Args:
        network: with its layouts.
        tiles: of the convolutions that Winograd's algorithm computes.
        target: the machine.
    """
    chains = find_chains(network, tiles)
    rows = {chain.output: expect_rows(network, chain, tiles, target) for chain in chains}
    return rewrite_algorithms(network, tiles, chains, rows)


_BEYOND, _LEAST_READ = 4, 1 << 22
"""Multiple of the second-level cache that is read to measure memory, and the bytes at least."""
_MOST_COST = 15.0
"""Largest cost of a weight: beyond, arithmetic hides a part of it."""


def measure_weight_cost(target: Target) -> float:
    """Measure the time to read a weight from memory, in that of multiply-adds at the peak of a core."""
    if is_foreign(target):
        return WEIGHT_COST
    cache, backend = target.machine.cache(2) if target.machine else None, target.toolchain["backend"]
    bandwidth = quick_bandwidth(backend, max(_LEAST_READ, _BEYOND * cache.size if cache else 0))
    cost = 4 / bandwidth * measured_peak(backend) / 2
    # A busy machine seems to compute slowly, which would make weights cheap.
    return min(max(cost, WEIGHT_COST), _MOST_COST)


def rewrite_algorithms(
    network: Network,
    tiles: Mapping[str, int],
    chains: Sequence[Chain] = (),
    rows: Mapping[str, int | None] | None = None,
) -> Network:
    """Return a network with its algorithms: tiles of convolutions, and strips of chains.

    Args:
        network: with its layouts.
        tiles: as of `rewrite_winograd`.
        chains: of `find_chains`.
        rows: the output of a chain to the rows of it in a strip; None where it has no strips.
    """
    chosen = {name: count for name, count in (rows or {}).items() if count}
    return rewrite_winograd(*rewrite_strips(network, tiles, chains, chosen))


def trim_windows(network: Network) -> Network:
    """Cut the taps off the windows of convolutions that no result reads the image with."""
    nodes, types, constants = list[Node](), dict(network.types), dict(network.constants)
    for node in network.nodes:
        if node.operator != "Conv" or node.inputs[1] not in network.constants:
            nodes.append(node)
            continue
        weights, image = constants[node.inputs[1]], network.shape(node.inputs[0])[2:]
        strides, dilations, pads = window_steps(node, image, weights.shape[2:])
        extents = zip(image, network.shape(node.output)[2:], weights.shape[2:], strict=True)
        ranges = [
            _read(extent, stride, dilation, pad)
            for extent, stride, dilation, pad in zip(extents, strides, dilations, pads, strict=True)
        ]
        if all(last - first == n for (first, last), n in zip(ranges, weights.shape[2:], strict=True)):
            nodes.append(node)
            continue
        name = f"{node.output} read taps"
        kept = weights[(slice(None), slice(None), *(slice(*each) for each in ranges))]
        constants[name] = np.ascontiguousarray(kept)
        types[name] = TensorType(kept.shape, types[node.inputs[1]].dtype)
        before = [p - d * r[0] for (p, _), d, r in zip(pads, dilations, ranges, strict=True)]
        after = [
            p - d * (n - r[1])
            for (_, p), d, n, r in zip(pads, dilations, weights.shape[2:], ranges, strict=True)
        ]
        attributes = {**node.attributes, "pads": [*before, *after], "auto_pad": "NOTSET"}
        attributes.pop("kernel_shape", None)
        inputs = (node.inputs[0], name, *node.inputs[2:])
        nodes.append(replace(node, inputs=inputs, attributes=attributes))
    return replace(network, nodes=tuple(nodes), types=types, constants=constants)


def _read(extents: Shape, stride: int, dilation: int, pads: tuple[int, int]) -> tuple[int, int]:
    """Return the first tap of a dimension to be kept, and the one after the last.

    Args:
        extents: of the image, the result and the window.
        stride: of the window.
        dilation: of it.
        pads: zeros before and after the image; of what is left, there are none less than 0.
    """
    image, results, taps = extents
    read = [
        tap
        for tap in range(taps)
        if any(0 <= y * stride + tap * dilation - pads[0] < image for y in range(results))
    ]
    if not read:
        return 0, taps
    return min(read[0], pads[0] // dilation), max(read[-1] + 1, taps - pads[1] // dilation)
