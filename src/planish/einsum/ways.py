"""The ways to compute an einsum: NumPy's own, and compiled kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, Target
from planish.einsum.contraction import Contraction
from planish.einsum.multiplication import multiplication
from planish.loops.build import kernel_of, tree_of
from planish.loops.compiled import CompiledKernel
from planish.loops.runtime.arrayspec import ArraySpec
from planish.loops.runtime.dispatch import Table

Array = NDArray[Any]


@dataclass(frozen=True)
class Way:
    """A way to compute an einsum.

    Args:
        name: "einsum", "matmul", or "kernel".
        call: takes the operands, and gives what `numpy.einsum` does.
        cores: how many a kernel uses; NumPy decides for itself.
        candidate: what was compiled; None for NumPy's.
    """

    name: str
    call: Callable[..., Any]
    cores: int = 1
    candidate: Candidate | None = None


def enter(table: Table, way: Way, operands: Sequence[Array], subscripts: str | None = None) -> None:
    """Let a table take calls with such operands, in a way.

    Args:
        table: of calls that begin with subscripts, or that have none.
        way: how they are computed.
        operands: arrays; those that come must be like them.
        subscripts: what calls begin with; None for nothing.
    """
    if not operands[0].shape or not all(a.flags.aligned for a in operands):
        return
    compiled = way.call
    if isinstance(compiled, CompiledKernel):
        if compiled.is_direct:
            table.add_kernel(compiled.kernel, compiled.operands, compiled.result, subscripts)
        return
    whole = subscripts is not None and way.name == "einsum"
    specs = [ArraySpec(a.shape, a.strides, a.dtype.name) for a in operands]
    table.add_function(
        specs,
        [a.dtype for a in operands],
        c_einsum() if whole else compiled,
        subscripts=subscripts,
        skip=0 if whole or subscripts is None else 1,
    )


def compile_kernel(contraction: Contraction, candidate: Candidate, target: Target) -> CompiledKernel:
    """Compile a candidate for a contraction's arrays.

    Raises:
        PlanishError: it cannot be compiled.
    """
    program = contraction.program
    kernel = kernel_of(program, candidate, target, tree_of(program, candidate))
    return CompiledKernel(kernel, contraction.operands, contraction.result)


def numpy_ways(contraction: Contraction, subscripts: str) -> Iterator[Way]:
    """List NumPy's ways to sum the same products; its einsum is the first."""
    yield Way("einsum", partial(c_einsum(), subscripts))
    multiplied = multiplication(contraction)
    if multiplied is not None:
        yield Way("matmul", multiplied)


@cache
def c_einsum() -> Callable[..., Any]:
    """Find what `numpy.einsum` calls when it is told of plain arrays alone."""
    try:
        from numpy._core.multiarray import c_einsum
    except ImportError:  # another NumPy may keep it elsewhere
        return np.einsum
    return c_einsum
