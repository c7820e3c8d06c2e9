"""Operators that move elements of any type, as Python kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import add, mul
from typing import Any

import numpy as np

from planish.network.ir import Array, Network, Node, Shape, TensorType
from planish.network.python_kernels.program import (
    PythonKernel,
    PythonProgram,
    around,
    divisible,
    python_kernel,
)

COPY = "Copy"
"""The operator of a node that copies by tables: attributes `tables`, and `fill` where one of them is -1."""
WRAP = "WrapIndices"
"""The operator of a node that makes indices count from the beginning: attribute `extent`."""


@divisible("rows", "columns")
def copy_by_tables(
    x: Array,
    tables: Array,
    out: Array,
    rows: int,
    columns: int,
    shape: Shape,
    starts: Shape,
    dense: bool,
    fill: Any,
) -> None:
    """Copy to each element the one whose index is the sum of what the tables have for its position.

    A row is copied at once where the last table counts up by one; elsewhere -1 stands for `fill`.
    """
    for row in range(rows):
        rest = row
        p = 0
        missing = 0
        for d in range(len(shape)):
            q = tables[starts[d] + rest % shape[d]]
            rest = rest // shape[d]
            p = p + q
            missing = missing + int(q < 0)
        if missing > 0:
            for j in range(columns):
                out[row * columns + j] = fill
        elif dense:
            for j in range(columns):
                out[row * columns + j] = x[p + j]
        else:
            for j in range(columns):
                q = tables[j]
                out[row * columns + j] = fill if q < 0 else x[p + max(q, 0)]


def write_copy(network: Network, node: Node) -> PythonKernel:
    """Write a copy by tables: for each dimension of the result, the offset of each of its positions."""
    source, out = network.types[node.inputs[0]], network.types[node.output]
    tables: Sequence[Array] = node.attributes["tables"] or [np.zeros(1, np.int64)]
    fill = node.attributes.get("fill", 0)
    fill = float(fill) if source.dtype == "float32" else int(fill)
    tables = _join_tables(tables)
    columns = len(tables[-1])
    dense = bool((tables[-1] == np.arange(columns)).all())
    others = tables[-2::-1]
    starts = np.cumsum([columns, *map(len, others)])[:-1]
    name = f"{node.output} tables"
    constants = (
        ("rows", out.size // columns if columns else 0),
        ("columns", columns),
        ("shape", tuple(map(len, others))),
        ("starts", tuple(int(n) for n in starts)),
        ("dense", dense),
        ("fill", fill),
    )
    program = PythonProgram(
        copy_by_tables, (("x", source.dtype), ("tables", "int64"), ("out", out.dtype)), constants
    )
    table = np.concatenate([tables[-1], *others]).astype(np.int64)
    return PythonKernel(
        (node,), program, {"x": node.inputs[0], "tables": name}, {"out": node.output}, {name: table}
    )


def _join_tables(tables: Sequence[Array]) -> list[Array]:
    """Join dimensions whose tables are those of one dimension; a table has no element but -1 or an offset."""
    found = [tables[0]]
    for table in tables[1:]:
        last = found[-1]
        whole = (last >= 0).all() and (table >= 0).all()
        if whole and len(last) * len(table) <= 4096:
            found[-1] = (last[:, None] + table[None, :]).reshape(-1)
        else:
            found.append(table)
    return found


def strides_of(shape: Shape) -> Shape:
    """Return the elements between neighbors along each dimension."""
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))


def copy_tables(operator: str, network: Mapping[str, TensorType], node: Node) -> list[Array]:
    """Return the tables of operators that copy, but for those whose tables have constants of their own."""
    shape, out = network[node.inputs[0]].shape, network[node.output].shape
    strides = strides_of(shape)
    match operator:
        case "Transpose":
            order = node.attributes.get("perm") or range(len(shape))[::-1]
            return [np.arange(shape[d]) * strides[d] for d in order]
        case "Expand":
            wide, rank = (1,) * (len(out) - len(shape)) + shape, len(out)
            padded = (0,) * (rank - len(shape)) + strides
            return [
                np.arange(n) * padded[d] if wide[d] > 1 else np.zeros(n, np.int64) for d, n in enumerate(out)
            ]
        case "Tile":
            return [np.arange(n) % m * s for n, m, s in zip(out, shape, strides, strict=True)]
        case _:
            starts, steps = node.attributes["starts"], node.attributes["steps"]
            return [
                (start + step * np.arange(n)) * s
                for n, start, step, s in zip(out, starts, steps, strides, strict=True)
            ]


def padded_table(n: int, before: int, after: int, mode: str) -> Array:
    """Return which element of a dimension each element of the padded one is; -1 for none."""
    index = np.arange(-before, n + after)
    match mode:
        case "edge":
            return np.clip(index, 0, n - 1)
        case "reflect":
            period = max(1, 2 * (n - 1))
            index = np.abs(index) % period
            return np.where(index >= n, period - index, index)
        case "wrap":
            return index % n
        case _:
            return np.where((index >= 0) & (index < n), index, -1)


@divisible("rows")
def join_two(a: Array, b: Array, out: Array, rows: int, of_a: int, of_b: int) -> None:
    """Concatenate each row of two tensors."""
    for row in range(rows):
        for j in range(of_a):
            out[row * (of_a + of_b) + j] = a[row * of_a + j]
        for j in range(of_b):
            out[row * (of_a + of_b) + of_a + j] = b[row * of_b + j]


def write_concatenation(network: Network, node: Node) -> PythonKernel:
    """Write Concat of two tensors."""
    a, b = (network.shape(name) for name in node.inputs)
    d = node.attributes["axis"] % len(a)
    rows, of_a, of_b = prod(a[:d]), prod(a[d:]), prod(b[d:])
    return python_kernel(network, node, join_two, "a b", rows=rows, of_a=of_a, of_b=of_b)


# Look-ups by indices that are computed


def clamped(index: Any, n: int) -> Any:
    """Return an index from 0, where negative ones count from the end; it is within the dimension."""
    return min(max(index + n if index < 0 else index, 0), n - 1)


@divisible("count")
def wrap(x: Array, out: Array, count: int, n: int) -> None:
    """Make all indices count from the beginning."""
    for i in range(count):
        out[i] = clamped(x[i], n)


@divisible("before", "count")
def gather_rows(x: Array, indices: Array, out: Array, before: int, n: int, count: int, after: int) -> None:
    """Compute Gather along one dimension."""
    for i in range(before):
        for k in range(count):
            p = (i * n + clamped(indices[k], n)) * after
            for j in range(after):
                out[(i * count + k) * after + j] = x[p + j]


def offset_along(i: int, index: int, shape: Shape, strides: Shape, axis: int) -> int:
    """Return the offset of element i of a shape, whose index along one dimension is replaced."""
    rest = i
    p = index * strides[axis]
    for e in range(len(shape)):
        d = len(shape) - 1 - e
        if d != axis:
            p = p + rest % shape[d] * strides[d]
        rest = rest // shape[d]
    return p


@divisible("size")
def gather_elements(
    x: Array, indices: Array, out: Array, size: int, shape: Shape, strides: Shape, axis: int, n: int
) -> None:
    """Compute GatherElements; `shape` is that of the indices, and `strides` of x."""
    for i in range(size):
        out[i] = x[offset_along(i, clamped(indices[i], n), shape, strides, axis)]


def scatter_elements(
    x: Array, indices: Array, updates: Array, out: Array, whole: int, size: int, shape: Shape, strides: Shape,
    axis: int, n: int, combine: Any,
) -> None:  # fmt: skip
    """Compute ScatterElements."""
    for i in range(whole):
        out[i] = x[i]
    for i in range(size):
        p = offset_along(i, clamped(indices[i], n), shape, strides, axis)
        out[p] = updates[i] if combine is None else combine(out[p], updates[i])


@divisible("batches", "count")
def gather_nd(
    x: Array,
    indices: Array,
    out: Array,
    batches: int,
    count: int,
    depth: int,
    extents: Shape,
    strides: Shape,
    step: int,
    columns: int,
) -> None:
    """Compute GatherND: `step` elements of x are of one batch."""
    for b in range(batches):
        for i in range(count):
            p = b * step
            for d in range(depth):
                p = p + clamped(indices[(b * count + i) * depth + d], extents[d]) * strides[d]
            for j in range(columns):
                out[(b * count + i) * columns + j] = x[p + j]


def scatter_nd(
    x: Array, indices: Array, updates: Array, found: Any, out: Array, whole: int, count: int, depth: int,
    extents: Shape, strides: Shape, columns: int, combine: Any,
) -> None:  # fmt: skip
    """Compute ScatterND; `found` has how many indices there are, if that depends on data."""
    for i in range(whole):
        out[i] = x[i]
    for i in range(count if found is None else found[0]):
        p = 0
        for d in range(depth):
            p = p + clamped(indices[i * depth + d], extents[d]) * strides[d]
        for j in range(columns):
            value = updates[i * columns + j]
            out[p + j] = value if combine is None else combine(out[p + j], value)


@divisible("before", "depth")
def one_hot(indices: Array, values: Array, out: Array, before: int, depth: int, after: int) -> None:
    """Compute OneHot; an index out of range has no element that is on."""
    for i in range(before):
        for k in range(depth):
            for j in range(after):
                index = int(indices[i * after + j])
                index = index + depth if index < 0 else index
                out[(i * depth + k) * after + j] = values[1] if index == k else values[0]


def write_wrapped_indices(network: Network, node: Node) -> PythonKernel:
    """Write indices that count from the beginning."""
    size = network.types[node.output].size
    return python_kernel(network, node, wrap, "x", count=size, n=node.attributes["extent"])


def write_gather(network: Network, node: Node) -> PythonKernel:
    """Write Gather."""
    shape, indices = network.shape(node.inputs[0]), network.shape(node.inputs[1])
    sizes = around(shape, node.attributes.get("axis", 0) % len(shape))
    return python_kernel(network, node, gather_rows, "x indices", **sizes, count=prod(indices))


def write_gather_elements(network: Network, node: Node) -> PythonKernel:
    """Write GatherElements."""
    return python_kernel(network, node, gather_elements, "x indices", **_elements(network, node))


def _elements(network: Network, node: Node) -> dict[str, Any]:
    shape, indices = network.shape(node.inputs[0]), network.shape(node.inputs[1])
    axis = node.attributes.get("axis", 0) % len(shape)
    return {
        "size": prod(indices), "shape": indices, "strides": strides_of(shape), "axis": axis, "n": shape[axis],
    }  # fmt: skip


_COMBINED: Mapping[str, Any] = {"none": None, "add": add, "mul": mul, "max": max, "min": min}
"""Operators by which updates join what is there; None where they replace it."""


def write_scatter_elements(network: Network, node: Node) -> PythonKernel:
    """Write ScatterElements."""
    whole, how = network.types[node.output].size, _COMBINED[node.attributes.get("reduction", "none")]
    elements = _elements(network, node)
    return python_kernel(
        network, node, scatter_elements, "x indices updates", whole=whole, **elements, combine=how
    )


def write_gather_nd(network: Network, node: Node) -> PythonKernel:
    """Write GatherND."""
    shape, indices = network.shape(node.inputs[0]), network.shape(node.inputs[1])
    first, depth = node.attributes.get("batch_dims", 0), indices[-1]
    after = first + depth
    return python_kernel(
        network, node, gather_nd, "x indices", batches=prod(shape[:first]), count=prod(indices[first:-1]),
        depth=depth, extents=shape[first:after], strides=strides_of(shape)[first:after],
        step=prod(shape[first:]), columns=prod(shape[after:]),
    )  # fmt: skip


def write_scatter_nd(network: Network, node: Node) -> PythonKernel:
    """Write ScatterND."""
    shape, indices = network.shape(node.inputs[0]), network.shape(node.inputs[1])
    depth = indices[-1]
    found: dict[str, Any] = {} if node.has(3) else {"found": None}
    return python_kernel(
        network, node, scatter_nd, "x indices updates found", **found,
        whole=prod(shape), count=prod(indices[:-1]), depth=depth, extents=shape[:depth],
        strides=strides_of(shape)[:depth], columns=prod(shape[depth:]),
        combine=_COMBINED[node.attributes.get("reduction", "none")],
    )  # fmt: skip


def write_one_hot(network: Network, node: Node) -> PythonKernel:
    """Write OneHot."""
    out = network.shape(node.output)
    d = node.attributes.get("axis", -1) % len(out)
    taken = Node(node.operator, node.name, (node.inputs[0], node.inputs[2]), node.output, node.attributes)
    before, after = prod(out[:d]), prod(out[d + 1 :])
    return python_kernel(network, taken, one_hot, "indices values", before=before, depth=out[d], after=after)
