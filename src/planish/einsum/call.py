"""The function `planish.einsum`."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.core import PlanishError, ProgramError

if TYPE_CHECKING:
    from planish.store import Store

OURS = {"budget_s", "cores", "store"}


class FallbackWarning(UserWarning):
    """An einsum that a kernel could compute is left to NumPy; the text says why."""


_ways: dict[Hashable, Callable[..., Any]] = {}
"""What is done with operands, by all that a call is told."""
_planning = threading.Lock()
_said: set[str] = set()


def einsum(
    *operands: Any,
    budget_s: float = 1.0,
    cores: int | None = None,
    store: Store | str | Path | None = None,
    **arguments: Any,
) -> Any:
    """Evaluate Einstein's summation as `numpy.einsum` does, by the fastest way that is known.

    Where no way is known for subscripts and operands of these shapes, types and strides, the first call
    tunes a kernel and compares whole calls of it with NumPy's, on one core and on all of them. Later calls,
    in other processes too, take what was the fastest. NumPy computes, with the very arguments of the call:
    operands that are not plain float32 or float64 arrays of one type without gaps, letters that an operand
    repeats, "...", what NumPy gives as a view, and calls with any argument of NumPy's beside the operands.

    Args:
        operands: as for `numpy.einsum`: subscripts and arrays.
        budget_s: seconds that tuning and comparing may take on first use; 0 never tunes.
        cores: how many may be used at most; None for all that this process may use.
        store: an open store, or where it is; None for the user's own.
        arguments: any others of `numpy.einsum`.

    Returns:
        What `numpy.einsum` gives: a new array laid out as NumPy's, a scalar, or a view.

    Raises:
        Exception: what NumPy raises for these arguments.

    Warns:
        FallbackWarning: NumPy computes it, because nothing is known and nothing may be tuned, or because the
            store cannot be used; once for each reason.
    """
    if arguments:
        return np.einsum(*operands, **arguments)
    key = _key(operands, cores)
    if key is None:
        return np.einsum(*operands)
    way = _ways.get(key)
    if way is None:
        way = _planned(key, operands, budget_s, cores, store)
        if way is None:
            return np.einsum(*operands)
    return way(*operands[1:])


def _key(operands: tuple[Any, ...], cores: int | None) -> Hashable:
    """Tell calls apart; None for those that only NumPy takes."""
    if len(operands) < 2 or type(operands[0]) is not str:
        return None
    arrays = operands[1:]
    if any(type(a) is not np.ndarray or a.dtype.char not in "fd" for a in arrays):
        return None
    return operands[0], cores, *((a.shape, a.strides, a.dtype, a.flags.aligned) for a in arrays)


def _planned(
    key: Hashable,
    operands: tuple[Any, ...],
    budget_s: float,
    cores: int | None,
    store: Store | str | Path | None,
) -> Callable[..., Any] | None:
    """Plan a kind of call, unless another thread is planning; None leaves this call to NumPy."""
    started = time.monotonic()
    if not _planning.acquire(blocking=False):
        return None
    try:
        from planish.einsum.planning import Request, plan

        way = plan(operands[0], operands[1:], Request(budget_s, cores, store), started).call
    except ProgramError:
        way = _numpys(operands[0])
    except PlanishError as error:
        _tell(str(error))
        return None
    finally:
        _planning.release()
    _ways[key] = way
    return way


def _numpys(subscripts: str) -> Callable[..., Any]:
    def call(*operands: Any) -> Any:
        return np.einsum(subscripts, *operands)

    return call


def _tell(reason: str) -> None:
    if reason not in _said:
        _said.add(reason)
        warnings.warn(f"NumPy computes this einsum: {reason}", FallbackWarning, stacklevel=4)
