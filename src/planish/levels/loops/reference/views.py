"""Accesses as strided NumPy views, and products summed by matrix multiplication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from planish.levels.loops.lang.draft import parts_of
from planish.levels.loops.lang.program import Access, Expr, Index

Array = NDArray[Any]
Arrays = Mapping[str, Array]
"""Tensor to elements."""
CHUNK = 1 << 14
"""Elements that are worked on at once: they stay in the cache; whole arrays would pass through memory."""
_SHORT = 1 << 14
"""Bytes that are compared sooner by Python than by NumPy, whose calls take longer than that."""


def overhang(access: Access, shape: Sequence[int], sizes: Mapping[str, int]) -> list[tuple[int, int]]:
    """Count what is read before and after the tensor, for each dimension; zeros where it is not left."""
    bounds = [index.bounds(sizes) for index in access.index]
    return [(max(0, -low), max(0, high + 1 - n)) for (low, high), n in zip(bounds, shape, strict=True)]


def view(
    array: Array,
    index: Sequence[Index],
    axes: Sequence[str],
    sizes: Mapping[str, int],
    before: Sequence[int] | None = None,
) -> Array:
    """View the elements that an access reads or writes, with one dimension for each axis.

    Args:
        array: the tensor, of any strides, with its padding.
        index: the access's subscripts.
        axes: the dimensions of the result; one that the subscripts lack has extent 1.
        sizes: axis to extent.
        before: how many elements of padding the array has before its start, by dimension.

    Returns:
        A view; its elements overlap where windows do.
    """
    start = [i.offset + b for i, b in zip(index, before or [0] * len(index), strict=True)]
    stride = dict.fromkeys(axes, 0)
    named = {axis for i in index for axis, _ in i.terms}
    for i, step in zip(index, array.strides, strict=True):
        for axis, coefficient in i.terms:
            stride[axis] += coefficient * step
    shape = [sizes[axis] if axis in named else 1 for axis in axes]
    return as_strided(array[(*(slice(s, None) for s in start), ...)], shape, list(stride.values()))


def cut(extents: Sequence[int], groups: Sequence[Sequence[int]], most: int) -> Iterator[tuple[slice, ...]]:
    """Cut a space into windows, so that over each of these groups of its dimensions they have few points.

    Args:
        extents: of the space.
        groups: positions of dimensions.
        most: points of a window over any group.
    """
    waiting = [tuple(slice(0, n) for n in extents)]
    while waiting:
        window = waiting.pop()
        sizes = [w.stop - w.start for w in window]
        largest = max(groups, key=lambda group: prod(sizes[p] for p in group))
        if prod(sizes[p] for p in largest) <= most:
            yield window
            continue
        p = max(largest, key=lambda p: sizes[p])
        middle = (window[p].start + window[p].stop) // 2
        halves = slice(window[p].start, middle), slice(middle, window[p].stop)
        waiting += [(*window[:p], half, *window[p + 1 :]) for half in halves]


def chunks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Cut arrays of one shape into short pieces of one dimension; views where they are contiguous."""
    flat = [array.reshape(-1) for array in arrays]
    return (tuple([each[start : start + CHUNK] for each in flat]) for start in range(0, flat[0].size, CHUNK))


def same_bits(a: Array, b: Array) -> bool:
    """Return True if two contiguous arrays of one shape and type have the same bits, also of NaN."""
    if a.nbytes <= _SHORT:
        return a.tobytes() == b.tobytes()
    # The widest words that fit: the fewest comparisons, and the smallest array of their results.
    word = next(f"u{size}" for size in (8, 4, 2, 1) if a.nbytes % size == 0)
    return bool(np.array_equal(a.reshape(-1).view(word), b.reshape(-1).view(word)))


def within(array: Array, window: tuple[slice, ...]) -> Array:
    """Return the window of an array that broadcasts over the whole space."""
    return array[tuple(w if n > 1 else slice(None) for w, n in zip(window, array.shape, strict=True))]


def table_view(gather: Expr, array: Array, axes: Sequence[str], sizes: Mapping[str, int]) -> Array:
    """View a table with a dimension for each axis, and after them the one that is gathered."""
    table, dimension, _ = parts_of(gather)
    index = list(table.index)
    index[dimension] = Index(((_GATHERED, 1),))
    return view(array, index, [*axes, _GATHERED], {**sizes, _GATHERED: array.shape[dimension]})


# No axis has a name with a dot.
_GATHERED = "gathered."


def contract(a: Array, b: Array, outputs: int) -> Array:
    """Multiply and sum over the last dimensions, by matrix multiplication.

    Args:
        a: an array with a dimension for each axis; extent 1 where it lacks the axis.
        b: the same for the other factor.
        outputs: how many dimensions, the first ones, are kept.

    Returns:
        The sums; extent 1 where both factors lack the axis.
    """
    inner = range(outputs, a.ndim)
    # sum_k(a_k b) = sum_k(a_k) b: what only one factor has is summed before they are multiplied.
    a = a.sum(tuple(p for p in inner if b.shape[p] == 1), keepdims=True)
    b = b.sum(tuple(p for p in inner if a.shape[p] == 1), keepdims=True)
    both = [p for p in range(outputs) if a.shape[p] > 1 and b.shape[p] > 1]
    right = [p for p in range(outputs) if p not in both and b.shape[p] > 1]
    left = [p for p in range(outputs) if p not in both and p not in right]
    order = [*both, *left, *right]
    product = np.matmul(_matrices(a, both, left, list(inner)), _matrices(b, both, list(inner), right))
    shape = [max(a.shape[p], b.shape[p]) for p in order]
    return product.reshape(shape).transpose([order.index(p) for p in range(outputs)])


def _matrices(array: Array, *groups: list[int]) -> Array:
    """Make each group of dimensions one; the dimensions left out have extent 1."""
    order = [p for group in groups for p in group]
    rest = [p for p in range(array.ndim) if p not in order]
    shape = [prod(array.shape[p] for p in group) for group in groups]
    return array.transpose([*order, *rest]).reshape(shape)
