"""Weights in bfloat16 or int8, where reading them takes most of the time."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lower.lowering import MOST_NARROW_READS
from planish.network.ir import Array, Network, Node, TensorType

BFLOAT16, INT8 = "bfloat16", "int8"
_LARGEST = 127
"""The largest number of int8 that is used, so that both signs have the same range."""


def narrow_weights(network: Network, dtype: str) -> Network:
    """Store weights of products and convolutions in a narrow type, where a call reads each a few times.

    They are widened when they are read, and all arithmetic is in float32. Where weights are read more often,
    widening would cost more than is gained by reading fewer bytes. Weights of int8 are multiples of a scale
    for each channel of the result, which is multiplied by it.

    Args:
        network: with its algorithms.
        dtype: `BFLOAT16` or `INT8`.
    """
    types, constants = dict(network.types), dict(network.constants)
    scales = dict[str, Array]()
    for name, array in network.constants.items():
        readers = network.consumers.get(name, ())
        if (
            array.dtype != "float32"
            or array.ndim < 2
            or name in network.outputs
            or not readers
            or not all(_reads_weights(node, name) for node in readers)
            or sum(_reads(network, node) for node in readers) > MOST_NARROW_READS * array.size
        ):
            continue
        if dtype == INT8:
            axes = {_summed_axes(node, array.ndim) for node in readers}
            if len(axes) > 1 or not all(_can_be_scaled(network, node) for node in readers):
                continue
            constants[name], scales[name] = quantize_weights(array, axes.pop())
        else:
            constants[name] = array.astype(numpy_type(BFLOAT16))
        types[name] = replace(types[name], dtype=dtype)
    narrow = replace(network, types=types, constants=constants)
    return _multiply_by_scales(narrow, scales) if scales else narrow


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


def _summed_axes(node: Node, rank: int) -> tuple[int, ...]:
    """Return the dimensions of a node's weights that its result lacks."""
    if node.operator == "Conv":
        return tuple(range(1, rank))
    return (rank - 1 if node.attributes.get("transB") else rank - 2,)


def _can_be_scaled(network: Network, node: Node) -> bool:
    """Return whether what a node adds to its product can be added after a multiplication."""
    if not node.has(2):
        return True
    if node.operator == "Conv":
        return node.inputs[2] in network.constants
    return node.attributes.get("beta", 1.0) == 1.0


def quantize_weights(weights: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Return weights as int8, and the scale of each channel, with dimensions of 1 at these axes."""
    largest = np.max(np.abs(weights), axis=axes, keepdims=True)
    scales = np.where(largest > 0, largest / _LARGEST, 1).astype(np.float32)
    return np.rint(weights / scales).astype(np.int8), scales


def _multiply_by_scales(network: Network, scales: dict[str, Array]) -> Network:
    """Multiply results by the scales of their weights, before anything is added to them."""
    nodes, types, constants = list[Node](), dict(network.types), dict(network.constants)
    channels_last = set(network.channels_last)

    def constant(name: str, value: Array) -> str:
        constants[name], types[name] = value, TensorType(value.shape)
        return name

    def result(name: str, like: str) -> str:
        types[name] = types[like]
        if like in channels_last:
            channels_last.add(name)
        return name

    for node in network.nodes:
        name = node.inputs[1] if node.has(1) else ""
        if name not in scales or not _reads_weights(node, name):
            nodes.append(node)
            continue
        out, convolves = node.output, node.operator == "Conv"
        scale = scales[name]
        if node.operator == "Gemm":
            scale = scale.reshape(-1)
        elif convolves:
            scale = scale.reshape(1, -1, *[1] * (scale.ndim - 2))
        bias = node.inputs[2] if node.has(2) else ""
        product, scaled = result(f"{out} product", out), result(f"{out} scaled", out) if bias else out
        nodes.append(replace(node, inputs=node.inputs[:2], output=product))
        inputs = product, constant(f"{name} scales", scale)
        nodes.append(Node("Mul", f"{node.name} scales", inputs, scaled))
        if bias:
            if convolves:
                bias = constant(f"{bias} by channel", constants[bias].reshape(scale.shape))
            nodes.append(Node("Add", f"{node.name} bias", (scaled, bias), out))
    return replace(
        network, nodes=tuple(nodes), types=types, constants=constants, channels_last=frozenset(channels_last)
    )


def narrowed(before: Network, after: Network) -> tuple[int, int]:
    """Return how many weights have become narrow, and how many bytes fewer they take."""
    pairs = [(array, after.constants[name]) for name, array in before.constants.items()]
    fewer = [one.nbytes - other.nbytes for one, other in pairs if one.dtype != other.dtype]
    return len(fewer), sum(fewer)
