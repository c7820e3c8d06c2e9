"""The function `planish.kernel`: an einsum bound to the kind of its operands."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from planish.einsum.contraction import contraction_of
from planish.einsum.einsum_request import PLANNING, EinsumRequest
from planish.einsum.ways import Way, enter, numpy_ways
from planish.loops.compiled import CompiledKernel, check_operands
from planish.loops.runtime.arrayspec import ArraySpec
from planish.loops.runtime.dispatch import Table

if TYPE_CHECKING:
    from planish.store import Store

Array = NDArray[Any]


class BoundEinsum:
    """Computes an einsum of arrays of fixed shapes, types and strides; made by `planish.kernel`.

    Calls from several threads at once are safe.

    Attributes:
        subscripts: as for `numpy.einsum`.
        operands: how the arrays must lie.
        way: what was the fastest: a "kernel", or NumPy's "einsum" or "matmul".
        cores: how many a kernel uses.
    """

    def __init__(self, subscripts: str, arrays: tuple[Array, ...], way: Way) -> None:
        self.subscripts = subscripts
        self.operands = tuple(map(ArraySpec.of, arrays))
        self.way, self.cores = way.name, way.cores
        self._generic = way.call
        table = Table(self._refer)
        enter(table, way, arrays)
        self._call = table.call

    def __call__(self, *operands: Array) -> Any:
        """Compute it.

        Args:
            operands: arrays of the kinds that `operands` tells.

        Returns:
            What `numpy.einsum` gives.

        Raises:
            ProgramError: an operand is of another kind.
        """
        return self._call(*operands)

    def __reduce__(self) -> tuple[Callable[..., BoundEinsum], tuple[Any, ...]]:
        kernel = self._generic if isinstance(self._generic, CompiledKernel) else None
        return _restored, (self.subscripts, self.operands, self.way, self.cores, kernel)

    def __repr__(self) -> str:
        return f"<einsum '{self.subscripts}' of {', '.join(map(str, self.operands))} by {self.way}>"

    def _refer(self, *operands: Any) -> Any:
        """Take a call that the table does not: it is wrong, or another thread computes just now."""
        check_operands([f"operand {i}" for i in range(len(self.operands))], self.operands, operands)
        return self._generic(*operands)


def _restored(
    subscripts: str, operands: Sequence[ArraySpec], name: str, cores: int, kernel: CompiledKernel | None
) -> BoundEinsum:
    """Make what was pickled."""
    arrays = tuple(spec.empty() for spec in operands)
    if kernel is not None:
        return BoundEinsum(subscripts, arrays, Way(name, kernel, cores))
    ways = numpy_ways(contraction_of(subscripts, arrays), subscripts)
    return BoundEinsum(subscripts, arrays, next(way for way in ways if way.name == name))


def kernel(
    subscripts: str,
    *operands: Array,
    budget_s: float = 1.0,
    cores: int | None = None,
    store: Store | str | Path | None = None,
) -> BoundEinsum:
    """Bind an einsum to the kind of its operands: the fastest way for it is found now, and calls are short.

    Where others disturb the machine so much that none can be told, it is NumPy's; bind it anew later.

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
    """
    from planish.einsum.planning import plan

    started = time.monotonic()
    contraction_of(subscripts, operands)
    with PLANNING:
        way = plan(subscripts, operands, EinsumRequest(budget_s, cores, store), started).way
    return BoundEinsum(subscripts, operands, way)
