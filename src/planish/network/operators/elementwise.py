"""Element-wise operators of ONNX, as values of `loops`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from planish.network.ir import Network, Node
from planish.network.operators.builder import number

WriteValue = Callable[[Network, Node, Sequence[str]], str]
"""Writes the value of a node, from those of its inputs."""


def form(template: str, **usual: float) -> WriteValue:
    """Return what writes a value by a template, with a place for each operand and each attribute.

    Args:
        template: as of `str.format`.
        usual: the attributes that it names, with their defaults.
    """

    def write(_network: Network, node: Node, args: Sequence[str]) -> str:
        numbers = {name: number(node.attributes.get(name, default)) for name, default in usual.items()}
        return template.format(*args, **numbers)

    return write


def fold(template: str) -> WriteValue:
    """Return what writes a value of any number of operands by a template for two."""

    def write(_network: Network, _node: Node, args: Sequence[str]) -> str:
        return reduce(template.format, args)

    return write


def clip(_network: Network, node: Node, args: Sequence[str]) -> str:
    """Write Clip."""
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


def gelu(_network: Network, node: Node, args: Sequence[str]) -> str:
    """Write Gelu, exactly or by tanh."""
    x = args[0]
    if node.attributes.get("approximate", "none") == "tanh":
        return f"(0.5*{x}*(1+tanh({number(math.sqrt(2 / math.pi))}*({x}+0.044715*{x}*{x}*{x}))))"
    return f"(0.5*{x}*(1+erf({number(math.sqrt(0.5))}*{x})))"


def shrink(_network: Network, node: Node, args: Sequence[str]) -> str:
    """Write Shrink."""
    x, limit, bias = args[0], node.attributes.get("lambd", 0.5), number(node.attributes.get("bias", 0.0))
    negative = f"where({x} < {number(-limit)},{x}+{bias},0)"
    return f"where({x} > {number(limit)},{x}-{bias},{negative})"


def is_infinite(_network: Network, node: Node, args: Sequence[str]) -> str:
    """Write IsInf."""
    signs = [s for s, key in ((1, "detect_positive"), (-1, "detect_negative")) if node.attributes.get(key, 1)]
    tests = [f"where({args[0]} == {'inf' if s > 0 else '(-inf)'},1,0)" for s in signs]
    return f"({'+'.join(tests) or '0'})"
