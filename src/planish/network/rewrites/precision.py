"""Weights in bfloat16, where reading them takes most of the time."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lower.lowering import MOST_NARROW_READS
from planish.network.ir import Network, Node

NARROW = "bfloat16"


def narrow_weights(network: Network) -> Network:
    """Store weights of products and convolutions as bfloat16, where a call reads each a few times.

    They are widened when they are read, and all arithmetic is in float32. Where weights are read more often,
    widening would cost more than is gained by reading half as many bytes.

    Args:
        network: with its algorithms.
    """
    types, constants = dict(network.types), dict(network.constants)
    for name, array in network.constants.items():
        readers = network.consumers.get(name, ())
        if (
            array.dtype == "float32"
            and array.ndim > 1
            and name not in network.outputs
            and readers
            and all(_reads_weights(node, name) for node in readers)
            and sum(_reads(network, node) for node in readers) <= MOST_NARROW_READS * array.size
        ):
            constants[name] = array.astype(numpy_type(NARROW))
            types[name] = replace(types[name], dtype=NARROW)
    return replace(network, types=types, constants=constants)


def _reads_weights(node: Node, name: str) -> bool:
    """Return whether a node reads a constant as its weights, and as nothing else."""
    products = node.operator in ("MatMul", "Gemm") or (
        node.operator == "Conv" and node.attributes.get("group", 1) == 1
    )
    return products and node.inputs[1] == name and node.inputs.count(name) == 1


def _reads(network: Network, node: Node) -> int:
    """Return how many multiplications a product or convolution takes."""
    weights = network.shape(node.inputs[1])
    if node.operator == "Conv":
        depth = prod(weights[1:])
    else:
        depth = weights[-1] if node.attributes.get("transB") else weights[-2]
    return network.types[node.output].size * depth


def narrowed(network: Network) -> tuple[int, int]:
    """Return how many weights are narrow, and how many bytes fewer they take."""
    sizes = [array.size for name, array in network.constants.items() if network.types[name].dtype == NARROW]
    return len(sizes), 2 * sum(sizes)
