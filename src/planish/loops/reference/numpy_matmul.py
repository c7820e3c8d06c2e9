"""Sums of products by NumPy's matrix multiplication, written into memory that is there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from planish.loops.reference.elementwise import Step
from planish.loops.reference.views import Array


@dataclass
class _Factor:
    """A factor on its way to a matrix.

    Args:
        array: with a dimension for each axis.
        fixed: whether it never changes, so that copies are made at once.
        steps: where the calls go otherwise.
    """

    array: Array
    fixed: bool
    steps: list[Step]

    def emit(self, step: Step) -> None:
        """Make the call now, or each time."""
        if self.fixed:
            step()
        else:
            self.steps.append(step)

    def sum(self, positions: Sequence[int]) -> None:
        """Sum over axes that the other factor lacks."""
        if positions:
            shape = [1 if p in positions else n for p, n in enumerate(self.array.shape)]
            total = np.empty(shape, self.array.dtype)
            self.emit(partial(np.add.reduce, self.array, axis=tuple(positions), out=total, keepdims=True))
            self.array = total

    def copied(self, groups: Sequence[Sequence[int]]) -> int:
        """Count the elements that are copied at each call to make matrices."""
        merged = _merged(self.array, groups)
        return 0 if self.fixed or (merged is not None and _takes(merged)) else self.array.size

    def matrices(self, groups: Sequence[Sequence[int]]) -> Array:
        """Make each group of axes one, by a copy if need be."""
        merged = _merged(self.array, groups)
        if merged is not None and _takes(merged):
            return merged
        order, shape = _order(self.array, groups)
        ordered = self.array.transpose(order)
        copy = np.empty(ordered.shape, ordered.dtype)
        self.emit(partial(np.copyto, copy, ordered))
        return copy.reshape(shape)


def matmul_steps(a: Array, b: Array, out: Array, a_fixed: bool = False, b_fixed: bool = False) -> list[Step]:
    """Make the calls that compute `out = sum(a * b)`.

    The axes of the output that both factors have become a batch, and the others rows and columns. A factor
    is copied where its axes do not make a matrix that BLAS takes (im2col).

    Args:
        a: a factor, with a dimension for each axis, the output's first; extent 1 where it lacks one.
        b: the other factor.
        out: the output, with the dimensions of its own axes.
        a_fixed: whether a never changes: it is then copied here and not at each call.
        b_fixed: the same of b.
    """
    steps: list[Step] = []
    left, right = _Factor(a, a_fixed, steps), _Factor(b, b_fixed, steps)
    left.sum([p for p in range(out.ndim, a.ndim) if b.shape[p] == 1 < a.shape[p]])
    right.sum([p for p in range(out.ndim, a.ndim) if a.shape[p] == 1 < b.shape[p]])
    inner = [p for p in range(out.ndim, a.ndim) if a.shape[p] > 1 and b.shape[p] > 1]
    batch = [p for p in range(out.ndim) if (a.shape[p] > 1) == (b.shape[p] > 1)]
    rows = [p for p in range(out.ndim) if p not in batch and a.shape[p] > 1]
    columns = [p for p in range(out.ndim) if p not in batch and b.shape[p] > 1]
    # The output's closest axis must be among the columns, else BLAS would write across its rows.
    if _stride(out, rows) < _stride(out, columns):
        left, right, rows, columns = right, left, columns, rows
    for group in (rows, columns):
        # BLAS knows one stride for rows and one for columns: axes that cannot be merged become a batch.
        while _merged(out, [*_single(sorted({*range(out.ndim)} - {*group})), group]) is None:
            batch.append(group.pop(0))
    batches = _single(sorted(p for p in batch if out.shape[p] > 1))
    # The summed axes may be in any order: the better one is that of which less is copied at each call.
    orders = [sorted(inner, key=lambda p: -abs(f.array.strides[p])) for f in (left, right)]
    inner = min(orders, key=lambda o: left.copied([*batches, rows, o]) + right.copied([*batches, o, columns]))
    first, second = left.matrices([*batches, rows, inner]), right.matrices([*batches, inner, columns])
    return [*steps, *_multiply(first, second, out, [*batches, rows, columns])]


def _multiply(first: Array, second: Array, out: Array, groups: Sequence[Sequence[int]]) -> list[Step]:
    target = _merged(out, groups)
    assert target is not None, "rows and columns were chosen so that they merge"
    # With a vector in place of a matrix of one row or column NumPy calls gemv.
    if target.ndim == 2 and 1 in target.shape:
        first = first[0] if target.shape[0] == 1 else first
        second = second[:, 0] if target.shape[1] == 1 else second
        target = target.reshape([n for n in target.shape if n > 1], copy=False)
    elif not _takes(target):
        # Into what BLAS cannot write NumPy would multiply without it, or allocate memory at each call.
        product = np.empty(target.shape, target.dtype)
        return [partial(np.matmul, first, second, out=product), partial(np.copyto, target, product)]
    return [partial(np.matmul, first, second, out=target)]


def _single(positions: Sequence[int]) -> list[list[int]]:
    return [[p] for p in positions]


def _stride(array: Array, positions: Sequence[int]) -> int:
    return min((array.strides[p] for p in positions if array.shape[p] > 1), default=1 << 62)


def _order(array: Array, groups: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Give the order of dimensions, those that are in no group last, and the extents of the groups."""
    order = [p for group in groups for p in group]
    rest = [p for p in range(array.ndim) if p not in order]
    return order + rest, [prod(array.shape[p] for p in group) for group in groups]


def _merged(array: Array, groups: Sequence[Sequence[int]]) -> Array | None:
    """View with each group of axes as one; None where that needs a copy."""
    order, shape = _order(array, groups)
    try:
        return array.transpose(order).reshape(shape, copy=False)
    except ValueError:
        return None


def _takes(matrix: Array) -> bool:
    """Whether BLAS takes the last two dimensions: one of them contiguous, and the other not overlapping."""
    (n, m), (outer, inner) = matrix.shape[-2:], (s // matrix.itemsize for s in matrix.strides[-2:])
    rows = (m == 1 or inner == 1) and (n == 1 or outer >= m)
    columns = (n == 1 or outer == 1) and (m == 1 or inner >= n)
    return rows or columns
