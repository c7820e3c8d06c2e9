"""The functions `planish.einsum` and `planish.kernel`."""

from __future__ import annotations

import ctypes
import os
import time
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from planish.core import PlanishError, ProgramError
from planish.core.files import StrPath
from planish.einsum.backends import (
    PLANNING,
    EinsumBackend,
    EinsumRequest,
    add_to_table,
    contraction_of,
    numpy_backends,
)
from planish.levels.loops.runtime.dispatch import ArraySpec, CompiledKernel, Table, check_operands

if TYPE_CHECKING:
    from planish.einsum.planning import Planner
    from planish.einsum.selection import Selection
    from planish.store import Store

Array = NDArray[Any]
_Out = TypeVar("_Out", bound=Array)
_Order = Literal["K", "A", "C", "F"]
_Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
_Optimize = bool | Literal["greedy", "optimal"] | Sequence[Any]


def release_memory() -> None:
    """Release free memory to the operating system, where the C library can do so.

    Planning allocates and frees large blocks, and keeps little. Without this, each kind of call would leave
    some 100 KB of fragmented memory.
    """
    if os.name == "posix" and (trim := getattr(_c_library(), "malloc_trim", None)):
        trim(0)


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


class FallbackWarning(UserWarning):
    """An einsum that a kernel could compute is left to NumPy; the text says why."""


@dataclass(frozen=True)
class _Provisional:
    """A backend that is used until the next selection.

    Args:
        call: takes the operands.
        retry_at: when that is due, by the monotonic clock.
        selections: how many there were.
    """

    call: Callable[..., Any]
    retry_at: float
    selections: int


RETRY_AFTER_S = 10.0
"""Seconds until the second selection; twice as many until each further one."""
SELECTIONS = 5
"""Of a process at most, for each kind of call; the last one is kept."""
_MISS = object()
KINDS_MAX = 1024
"""Kinds of calls that are known at most, of some 50 KB each and what their kernels keep; with more of them
all are forgotten, and what is called again is looked up in the store."""


