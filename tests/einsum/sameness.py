"""Compares what a call of einsum gives with what NumPy's gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from einsum.calls import Call, call

Array = NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """Result of a call: a value, or the class of an exception; and the classes of warnings."""

    value: Any
    raised: type[BaseException] | None
    warned: tuple[type[Warning], ...]


def outcome(function: Callable[..., Any], made: Call) -> Outcome:
    """Call a function."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            value, raised = function(*made.args, **made.arguments), None
        except Exception as error:  # noqa: BLE001 (its class is what is compared)
            value, raised = None, type(error)
    return Outcome(value, raised, tuple(w.category for w in said))


def difference(function: Callable[..., Any], seed: int) -> str | None:
    """Call a function as the seed says; return how it differs from `numpy.einsum`, None if it does not."""
    made, again = call(seed), call(seed)
    got, wanted = outcome(function, made), outcome(np.einsum, again)
    if got.raised is not wanted.raised:
        return f"raised {got.raised}, NumPy {wanted.raised}"
    if got.warned != wanted.warned:
        return f"warned {got.warned}, NumPy {wanted.warned}"
    if type(got.value) is not type(wanted.value):
        return f"returned {type(got.value)}, NumPy {type(wanted.value)}"
    if isinstance(wanted.value, np.ndarray):
        return _of_arrays(got.value, wanted.value, made, again)
    if isinstance(wanted.value, np.generic):
        return _of_arrays(np.asarray(got.value), np.asarray(wanted.value), made, again)
    same = got.value == wanted.value or (got.value != got.value and wanted.value != wanted.value)
    return None if same else f"returned {got.value}, NumPy {wanted.value}"


def _of_arrays(got: Array, wanted: Array, made: Call, again: Call) -> str | None:
    for what in ("shape", "dtype"):
        if getattr(got, what) != getattr(wanted, what):
            return f"{what} {getattr(got, what)}, NumPy {getattr(wanted, what)}"
    if _layout(got) != _layout(wanted):
        return f"strides {got.strides}, NumPy {wanted.strides}"
    if got.flags.writeable != wanted.flags.writeable:
        return f"writeable: {got.flags.writeable}"
    if _shared(got, made) != _shared(wanted, again):
        return f"shares memory: {_shared(got, made)}, NumPy {_shared(wanted, again)}"
    return None if _same(got, wanted) or _within_bound(got, wanted, again) else _wrong(got, wanted)


def _layout(array: Array) -> list[int]:
    return [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1] if array.size else []


def _shared(result: Array, made: Call) -> list[bool]:
    arrays = (*made.args, *made.arguments.values())
    return [isinstance(a, np.ndarray) and np.may_share_memory(a, result) for a in arrays]


def _same(got: Array, wanted: Array) -> bool:
    """Return whether both have the same values, as they have where NumPy computed both."""
    if isinstance(got, np.ma.MaskedArray):
        return np.array_equal(np.ma.getmaskarray(got), np.ma.getmaskarray(wanted))
    return bool(np.all((got == wanted) | (got != got) & (wanted != wanted)))


def _within_bound(got: Array, wanted: Array, made: Call) -> bool:
    """Return whether a result is as near to the exact one as sums in its type are, in any order."""
    operands = [a for a in made.args[1:] if isinstance(a, np.ndarray)]
    if (
        made.arguments
        or wanted.dtype.name not in ("float32", "float64")
        or len(operands) < len(made.args) - 1
    ):
        return False
    odd = ~np.isfinite(wanted)
    if not np.array_equal(got[odd], wanted[odd], equal_nan=True):
        return False
    wide = [a.astype(np.longdouble) for a in operands]
    with np.errstate(all="ignore"):
        exact, size = np.einsum(made.args[0], *wide), np.einsum(made.args[0], *map(np.abs, wide))
    terms = max(1, int(np.prod([max(a.shape) for a in operands])))  # more than there are
    bound = 2 * (terms + len(operands)) * np.finfo(wanted.dtype).eps * size
    with np.errstate(invalid="ignore"):  # infinities are odd, and compared apart
        return bool(np.all(odd | (np.abs(got - exact) <= bound)))


def _wrong(got: Array, wanted: Array) -> str:
    return f"values {got!r}, NumPy {wanted!r}"
