"""Element-wise operators of integers, and those of floats that programs of `loops` cannot compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from planish.network.ir import Array, Network, Node, Shape
from planish.network.operators.builder import align_shape
from planish.network.python_kernels import scalars
from planish.network.python_kernels.program import PythonKernel, PythonProgram, divisible

Scalar = Callable[..., Any]


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
    wide = [align_shape(each, len(shape)) for each in operands]
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


@divisible("rows", "columns")
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


@divisible("rows", "columns")
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


@divisible("rows", "columns")
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


def pointwise(function: Scalar) -> Callable[[Network, Node], PythonKernel]:
    """Return what writes an element-wise operator by a function of numbers."""

    def write(network: Network, node: Node) -> PythonKernel:
        return _map(network, node, function)

    return write


def write_bit_shift(network: Network, node: Node) -> PythonKernel:
    """Write BitShift."""
    left = node.attributes["direction"] == "LEFT"
    return _map(network, node, scalars.shift_left if left else scalars.shift_right)


def write_cast(network: Network, node: Node) -> PythonKernel:
    """Write Cast; one to truth values has the attribute `truth`."""
    source, target = network.types[node.inputs[0]].dtype, network.types[node.output].dtype
    if "float16" in (source, target):
        return _map(network, node, scalars.half_to_float if source == "float16" else scalars.float_to_half)
    cuts = "float" in source and "int" in target
    function = scalars.truth if node.attributes.get("truth") else scalars.truncated if cuts else scalars.same
    return _map(network, node, function)


def write_modulo(network: Network, node: Node) -> PythonKernel:
    """Write Mod, with the sign of the divisor, or with the attribute `fmod` that of the dividend."""
    floats = network.types[node.output].dtype == "float32"
    if node.attributes.get("fmod"):
        return _map(network, node, scalars.float_remainder if floats else scalars.remainder)
    return _map(network, node, scalars.float_modulo if floats else scalars.modulo)


def write_power(network: Network, node: Node) -> PythonKernel:
    """Write Pow of integers, whose exponents may be floats."""
    floats = "float32" in {network.types[name].dtype for name in node.inputs}
    return _map(network, node, scalars.float_power if floats else scalars.power)


def _map(network: Network, node: Node, function: Scalar) -> PythonKernel:
    """Write a function of each element; the operands are broadcast to the result."""
    inputs = [name for name in node.inputs if name]
    types = [network.types[name] for name in inputs]
    out = network.types[node.output]
    rows = _rows(out.shape, [each.shape for each in types])
    names = "abc"[: len(inputs)]
    # Kernels have no float16: they read and write its bits.
    dtypes = ["uint16" if each.dtype == "float16" else each.dtype for each in (*types, out)]
    arrays = list(zip((*names, "out"), dtypes, strict=True))
    constants: list[tuple[str, Any]] = [
        ("function", function),
        ("rows", out.size // rows.columns),
        ("columns", rows.columns),
        ("shape", rows.shape),
        *((f"of_{name}", strides) for name, strides in zip(names, rows.strides, strict=True)),
        *((f"step_{name}", step) for name, step in zip(names, rows.steps, strict=True)),
    ]
    kernel = (map_one, map_two, map_three)[len(inputs) - 1]
    program = PythonProgram(kernel, tuple(arrays), tuple(constants), flops=out.size)
    return PythonKernel((node,), program, dict(zip(names, inputs, strict=True)), {"out": node.output})