class Dispatcher:
    """Computes einsums by the backends that are known for their kinds of calls; plans those that are not.

    Args:
        planner: finds backends; None is the usual one.
        clock: seconds, monotonic.
        kinds_max: kinds of calls that are remembered at most.

    Attributes:
        calls: the tables' built-in functions, which dispatch most calls, by the requested number of cores.
    """

    def __init__(
        self,
        planner: Planner | None = None,
        clock: Callable[[], float] = time.monotonic,
        kinds_max: int = KINDS_MAX,
    ) -> None:
        self._planner, self._clock, self._kinds_max = planner, clock, kinds_max
        self.calls: dict[int | None, Callable[..., Any]] = {}
        self._tables: dict[int | None, Table] = {}
        # Of each kind of call: what it is called with, but for the operands' elements.
        self._backends: dict[Hashable, Callable[..., Any]] = {}
        # Requests that found no backend: the same one does so again.
        self._negative_cache: dict[Hashable, EinsumRequest] = {}
        # Backends that are used until another selection, where others disturbed the last one.
        self._provisional: dict[Hashable, _Provisional] = {}
        self._warned: set[str] = set()

    def __call__(
        self,
        *operands: Any,
        budget_s: float = 1.0,
        cores: int | None = None,
        store: Store | StrPath | None = None,
        **arguments: Any,
    ) -> Any:
        """Evaluate Einstein's summation; see `einsum`."""
        if arguments:
            return np.einsum(*operands, **arguments)
        call = self.calls.get(cores)
        if call is not None:
            found = call(*operands)
            if found is not _MISS:
                return found
        return self.compute(operands, budget_s, cores, store)

    def compute(
        self, operands: tuple[Any, ...], budget_s: float, cores: int | None, store: Store | StrPath | None
    ) -> Any:
        """Compute a call that no table takes."""
        key = _key(operands, cores)
        if key is None:
            return np.einsum(*operands)
        backend = self._backends.get(key)
        if backend is None:
            backend = self._plan_call(key, operands, EinsumRequest(budget_s, cores, store))
        return np.einsum(*operands) if backend is None else backend(*operands[1:])

    def bind(self, subscripts: str, operands: tuple[Array, ...], request: EinsumRequest) -> BoundEinsum:
        """Bind an einsum to the kind of its operands; see `kernel`."""
        started = time.monotonic()
        contraction_of(subscripts, operands)
        with PLANNING:
            selection = self._plan(subscripts, operands, request, started)
        return BoundEinsum(subscripts, operands, selection.backend)

    def clear(self) -> None:
        """Forget what is known, as a fresh process does."""
        for known in (self._backends, self._tables, self.calls, self._negative_cache, self._provisional):
            known.clear()
        self._warned.clear()

    def _plan(
        self, subscripts: str, operands: Sequence[Any], request: EinsumRequest, started: float
    ) -> Selection:
        if self._planner is None:
            from planish.einsum.planning import Planner

            self._planner = Planner()
        return self._planner.plan(subscripts, operands, request, started)

    def _plan_call(
        self, key: Hashable, operands: tuple[Any, ...], request: EinsumRequest
    ) -> Callable[..., Any] | None:
        """Select the backend of a kind of call, unless another thread does; None leaves the call to NumPy."""
        started = time.monotonic()
        if self._negative_cache.get(key) == request:
            return None
        last = self._provisional.get(key)
        if not PLANNING.acquire(blocking=False):
            return last.call if last else None
        conclusive = True
        try:
            selection = self._plan(operands[0], operands[1:], request, started)
            backend, conclusive = selection.backend, selection.conclusive
        except ProgramError:
            backend = EinsumBackend("einsum", partial(np.einsum, operands[0]))
        except PlanishError as error:
            self._negative_cache[key] = request
            self._warn_once(str(error))
            return None
        finally:
            PLANNING.release()
            release_memory()
        selections = 1 + (last.selections if last else 0)
        if conclusive or selections >= SELECTIONS:
            self._provisional.pop(key, None)
            self._remember(key, backend, operands, request.cores)
        else:
            retry_at = self._clock() + RETRY_AFTER_S * 2 ** (selections - 1)
            taken = _Provisional(backend.call, retry_at, selections)
            call = self._until_retry(taken, key, operands[0], request)
            self._remember(key, EinsumBackend("provisional", call), operands, request.cores)
            self._provisional[key] = taken
        return backend.call

    def _until_retry(
        self, taken: _Provisional, key: Hashable, subscripts: str, request: EinsumRequest
    ) -> Callable[..., Any]:
        """Return a function that calls a provisional backend until its retry is due, then selects again."""

        def call(*arrays: Any) -> Any:
            if self._clock() < taken.retry_at:
                return taken.call(*arrays)
            known = self._backends.get(key)
            if known is call:  # nothing was selected since
                known = self._plan_call(key, (subscripts, *arrays), request)
            return (known or taken.call)(*arrays)

        return call

    def _remember(
        self, key: Hashable, backend: EinsumBackend, operands: tuple[Any, ...], cores: int | None
    ) -> None:
        """Use a backend for this kind of call from now on; machine code looks it up where it can."""
        if len(self._backends) >= self._kinds_max:
            self.clear()
        self._backends[key] = backend.call
        table = self._tables.setdefault(cores, Table(lambda *_: _MISS, subscripts=True))
        add_to_table(table, backend, operands[1:], operands[0])
        self.calls[cores] = table.call

    def _warn_once(self, reason: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            warnings.warn(f"NumPy computes this einsum: {reason}", FallbackWarning, stacklevel=5)


def _key(operands: tuple[Any, ...], cores: int | None) -> Hashable:
    """Return the kind of a call; None for those that only NumPy takes."""
    if len(operands) < 2 or type(operands[0]) is not str:
        return None
    arrays = operands[1:]
    if any(type(a) is not np.ndarray for a in arrays):
        return None
    return operands[0], cores, *((a.shape, a.strides, a.dtype, a.flags.aligned) for a in arrays)


_SHARED = Dispatcher()
_calls = _SHARED.calls


@overload
def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike,
    out: _Out,
    dtype: DTypeLike | None = None,
    order: _Order = "K",
    casting: _Casting = "safe",
    optimize: _Optimize = False,
    budget_s: float = 1.0,
    cores: int | None = None,
    store: Store | StrPath | None = None,
) -> _Out: ...


@overload
def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike,
    out: None = None,
    dtype: DTypeLike | None = None,
    order: _Order = "K",
    casting: _Casting = "safe",
    optimize: _Optimize = False,
    budget_s: float = 1.0,
    cores: int | None = None,
    store: Store | StrPath | None = None,
) -> Any: ...


