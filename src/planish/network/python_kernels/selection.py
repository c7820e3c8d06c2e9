"""Operators that compare or count elements along a dimension, as Python kernels."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from planish.network.ir import Array, Network, Node, Shape
from planish.network.operators.contractions import window_steps
from planish.network.python_kernels import scalars
from planish.network.python_kernels.program import PythonKernel, around, divisible, python_kernel

INDEXED_POOL = "MaxPoolIndices"
"""The operator of MaxPool with the indices of its maxima."""


@divisible("before", "after")
def find_extreme(x: Array, out: Array, before: int, n: int, after: int, greatest: bool, last: bool) -> None:
    """Compute ArgMax or ArgMin."""
    for i in range(before):
        for j in range(after):
            best = 0
            for k in range(1, n):
                a = x[(i * n + k) * after + j]
                b = x[(i * n + best) * after + j]
                better = a > b if greatest else a < b
                if better or (last and a == b):
                    best = k
            out[i * after + j] = best


def select_top(
    x: Array,
    values: Array,
    indices: Array,
    order: Array,
    before: int,
    n: int,
    after: int,
    k: int,
    greatest: bool,
) -> None:
    """Compute TopK, in order; of equal elements the first ones."""
    for i in range(before):
        for j in range(after):
            line = x[i * n * after + j :]
            # A heap whose root is the worst of those that are kept.
            size = 0
            for e in range(n):
                if size < k:
                    child = size
                    size = size + 1
                    order[child] = e
                    while child > 0 and precedes(
                        line, order[(child - 1) // 2], order[child], after, greatest
                    ):
                        parent = (child - 1) // 2
                        kept = order[parent]
                        order[parent] = order[child]
                        order[child] = kept
                        child = parent
                elif precedes(line, e, order[0], after, greatest):
                    order[0] = e
                    sink(line, order, size, after, greatest)
            for e in range(k):
                # The worst one goes to the end.
                worst = order[0]
                rest = k - 1 - e
                order[0] = order[rest]
                sink(line, order, rest, after, greatest)
                values[(i * k + rest) * after + j] = line[worst * after]
                indices[(i * k + rest) * after + j] = worst


def precedes(line: Array, a: Any, b: Any, step: int, greatest: bool) -> Any:
    """Return whether element a comes before element b."""
    x = line[a * step]
    y = line[b * step]
    if x == y:
        return a < b
    return x > y if greatest else x < y


def sink(line: Array, order: Array, size: Any, step: int, greatest: bool) -> None:
    """Move the root of a heap down to where it belongs."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and precedes(line, order[child], order[child + 1], step, greatest):
            child = child + 1
        if precedes(line, order[child], order[at], step, greatest):
            break
        kept = order[at]
        order[at] = order[child]
        order[child] = kept
        at = child


@divisible("before", "after")
def cumulate(
    x: Array, out: Array, before: int, n: int, after: int, exclusive: bool, reverse: bool, zero: Any
) -> None:
    """Compute CumSum."""
    for i in range(before):
        for j in range(after):
            total = zero
            for s in range(n):
                k = n - 1 - s if reverse else s
                p = (i * n + k) * after + j
                if exclusive:
                    out[p] = total
                    total = total + x[p]
                else:
                    total = total + x[p]
                    out[p] = total


@divisible("size")
def reduce_whole(
    x: Array, out: Array, size: int, shape: Shape, strides: Shape, reduced: int, inner: Shape, steps: Shape,
    start: int, combine: Any, form: Any, divisor: int,
) -> None:  # fmt: skip
    """Reduce dimensions of whole numbers: those of `inner`, for each element over `shape`."""
    for i in range(size):
        rest = i
        p = 0
        for d in range(len(shape)):
            p = p + rest % shape[d] * strides[d]
            rest = rest // shape[d]
        total = start
        for r in range(reduced):
            rest = r
            q = p
            for d in range(len(inner)):
                q = q + rest % inner[d] * steps[d]
                rest = rest // inner[d]
            total = combine(total, form(x[q]))
        out[i] = scalars.divide(total, divisor) if divisor > 1 else total


