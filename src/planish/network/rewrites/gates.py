"""Gates of squeeze-and-excitation that are multiplied into weights in place of images."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from planish.network.ir import Network, Node
from planish.network.operators.contractions import GATED

GAIN = 1.5
"""So many times fewer elements the weights of a convolution must have than its image."""


def fold_gates(network: Network) -> Network:
    """Multiply a gate of each channel into the weights of the pointwise convolution that follows.

    Args:
        network: with its layouts.
    """
    nodes, folded = list[Node](), set[str]()
    for node in reversed(network.nodes):
        product = network.producers.get(node.inputs[0]) if node.operator == "Conv" else None
        gate = _gate_of(network, node, product) if product else None
        if product and gate:
            (image,) = (name for name in product.inputs if name != gate)
            bias = node.inputs[2] if node.has(2) else ""
            inputs = image, node.inputs[1], bias, gate
            node, folded = replace(node, operator=GATED, inputs=inputs), folded | {product.output}
        if node.output not in folded:
            nodes.append(node)
    return replace(network, nodes=tuple(reversed(nodes)))


def _gate_of(network: Network, node: Node, product: Node) -> str | None:
    """Return the gate that the image of a convolution is multiplied by; None where it is not folded."""
    image, shape = node.inputs[0], network.shape(node.output)
    weights = network.constants.get(node.inputs[1])
    if product.operator != "Mul" or weights is None or image in network.outputs:
        return None
    if len(network.consumers[image]) != 1 or not {image, node.output} <= network.channels_last:
        return None
    strides, pads = node.attributes.get("strides") or [1], node.attributes.get("pads") or [0]
    plain = node.attributes.get("group", 1) == 1 and set(strides) == {1} and not any(pads)
    if not plain or prod(weights.shape[2:]) != 1 or shape[0] != 1:
        return None
    if prod(shape[2:]) < GAIN * shape[1]:
        return None
    channels = (1, weights.shape[1], 1, 1)
    gates = [name for name in product.inputs if network.shape(name) == channels]
    others = [name for name in product.inputs if name in network.channels_last]
    computed = len(gates) == len(others) == 1 and network.root(gates[0]) not in network.constants
    return gates[0] if computed else None