def einsum(
    *operands: Any,
    budget_s: float = 1.0,
    cores: int | None = None,
    store: Store | StrPath | None = None,
    **arguments: Any,
) -> Any:
    """Evaluate Einstein's summation as `numpy.einsum` does, by the fastest backend that is known.

    Where no backend is known for subscripts and operands of these shapes, types and strides, the first call
    tunes a kernel and compares whole calls of it with NumPy's, on one core and on all of them. Later calls,
    in other processes too, use what was the fastest. Where others disturbed the comparison, NumPy's backend
    is used provisionally, or a kernel on one core that beats it all the same, and a later call compares
    again. NumPy computes, with the very arguments of the call: operands that are not plain float32 or
    float64 arrays of one type without gaps, letters that an operand repeats, "...", what NumPy returns as a
    view, and calls with any argument of NumPy's beside the operands. A process keeps the kernels of 1,024
    kinds of calls at most; with more of them it forgets all, and looks up in the store what is called again.

    Args:
        operands: as for `numpy.einsum`: subscripts and arrays.
        budget_s: seconds that tuning and comparing may take on first use; 0 never tunes.
        cores: how many may be used at most; None for all that this process may use.
        store: an open store, or where it is; None for the user's own.
        arguments: any others of `numpy.einsum`.

    Returns:
        What `numpy.einsum` returns: a new array laid out as NumPy's, a scalar, or a view.

    Raises:
        Exception: what NumPy raises for these arguments.

    Warns:
        FallbackWarning: NumPy computes it, because nothing is known and nothing may be tuned, or because the
            store cannot be used; once for each reason.

    Examples:
        >>> import numpy as np
        >>> import planish
        >>> a = np.ones((16, 16), np.float32)
        >>> planish.einsum("ij,jk->ik", a, a, store="planish.db").sum()
        np.float32(4096.0)
    """
    # The same as `Dispatcher.__call__`: to call that would take as long as some kernels.
    if arguments:
        return np.einsum(*operands, **arguments)
    try:
        call = _calls.get(cores)
    except TypeError:
        EinsumRequest(budget_s, cores, store)  # refuses what is not a number
        raise
    if call is not None:
        found = call(*operands)
        if found is not _MISS:
            return found
    return _SHARED.compute(operands, budget_s, cores, store)


class BoundEinsum:
    """Computes an einsum of arrays of fixed shapes, types and strides; made by `planish.kernel`.

    Calls from several threads at once are safe.

    Attributes:
        subscripts: as for `numpy.einsum`.
        operands: how the arrays must lie.
        backend: the fastest: a "kernel", or NumPy's "einsum" or "matmul".
        cores: how many a kernel uses.
    """

    def __init__(self, subscripts: str, arrays: tuple[Array, ...], backend: EinsumBackend) -> None:
        self.subscripts = subscripts
        self.operands = tuple(map(ArraySpec.of, arrays))
        self.backend, self.cores = backend.name, backend.cores
        self._generic = backend.call
        table = Table(self._fall_back)
        add_to_table(table, backend, arrays)
        self._call = table.call

    def __call__(self, *operands: Array) -> Any:
        """Compute it.

        Args:
            operands: arrays laid out as the attribute `operands` has it.

        Returns:
            What `numpy.einsum` returns.

        Raises:
            ProgramError: an operand is of another kind.
        """
        return self._call(*operands)

    def __reduce__(self) -> tuple[Callable[..., BoundEinsum], tuple[Any, ...]]:
        kernel = self._generic if isinstance(self._generic, CompiledKernel) else None
        return _restored, (self.subscripts, self.operands, self.backend, self.cores, kernel)

    def __repr__(self) -> str:
        return f"<einsum '{self.subscripts}' of {', '.join(map(str, self.operands))} by {self.backend}>"

    def _fall_back(self, *operands: Any) -> Any:
        """Compute a call that the table does not take: it is wrong, or another thread computes just now."""
        check_operands([f"operand {i}" for i in range(len(self.operands))], self.operands, operands)
        return self._generic(*operands)


def _restored(
    subscripts: str, operands: Sequence[ArraySpec], name: str, cores: int, kernel: CompiledKernel | None
) -> BoundEinsum:
    """Make what was pickled."""
    arrays = tuple(spec.empty() for spec in operands)
    if kernel is not None:
        return BoundEinsum(subscripts, arrays, EinsumBackend(name, kernel, cores))
    backends = numpy_backends(contraction_of(subscripts, arrays), subscripts)
    return BoundEinsum(subscripts, arrays, next(backend for backend in backends if backend.name == name))


def kernel(
    subscripts: str,
    *operands: Array,
    budget_s: float = 1.0,
    cores: int | None = None,
    store: Store | StrPath | None = None,
) -> BoundEinsum:
    """Bind an einsum to the kind of its operands: its fastest backend is found now, and calls are short.

    Where others disturb the machine so much that none can be timed, it is NumPy's; bind it anew later.

    Args:
        subscripts: as for `numpy.einsum`; one letter for each dimension.
        operands: arrays like those that will come; their values do not matter.
        budget_s: seconds that tuning and comparing may take where nothing is known.
        cores: how many may be used at most; None for all that this process may use.
        store: an open store, or where it is; None for the user's own.

    Returns:
        What is called with arrays.

    Raises:
        ProgramError: kernels cannot compute it, or not just as NumPy does; `planish.einsum` can.
        PlanishError: nothing is known and the budget allows no tuning, or the store cannot be used.

    Examples:
        >>> import numpy as np
        >>> import planish
        >>> a = np.ones((16, 16), np.float32)
        >>> multiply = planish.kernel("ij,jk->ik", a, a, store="planish.db")
        >>> multiply(a, a).sum()
        np.float32(4096.0)
    """
    return _SHARED.bind(subscripts, operands, EinsumRequest(budget_s, cores, store))