@divisible("planes", "rows")
def maximum_in_windows(
    x: Array,
    out: Array,
    indices: Array,
    planes: int,
    high: int,
    wide: int,
    rows: int,
    columns: int,
    kernel: Shape,
    strides: Shape,
    dilations: Shape,
    pads: Shape,
    transposed: bool,
) -> None:
    """Compute MaxPool over two dimensions, with the position of each maximum in the whole tensor."""
    for c in range(planes):
        for y in range(rows):
            for z in range(columns):
                best = -1
                for r in range(kernel[0]):
                    for s in range(kernel[1]):
                        v = y * strides[0] + r * dilations[0] - pads[0]
                        u = z * strides[1] + s * dilations[1] - pads[1]
                        if v >= 0 and v < high and u >= 0 and u < wide:
                            p = (c * high + v) * wide + u
                            if best < 0 or x[p] > x[max(best, 0)]:
                                best = p
                at = (c * rows + y) * columns + z
                out[at] = x[max(best, 0)]
                indices[at] = (c * wide + best % wide) * high + (best // wide) % high if transposed else best


@divisible("planes", "rows")
def triangle(x: Array, out: Array, planes: int, rows: int, columns: int, upper: bool, k: int) -> None:
    """Compute Trilu."""
    for c in range(planes):
        for i in range(rows):
            for j in range(columns):
                p = (c * rows + i) * columns + j
                kept = j >= i + k if upper else j <= i + k
                out[p] = x[p] if kept else 0


def reverse_sequences(
    x: Array, lengths: Array, out: Array, outer: int, inner: int, after: int, time_first: bool
) -> None:
    """Compute ReverseSequence over the first two dimensions."""
    for a in range(outer):
        for b in range(inner):
            t = a if time_first else b
            batch = b if time_first else a
            n = lengths[batch]
            s = n - 1 - t if t < n else t
            source = (s * inner + b if time_first else a * inner + s) * after
            for j in range(after):
                out[(a * inner + b) * after + j] = x[source + j]


def write_arg_extreme(network: Network, node: Node) -> PythonKernel:
    """Write ArgMax or ArgMin."""
    shape, attributes = network.shape(node.inputs[0]), node.attributes
    return python_kernel(
        network, node, find_extreme, "x", **around(shape, attributes.get("axis", 0) % len(shape)),
        greatest=node.base == "ArgMax", last=bool(attributes.get("select_last_index")),
    )  # fmt: skip


def write_top_k(network: Network, node: Node) -> PythonKernel:
    """Write TopK, whose outputs are both computed."""
    shape, largest = network.shape(node.inputs[0]), bool(node.attributes.get("largest", 1))
    d = node.attributes.get("axis", -1) % len(shape)
    k = network.shape(node.output)[d]
    return python_kernel(
        network, node, select_top, "x", "values indices", {"order": ("int64", 8 * max(k, 1))},
        **around(shape, d), k=k, greatest=largest,
    )  # fmt: skip


def write_cumulative_sum(network: Network, node: Node) -> PythonKernel:
    """Write CumSum."""
    value, attributes = network.types[node.inputs[0]], node.attributes
    (axis,) = network.whole_numbers(node, 1) or (0,)
    return python_kernel(
        network, node, cumulate, "x", **around(value.shape, axis % len(value.shape)),
        exclusive=bool(attributes.get("exclusive")), reverse=bool(attributes.get("reverse")),
        zero=0.0 if value.dtype == "float32" else 0,
    )  # fmt: skip


def integer_reduction(
    start: int, combine: Any, form: Any = scalars.same
) -> Callable[[Network, Node], PythonKernel]:
    """Return what writes a reduction of integers.

    Args:
        start: what it begins with.
        combine: how it goes on.
        form: what is made of each element.
    """

    def write(network: Network, node: Node) -> PythonKernel:
        return _reduce(network, node, start, combine, form)

    return write


def _reduce(network: Network, node: Node, start: int, combine: Any, form: Any) -> PythonKernel:
    """Write a reduction of integers."""
    value, out = network.types[node.inputs[0]], network.types[node.output]
    rank = len(value.shape)
    given = network.whole_numbers(node, 1) if node.has(1) else node.attributes.get("axes")
    noop = node.attributes.get("noop_with_empty_axes")
    reduced = {d % rank for d in given} if given else set[int]() if noop else set(range(rank))
    strides = [prod(value.shape[d + 1 :]) for d in range(rank)]
    outer, inner = (
        [d for d in range(rank)[::-1] if d not in reduced],
        [d for d in range(rank)[::-1] if d in reduced],
    )
    count = prod(value.shape[d] for d in inner)
    return python_kernel(
        network, node, reduce_whole, "x", size=out.size, shape=tuple(value.shape[d] for d in outer),
        strides=tuple(strides[d] for d in outer), reduced=count, inner=tuple(value.shape[d] for d in inner),
        steps=tuple(strides[d] for d in inner), start=start, combine=combine, form=form,
        divisor=count if node.base == "ReduceMean" else 1,
    )  # fmt: skip


def write_indexed_pooling(network: Network, node: Node) -> PythonKernel:
    """Write MaxPool with the indices of its maxima, over one or two dimensions."""
    shape, out = network.shape(node.inputs[0]), network.shape(node.output)
    rank = len(shape) - 2
    if rank > 2:
        raise node.refuse(f"indices over {rank} dimensions are not covered")
    kernel = tuple(node.attributes["kernel_shape"])
    strides, dilations, pads = window_steps(node, shape[2:], kernel)
    one = (1,) * (2 - rank)
    return python_kernel(
        network, node, maximum_in_windows, "x", "out indices", planes=prod(shape[:2]),
        high=(*one, *shape[2:])[0], wide=shape[-1], rows=(*one, *out[2:])[0], columns=out[-1],
        kernel=one + kernel, strides=one + strides, dilations=one + dilations,
        pads=(0,) * (2 - rank) + tuple(before for before, _ in pads),
        transposed=bool(node.attributes.get("storage_order")),
    )  # fmt: skip


def write_triangle(network: Network, node: Node) -> PythonKernel:
    """Write Trilu."""
    (*outer, rows, columns), (k,) = network.shape(node.inputs[0]), network.whole_numbers(node, 1) or (0,)
    upper = bool(node.attributes.get("upper", 1))
    return python_kernel(
        network, node, triangle, "x", planes=prod(outer), rows=rows, columns=columns, upper=upper, k=k
    )


def write_reversed_sequences(network: Network, node: Node) -> PythonKernel:
    """Write ReverseSequence."""
    outer, inner, *rest = network.shape(node.inputs[0])
    return python_kernel(
        network, node, reverse_sequences, "x lengths", outer=outer, inner=inner, after=prod(rest),
        time_first=node.attributes.get("time_axis", 0) == 0,
    )  # fmt: skip
