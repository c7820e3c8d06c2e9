"""Layers in integers of 8 bits or bfloat16: inputs are rounded in each call, weights ahead of all calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from planish.levels.loops.lang.element_types import MOST_QUADS, numpy_type
from planish.network.ir import Array, Network, Node, TensorType
from planish.network.operators.contractions import WindowSteps, window_steps
from planish.network.operators.packed import PACKED_CONV, PACKED_PRODUCT
from planish.network.python_kernels.quantizing import QUANTIZE
from planish.network.rewrites.precision import quantize_weights

LEAST_WORK = 1 << 16
"""Multiplications of a layer that may be worth rounding its input, at least."""
_LEVELS = 255
"""Steps from the least to the greatest integer of an input."""


@dataclass(frozen=True)
class Layer:
    """A product or convolution that can be computed in integers, or bfloat16.

    Args:
        node: of the network.
        weights: as [k, n] or [y, x, k, n].
        bias: by channel.
        steps: of a convolution.
    """

    node: Node
    weights: Array
    bias: Array
    steps: WindowSteps | None

    @property
    def source(self) -> str:
        """Return the tensor that is rounded."""
        return self.node.inputs[0]

    def kind(self, network: Network) -> object:
        """Return what layers that take the same time have in common."""
        shapes = network.shape(self.source), network.shape(self.node.output)
        return self.node.operator, self.weights.shape, *shapes, str(self.steps)


def find_layers(network: Network) -> list[Layer]:
    """List the layers that can be computed in integers, or bfloat16.

    Args:
        network: with its layouts.
    """
    found = list[Layer]()
    for node in network.nodes:
        layer = _layer(network, node)
        if layer is None:
            continue
        *window, depth, channels = layer.weights.shape
        quads = prod(window) * -(-depth // 4)
        if channels > 1 and 1 < quads <= MOST_QUADS and _work(network, layer) >= LEAST_WORK:
            found.append(layer)
    return found


def _work(network: Network, layer: Layer) -> int:
    return network.types[layer.node.output].size * prod(layer.weights.shape[:-1])


def _layer(network: Network, node: Node) -> Layer | None:
    weights = network.constants.get(node.inputs[1]) if node.has(1) else None
    if weights is None or weights.dtype != np.float32 or node.operator not in ("Conv", "Gemm", "MatMul"):
        return None
    channels, attributes = network.shape(node.output)[1 if node.operator == "Conv" else -1], node.attributes
    bias = np.zeros(channels, np.float32)
    if node.has(2):
        known = network.constants.get(node.inputs[2])
        if known is None or known.size not in (1, channels):
            return None
        bias = bias + np.float32(attributes.get("beta", 1.0)) * known.reshape(-1)
    if node.operator == "Conv":
        if attributes.get("group", 1) > 1 or weights.ndim != 4:
            return None
        steps = window_steps(node, network.shape(node.inputs[0])[2:], weights.shape[2:])
        return Layer(node, weights.transpose(2, 3, 1, 0), bias, steps)
    if attributes.get("transA") or prod(weights.shape[:-2]) > 1 or weights.ndim < 2:
        return None
    matrix = weights.reshape(weights.shape[-2:])
    matrix = matrix.T if attributes.get("transB") else matrix
    return Layer(node, np.float32(attributes.get("alpha", 1.0)) * matrix, bias, None)


Ranges = Mapping[str, tuple[float, float]]
"""Tensor to its least and its greatest number, or 0."""


def quantize_layers(network: Network, layers: Sequence[Layer], ranges: Ranges) -> Network:
    """Compute layers in integers.

    An input x is rounded to q = x / s + z, from 0 to 255, where the step s and the integer z of zero follow
    from its range; z is 0 where nothing is negative. With weights w = t * v by channel, the sum of x * w is
    s * t * (sum of q * v - z * sum of v).

    Args:
        network: with its layouts.
        layers: of `find_layers`.
        ranges: of their inputs.
    """

    def operands(layer: Layer) -> Operands:
        low, high = ranges[layer.source]
        scale = _LEVELS / (high - low) if high > low else 1.0
        zero = round(-low * scale)
        whole, steps = quantize_weights(layer.weights, tuple(range(layer.weights.ndim - 1)))
        factors = steps.reshape(-1) / scale
        sums = whole.sum(axis=tuple(range(whole.ndim - 1)), dtype=np.int64)
        bias = layer.bias - factors * zero * sums
        return Operands({"scale": scale, "zero": zero}, _elements(whole, 4).view(np.int32), bias, factors)

    return _replace_layers(network, layers, 4, operands)


def pair_layers(network: Network, layers: Sequence[Layer]) -> Network:
    """Compute layers in bfloat16: inputs and weights are rounded to it, and products are summed in float32.

    Args:
        network: with its layouts.
        layers: of `find_layers`.
    """

    def operands(layer: Layer) -> Operands:
        weights = layer.weights.astype(numpy_type("bfloat16")).view(np.uint16)
        return Operands({"pairs": True}, _elements(weights, 2), layer.bias)

    return _replace_layers(network, layers, 2, operands)


class Operands(NamedTuple):
    """Operands of a layer of elements of several numbers.

    Args:
        attributes: of the node that rounds the input.
        weights: elements along k, as [k, n] or [y, x, k, n].
        bias: by channel.
        scales: of sums, by channel; None where these are not scaled.
    """

    attributes: Mapping[str, Any]
    weights: Array
    bias: Array
    scales: Array | None = None


def _replace_layers(
    network: Network, layers: Sequence[Layer], count: int, operands: Callable[[Layer], Operands]
) -> Network:
    """Replace layers by those of elements of several numbers; layers of the same input share its rounding.

    Args:
        network: with its layouts.
        layers: of `find_layers`.
        count: numbers of an element.
        operands: returns those of a layer.
    """
    chosen = {layer.node.output: layer for layer in layers}
    nodes, types, constants = list[Node](), dict(network.types), dict(network.constants)
    made = dict[Any, str]()

    def constant(name: str, value: Array) -> str:
        constants[name], types[name] = value, TensorType(value.shape, str(value.dtype))
        return name

    for node in network.nodes:
        if (layer := chosen.get(node.output)) is None:
            nodes.append(node)
            continue
        pads, found = layer.steps.pads if layer.steps else None, operands(layer)
        key = layer.source, str(pads)
        if key not in made:
            made[key] = f"{layer.source} rounded, {len(made)}"
            shape = network.shape(layer.source)
            depth = -(-layer.weights.shape[-2] // count)
            if pads:
                extents = [n + sum(pad) for n, pad in zip(shape[2:], pads, strict=True)]
                types[made[key]] = TensorType((shape[0], *extents, depth), "uint32")
            else:
                types[made[key]] = TensorType((*shape[:-1], depth), "uint32")
            attributes = {**found.attributes, "pads": pads}
            name = f"{node.name} input"
            nodes.append(Node(QUANTIZE, name, (layer.source,), made[key], attributes))
        inputs = [
            made[key],
            constant(f"{node.output} elements", found.weights),
            constant(f"{node.output} bias", found.bias.astype(np.float32)),
        ]
        if found.scales is not None:
            inputs.append(constant(f"{node.output} scales", found.scales.astype(np.float32)))
        kept = {k: v for k, v in node.attributes.items() if k in ("strides", "dilations")}
        operator = PACKED_CONV if layer.steps else PACKED_PRODUCT
        nodes.append(Node(operator, node.name, tuple(inputs), node.output, kept))
    return replace(network, nodes=tuple(nodes), types=types, constants=constants).without_unread()


def _elements(numbers: Array, count: int) -> Array:
    """Make elements of several numbers along the dimension before the last, which zeros complete."""
    *window, depth, channels = numbers.shape
    wide = np.zeros((*window, depth + -depth % count, channels), numbers.dtype)
    wide[..., :depth, :] = numbers
    parts = wide.reshape(*window, -1, count, channels).swapaxes(-1, -2)
    return np.ascontiguousarray(parts).view(np.uint32)[..., 0]
