"""Element-wise operators of ONNX, as values of `loops`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from planish.network.ir import Network, Node
from planish.network.operators.builder import number

WriteValue = Callable[[Network, Node, Sequence[str]], str]
"""Writes the value of a node, from those of its inputs."""


def form(template: str) -> WriteValue:
    """Return what writes a value by a template, with a place for each operand."""

    def write(network: Network, node: Node, args: Sequence[str]) -> str:
        del network, node
        return template.format(*args)

    return write


def fold(template: str) -> WriteValue:
    """Return what writes a value of any number of operands by a template for two."""

    def write(network: Network, node: Node, args: Sequence[str]) -> str:
        del network, node
        return reduce(template.format, args)

    return write


def clip(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write Clip."""
    del network
    value = args[0]
    if node.has(1):
        value = f"max({value},{args[1]})"
    return f"min({value},{args[2]})" if node.has(2) else value


POWERS: Mapping[float, str] = {
    -2.0: "(1/({0}*{0}))",
    -1.0: "(1/{0})",
    -0.5: "(1/sqrt({0}))",
    0.5: "sqrt({0})",
    1.0: "{0}",
    2.0: "({0}*{0})",
    3.0: "({0}*{0}*{0})",
    4.0: "({0}*{0}*{0}*{0})",
}
"""Exponent to the power; others are computed as Python kernels."""


def power(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write Pow by one of the exponents `POWERS`."""
    return POWERS[network.scalar(network.root(node.inputs[1])) or 0.0].format(args[0])


def gelu(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write Gelu, exactly or by tanh."""
    del network
    x = args[0]
    if node.attributes.get("approximate", "none") == "tanh":
        return f"(0.5*{x}*(1+tanh({number(math.sqrt(2 / math.pi))}*({x}+0.044715*{x}*{x}*{x}))))"
    return f"(0.5*{x}*(1+erf({number(math.sqrt(0.5))}*{x})))"


def hard_sigmoid(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write HardSigmoid."""
    del network
    alpha, beta = node.attributes.get("alpha", 0.2), node.attributes.get("beta", 0.5)
    return f"max(0,min(1,{number(alpha)}*{args[0]}+{number(beta)}))"


def leaky(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write LeakyRelu."""
    del network
    return f"where({args[0]} < 0,{number(node.attributes.get('alpha', 0.01))}*{args[0]},{args[0]})"


def elu(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write Elu."""
    del network
    alpha = number(node.attributes.get("alpha", 1.0))
    return f"where({args[0]} < 0,{alpha}*(exp({args[0]})-1),{args[0]})"


def celu(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write Celu."""
    del network
    alpha = number(node.attributes.get("alpha", 1.0))
    return f"(max({args[0]},0)+min({alpha}*(exp({args[0]}/{alpha})-1),0))"


def selu(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write Selu."""
    del network
    alpha = number(node.attributes.get("alpha", 1.6732632))
    gamma = number(node.attributes.get("gamma", 1.0507010))
    return f"({gamma}*where({args[0]} > 0,{args[0]},{alpha}*(exp({args[0]})-1)))"


def thresholded(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write ThresholdedRelu."""
    del network
    return f"where({args[0]} > {number(node.attributes.get('alpha', 1.0))},{args[0]},0)"


def shrink(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write Shrink."""
    del network
    x, limit, bias = args[0], node.attributes.get("lambd", 0.5), number(node.attributes.get("bias", 0.0))
    negative = f"where({x} < {number(-limit)},{x}+{bias},0)"
    return f"where({x} > {number(limit)},{x}-{bias},{negative})"


def is_infinite(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write IsInf."""
    del network
    signs = [s for s, key in ((1, "detect_positive"), (-1, "detect_negative")) if node.attributes.get(key, 1)]
    tests = [f"where({args[0]} == {'inf' if s > 0 else '(-inf)'},1,0)" for s in signs]
    return f"({'+'.join(tests) or '0'})"


def quick_gelu(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write QuickGelu."""
    del network
    return f"({args[0]}*sigmoid({number(node.attributes.get('alpha', 1.702))}*{args[0]}))"


def swish(network: Network, node: Node, args: Sequence[str]) -> str:
    """Write Swish."""
    del network
    return f"({args[0]}*sigmoid({number(node.attributes.get('alpha', 1.0))}*{args[0]}))"
