"""A contraction of two operands as one multiplication of matrices, or of stacks of matrices, by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.einsum.contraction import Contraction

Array = NDArray[Any]
Matrix = Callable[[Array], Array] | None
"""Makes a matrix of an operand; None where it is one already."""
SMALL = 1 << 12
"""Elements of a result up to which `dot` is faster than `matmul`: it fills its result with zeros first."""
_QUIET = copy_context()
"""Where no overflow is reported, as einsum reports none: to enter it takes 0.1 µs, `errstate` takes 1 µs."""
_QUIET.run(np.seterr, all="ignore")


@dataclass(frozen=True)
class _Roles:
    """What the letters do; each list in the order of the memory.

    Args:
        batch: letters of both operands and the result.
        rows: those of the first factor and the result.
        columns: those of the second factor and the result.
        inner: those of both operands alone.
        swapped: whether the second operand is the first factor.
    """

    batch: list[str]
    rows: list[str]
    columns: list[str]
    inner: list[str]
    swapped: bool


def multiplication(contraction: Contraction) -> Callable[..., Any] | None:
    """Make a contraction a multiplication of matrices; None where it is none.

    The products that are summed are the same ones, so that NaN and infinities come out as from einsum: a
    letter that only one operand has and that is summed makes it none.
    """
    roles = _roles(contraction)
    if roles is None:
        return None
    output = contraction.output
    dims = tuple(contraction.sizes[c] for c in _in_memory(output, contraction.result.order))
    turned = tuple(contraction.result.order.index(d) for d in range(len(output)))
    stacked = bool(roles.batch)
    first = _matrix(contraction, int(roles.swapped), (roles.batch, roles.rows, roles.inner), stacked)
    second = _matrix(contraction, int(not roles.swapped), (roles.batch, roles.inner, roles.columns), stacked)
    small = not stacked and prod(dims) <= SMALL
    merged = stacked or max(len(roles.rows), len(roles.columns)) > 1
    straight = turned == tuple(range(len(turned)))

    multiply: Callable[..., Any] = np.dot if small else np.matmul
    if straight and not (roles.swapped or first or second or merged):
        return partial(_quietly, multiply)

    def call(a: Array, b: Array) -> Any:
        if roles.swapped:
            a, b = b, a
        if first is not None:
            a = first(a)
        if second is not None:
            b = second(b)
        found = _quietly(multiply, a, b)
        if merged:
            found = found.reshape(dims)
        return found if straight else found.transpose(turned)

    return call


def _quietly(multiply: Callable[..., Any], a: Array, b: Array) -> Any:
    # A context is entered by one call at a time; a copy of it is cheap.
    return _QUIET.copy().run(multiply, a, b)


def _roles(contraction: Contraction) -> _Roles | None:
    if len(contraction.terms) != 2:
        return None
    specs = (*contraction.operands, contraction.result)
    terms = (*contraction.terms, contraction.output)
    left, right, output = (_in_memory(t, s.order) for t, s in zip(terms, specs, strict=True))
    batch = [c for c in output if c in left and c in right]
    inner = [c for c in left if c in right and c not in output]
    rows = [c for c in left if c not in batch + inner]
    columns = [c for c in right if c not in batch + inner]
    if inner and output == batch + rows + columns:
        return _Roles(batch, rows, columns, inner, swapped=False)
    if inner and output == batch + columns + rows:
        return _Roles(batch, columns, rows, inner, swapped=True)
    return None


def _in_memory(letters: str, order: Sequence[int]) -> list[str]:
    return [letters[d] for d in order]


def _matrix(contraction: Contraction, place: int, groups: Sequence[list[str]], stacked: bool) -> Matrix:
    term, sizes = contraction.terms[place], contraction.sizes
    batch, *sides = groups
    order = tuple(term.index(c) for group in groups for c in group)
    shape = (*(sizes[c] for c in batch), *(prod(sizes[c] for c in s) for s in sides if s or stacked))
    if shape == tuple(sizes[term[d]] for d in order):
        return None if order == tuple(range(len(order))) else lambda a: a.transpose(order)
    return lambda a: a.transpose(order).reshape(shape)
