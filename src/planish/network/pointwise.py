"""Element-wise operators in plain code: of whole numbers, and of what programs of `loops` cannot compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planish.network import scalars
from planish.network.drafts import aligned
from planish.network.model import Array, Network, Node, Shape
from planish.network.plain import PlainKernel, PlainProgram

Scalar = Callable[..., Any]

WHOLE: Mapping[str, Scalar] = {
    "Abs": scalars.absolute,
    "Add": scalars.add,
    "BitwiseAnd": scalars.bits_and,
    "BitwiseNot": scalars.bits_not,
    "BitwiseOr": scalars.bits_or,
    "BitwiseXor": scalars.bits_xor,
    "Clip": scalars.within,
    "Div": scalars.divide,
    "Equal": scalars.equal,
    "Expand": scalars.same,
    "Greater": scalars.greater,
    "GreaterOrEqual": scalars.greater_or_equal,
    "Identity": scalars.same,
    "Less": scalars.less,
    "LessOrEqual": scalars.less_or_equal,
    "Max": scalars.larger,
    "Min": scalars.smaller,
    "Mod": scalars.modulo,
    "Mul": scalars.multiply,
    "Neg": scalars.negate,
    "Pow": scalars.power,
    "Sign": scalars.sign,
    "Sub": scalars.subtract,
    "Sum": scalars.add,
    "Where": scalars.choose,
}
"""Operator to the function of whole numbers."""

FLOATS: Mapping[str, Scalar] = {
    "Acos": scalars.arccosine,
    "Acosh": scalars.inverse_hyperbolic_cosine,
    "Asin": scalars.arcsine,
    "Asinh": scalars.inverse_hyperbolic_sine,
    "Atan": scalars.arctangent,
    "Atanh": scalars.inverse_hyperbolic_tangent,
    "Ceil": scalars.ceil,
    "Cos": scalars.cosine,
    "Cosh": scalars.hyperbolic_cosine,
    "Floor": scalars.floor,
    "Mod": scalars.float_remainder,
    "Power": scalars.float_power,
    "Round": scalars.nearest,
    "Sin": scalars.sine,
    "Sinh": scalars.hyperbolic_sine,
    "Tan": scalars.tangent,
}
"""Operator to the function of floats, where `loops` has none; `Power` is `Pow` by any exponent."""


@dataclass(frozen=True)
class _Rows:
    """Iteration over a result as rows, and where each operand has its elements.

    Args:
        shape: extents of the axes around the rows, the innermost first.
        columns: elements of a row.
        strides: of each operand along these axes.
        steps: of each operand along a row.
    """

    shape: Shape
    columns: int
    strides: Sequence[Shape]
    steps: Shape


def _rows(shape: Shape, operands: Sequence[Shape]) -> _Rows:
    """Join dimensions that all operands have or lack alike."""
    wide = [aligned(each, len(shape)) for each in operands]
    groups = list[tuple[int, tuple[bool, ...]]]()
    for d, extent in enumerate(shape):
        if extent == 1:
            continue
        there = tuple(each[d] > 1 for each in wide)
        if groups and groups[-1][1] == there:
            groups[-1] = groups[-1][0] * extent, there
        else:
            groups.append((extent, there))
    groups = groups or [(1, (True,) * len(wide))]
    strides = list[list[int]]()
    for index in range(len(wide)):
        stride, found = 1, list[int]()
        for extent, there in groups[::-1]:
            found.append(stride if there[index] else 0)
            stride *= extent if there[index] else 1
        strides.append(found)
    outer = tuple(extent for extent, _ in groups[-2::-1])
    return _Rows(
        outer, groups[-1][0], [tuple(each[1:]) for each in strides], tuple(each[0] for each in strides)
    )


def map_one(
    a: Array, out: Array, function: Scalar, rows: int, columns: int, shape: Shape, of_a: Shape, step_a: int
) -> None:
    """Compute function(a)."""
    for row in range(rows):
        rest = row
        p = 0
        for d in range(len(shape)):
            p = p + rest % shape[d] * of_a[d]
            rest = rest // shape[d]
        for j in range(columns):
            out[row * columns + j] = function(a[p + j * step_a])


def map_two(
    a: Array, b: Array, out: Array, function: Scalar, rows: int, columns: int, shape: Shape,
    of_a: Shape, of_b: Shape, step_a: int, step_b: int,
) -> None:  # fmt: skip
    """Compute function(a, b)."""
    for row in range(rows):
        rest = row
        p = 0
        q = 0
        for d in range(len(shape)):
            p = p + rest % shape[d] * of_a[d]
            q = q + rest % shape[d] * of_b[d]
            rest = rest // shape[d]
        for j in range(columns):
            out[row * columns + j] = function(a[p + j * step_a], b[q + j * step_b])


def map_three(
    a: Array, b: Array, c: Array, out: Array, function: Scalar, rows: int, columns: int, shape: Shape,
    of_a: Shape, of_b: Shape, of_c: Shape, step_a: int, step_b: int, step_c: int,
) -> None:  # fmt: skip
    """Compute function(a, b, c)."""
    for row in range(rows):
        rest = row
        p = 0
        q = 0
        r = 0
        for d in range(len(shape)):
            p = p + rest % shape[d] * of_a[d]
            q = q + rest % shape[d] * of_b[d]
            r = r + rest % shape[d] * of_c[d]
            rest = rest // shape[d]
        for j in range(columns):
            out[row * columns + j] = function(a[p + j * step_a], b[q + j * step_b], c[r + j * step_c])


def pointwise(network: Network, node: Node) -> PlainKernel:
    """Write an element-wise operator; its operands are broadcast to its result."""
    inputs = [name for name in node.inputs if name]
    if node.base == "Expand":
        inputs = inputs[:1]
    values = [network.values[name] for name in inputs]
    out = network.values[node.output]
    rows = _rows(out.shape, [value.shape for value in values])
    names = "abc"[: len(inputs)]
    arrays = [*zip(names, (value.dtype for value in values), strict=True), ("out", out.dtype)]
    constants: list[tuple[str, Any]] = [
        ("function", function_of(network, node)),
        ("rows", out.size // rows.columns),
        ("columns", rows.columns),
        ("shape", rows.shape),
        *((f"of_{name}", strides) for name, strides in zip(names, rows.strides, strict=True)),
        *((f"step_{name}", step) for name, step in zip(names, rows.steps, strict=True)),
    ]
    function = (map_one, map_two, map_three)[len(inputs) - 1]
    program = PlainProgram(function, tuple(arrays), tuple(constants), flops=out.size)
    return PlainKernel((node,), program, dict(zip(names, inputs, strict=True)), {"out": node.output})


def function_of(network: Network, node: Node) -> Scalar:
    """Return what a node computes of each element."""
    kinds = {network.values[name].dtype for name in node.inputs if name}
    if node.base == "Cast":
        return _cast(network, node)
    if node.base == "Mod" and not node.attributes.get("fmod"):
        return scalars.modulo if "float32" not in kinds else scalars.float_modulo
    if kinds == {"float32"} and node.base in FLOATS:
        return FLOATS[node.base]
    known = {"Mod": scalars.remainder, "Pow": scalars.float_power if "float32" in kinds else scalars.power}
    if node.base == "BitShift":
        return scalars.shift_left if node.attributes["direction"] == "LEFT" else scalars.shift_right
    return known.get(node.base) or WHOLE[node.base]


def _cast(network: Network, node: Node) -> Scalar:
    source, target = network.values[node.inputs[0]].dtype, network.values[node.output].dtype
    if node.attributes.get("truth"):
        return scalars.truth
    return scalars.truncated if "float" in source and "int" in target else scalars.same
