"""Element-wise operators of ONNX, as values of `loops`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from planish.network.drafts import number
from planish.network.model import Network, Node

Write = Callable[[Network, Node, Sequence[str]], str]
"""Writes the value of a node, from those of its inputs."""


def _form(template: str) -> Write:
    def write(network: Network, node: Node, args: Sequence[str]) -> str:
        del network, node
        return template.format(*args)

    return write


def _fold(template: str) -> Write:
    def write(network: Network, node: Node, args: Sequence[str]) -> str:
        del network, node
        return reduce(template.format, args)

    return write


def _clip(network: Network, node: Node, args: Sequence[str]) -> str:
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
"""Exponent to the power; others are computed in plain code."""


def _pow(network: Network, node: Node, args: Sequence[str]) -> str:
    return POWERS[network.scalar(network.root(node.inputs[1])) or 0.0].format(args[0])


def _gelu(network: Network, node: Node, args: Sequence[str]) -> str:
    del network
    x = args[0]
    if node.attributes.get("approximate", "none") == "tanh":
        return f"(0.5*{x}*(1+tanh({number(math.sqrt(2 / math.pi))}*({x}+0.044715*{x}*{x}*{x}))))"
    return f"(0.5*{x}*(1+erf({number(math.sqrt(0.5))}*{x})))"


def _hard_sigmoid(network: Network, node: Node, args: Sequence[str]) -> str:
    del network
    alpha, beta = node.attributes.get("alpha", 0.2), node.attributes.get("beta", 0.5)
    return f"max(0,min(1,{number(alpha)}*{args[0]}+{number(beta)}))"


def _leaky(network: Network, node: Node, args: Sequence[str]) -> str:
    del network
    return f"where({args[0]} < 0,{number(node.attributes.get('alpha', 0.01))}*{args[0]},{args[0]})"


def _elu(network: Network, node: Node, args: Sequence[str]) -> str:
    del network
    alpha = number(node.attributes.get("alpha", 1.0))
    return f"where({args[0]} < 0,{alpha}*(exp({args[0]})-1),{args[0]})"


def _celu(network: Network, node: Node, args: Sequence[str]) -> str:
    del network
    alpha = number(node.attributes.get("alpha", 1.0))
    return f"(max({args[0]},0)+min({alpha}*(exp({args[0]}/{alpha})-1),0))"


def _selu(network: Network, node: Node, args: Sequence[str]) -> str:
    del network
    alpha = number(node.attributes.get("alpha", 1.6732632))
    gamma = number(node.attributes.get("gamma", 1.0507010))
    return f"({gamma}*where({args[0]} > 0,{args[0]},{alpha}*(exp({args[0]})-1)))"


def _thresholded(network: Network, node: Node, args: Sequence[str]) -> str:
    del network
    return f"where({args[0]} > {number(node.attributes.get('alpha', 1.0))},{args[0]},0)"


def _shrink(network: Network, node: Node, args: Sequence[str]) -> str:
    del network
    x, limit, bias = args[0], node.attributes.get("lambd", 0.5), number(node.attributes.get("bias", 0.0))
    negative = f"where({x} < {number(-limit)},{x}+{bias},0)"
    return f"where({x} > {number(limit)},{x}-{bias},{negative})"


def _is_infinite(network: Network, node: Node, args: Sequence[str]) -> str:
    del network
    signs = [s for s, key in ((1, "detect_positive"), (-1, "detect_negative")) if node.attributes.get(key, 1)]
    tests = [f"where({args[0]} == {'inf' if s > 0 else '(-inf)'},1,0)" for s in signs]
    return f"({'+'.join(tests) or '0'})"


def _quick_gelu(network: Network, node: Node, args: Sequence[str]) -> str:
    del network
    return f"({args[0]}*sigmoid({number(node.attributes.get('alpha', 1.702))}*{args[0]}))"


def _swish(network: Network, node: Node, args: Sequence[str]) -> str:
    del network
    return f"({args[0]}*sigmoid({number(node.attributes.get('alpha', 1.0))}*{args[0]}))"


ELEMENTWISE: Mapping[str, Write] = {
    "Abs": _form("abs({0})"),
    "Add": _form("({0}+{1})"),
    "And": _form("({0}*{1})"),
    "Celu": _celu,
    "Clip": _clip,
    "Div": _form("({0}/{1})"),
    "Elu": _elu,
    "Equal": _form("where({0} == {1},1,0)"),
    "Erf": _form("erf({0})"),
    "Exp": _form("exp({0})"),
    "Expand": _form("{0}"),
    "Gelu": _gelu,
    "Greater": _form("where({0} > {1},1,0)"),
    "GreaterOrEqual": _form("where({0} >= {1},1,0)"),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _form("({0}*max(0,min(1,{0}*0.16666667+0.5)))"),
    "IsInf": _is_infinite,
    "IsNaN": _form("where({0} != {0},1,0)"),
    "LeakyRelu": _leaky,
    "Less": _form("where({0} < {1},1,0)"),
    "LessOrEqual": _form("where({0} <= {1},1,0)"),
    "Log": _form("log({0})"),
    "Max": _fold("max({0},{1})"),
    "Min": _fold("min({0},{1})"),
    "Mish": _form("({0}*tanh(max({0},0)+log(1+exp(neg(abs({0}))))))"),
    "Mul": _form("({0}*{1})"),
    "Neg": _form("neg({0})"),
    "Not": _form("(1-{0})"),
    "Or": _form("max({0},{1})"),
    "PRelu": _form("where({0} < 0,{1}*{0},{0})"),
    "Pow": _pow,
    "QuickGelu": _quick_gelu,
    "Reciprocal": _form("(1/{0})"),
    "Relu": _form("relu({0})"),
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": _form("sigmoid({0})"),
    "Sign": _form("where({0} > 0,1,where({0} < 0,-1,{0}))"),
    "Softplus": _form("(max({0},0)+log(1+exp(neg(abs({0})))))"),
    "Softsign": _form("({0}/(1+abs({0})))"),
    "Sqrt": _form("sqrt({0})"),
    "Sub": _form("({0}-{1})"),
    "Sum": _fold("({0}+{1})"),
    "Swish": _swish,
    "Tanh": _form("tanh({0})"),
    "ThresholdedRelu": _thresholded,
    "Truth": _form("where({0} != 0,1,0)"),
    "Where": _form("where({0} != 0,{1},{2})"),
    "Xor": _form("where({0} != {1},1,0)"),
}
"""Operator to what writes it."""

ONCE = frozenset(ELEMENTWISE) - {
    "Celu",
    "Elu",
    "Gelu",
    "HardSwish",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Mish",
    "PRelu",
    "Pow",
    "QuickGelu",
    "Selu",
    "Shrink",
    "Sign",
    "Softplus",
    "Softsign",
    "Swish",
    "ThresholdedRelu",
}
"""Operators that name each input once, so that a computed one needs no name of its own."""
