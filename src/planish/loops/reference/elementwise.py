"""Element-wise expressions by NumPy's functions, written into memory that is there already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from planish.loops.lang.element_types import nearest_whole
from planish.loops.lang.program import Access, Apply, Const, Expr
from planish.loops.reference.bounds import TESTS, VALUES
from planish.loops.reference.views import Array

Step = Callable[[], Any]

UFUNC: Mapping[str, Any] = {name: made for name, made in VALUES.items() if isinstance(made, np.ufunc)}
"""Function or reduction to what computes it; relu and sigmoid are made of these."""

Leaves = Mapping[Access, Array]
"""Access to what it reads, in shapes that broadcast against each other."""


class Temporaries:
    """Temporary arrays, each used again wherever the same place of an expression has the same shape.

    Args:
        dtype: of all.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self._arrays: dict[tuple[str, tuple[int, ...]], Array] = {}

    def at(self, place: str, shape: tuple[int, ...]) -> Array:
        """Give the array of a place."""
        if (place, shape) not in self._arrays:
            self._arrays[place, shape] = np.empty(shape, self.dtype)
        return self._arrays[place, shape]


def evaluate(
    expr: Expr,
    leaves: Leaves,
    memory: Temporaries,
    steps: list[Step],
    out: Array | None = None,
    place: str = "",
) -> Array:
    """Add the calls that evaluate an expression.

    Args:
        expr: what is evaluated.
        leaves: what its accesses read.
        memory: where temporaries come from.
        steps: the calls are added to it.
        out: where the result goes; of its shape or one that it broadcasts to. None chooses.
        place: names the expression for `memory`.

    Returns:
        The result: `out`, a temporary, or, without `out`, what a single access reads.
    """
    if not isinstance(expr, Apply):
        value = leaves[expr] if isinstance(expr, Access) else _number(expr.value, memory.dtype)
        if out is None:
            return value
        steps.append(partial(np.copyto, out, value))
        return out
    shape = _shape(expr, leaves)
    if out is None:
        out = memory.at(place, shape)
    args: list[Array] = []
    for i, arg in enumerate(expr.args):
        # The first argument only: when a later one is evaluated, `out` holds the first.
        into = out if isinstance(arg, Apply) and i == 0 and _shape(arg, leaves) == out.shape else None
        args.append(evaluate(arg, leaves, memory, steps, into, f"{place}{i}"))
    steps += _calls(expr.function, args, out)
    return out


def _number(value: float, dtype: np.dtype[Any]) -> Array:
    return np.asarray(nearest_whole(value) if dtype.kind == "i" else value, dtype)


def _shape(expr: Expr, leaves: Leaves) -> tuple[int, ...]:
    match expr:
        case Access():
            return leaves[expr].shape
        case Const():
            return ()
        case Apply(args=args):
            return np.broadcast_shapes(*(_shape(arg, leaves) for arg in args))


def _calls(function: str, args: Sequence[Array], out: Array) -> list[Step]:
    if function == "relu":
        return [partial(np.maximum, args[0], out.dtype.type(0), out=out)]
    if function == "sigmoid":
        one = out.dtype.type(1)
        return [
            partial(np.negative, args[0], out=out),
            # Of a large negative number it overflows, and 1 / inf is right then: `numpy_baseline` turns the
            # warning off.
            partial(np.exp, out, out=out),
            partial(np.add, out, one, out=out),
            partial(np.divide, one, out, out=out),
        ]
    if function == "erf":
        return [partial(_erf(), args[0], out)]
    if function in TESTS:
        return [partial(_choose, TESTS[function], *args, out)]
    return [partial(UFUNC[function], *args, out=out)]


def _choose(test: Callable[..., Array], a: Array, b: Array, x: Array, y: Array, out: Array) -> None:
    """Choose by a comparison, which is made first: `a` may lie where the result goes."""
    holds = test(a, b)
    np.copyto(out, y)
    np.copyto(out, x, where=holds)


def _erf() -> Callable[[Array, Array], object]:
    """Give SciPy's where it is installed, for NumPy has none; else the C library's, one by one."""
    if find_spec("scipy"):
        return import_module("scipy.special").erf
    return lambda x, out: np.copyto(out, VALUES["erf"](x))
