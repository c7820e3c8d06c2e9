"""The ways to compute an einsum: NumPy's own, and compiled kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from planish.core import Candidate, Target
from planish.einsum.contraction import Contraction
from planish.einsum.multiplication import multiplication
from planish.loops.build import kernel_of, tree_of
from planish.loops.compiled import CompiledKernel


@dataclass(frozen=True)
class Way:
    """A way to compute an einsum.

    Args:
        name: "einsum", "matmul", or "kernel".
        call: takes the operands, and gives what `numpy.einsum` does.
        cores: how many a kernel uses; NumPy decides for itself.
    """

    name: str
    call: Callable[..., Any]
    cores: int = 1


def kernel_way(contraction: Contraction, candidate: Candidate, target: Target) -> Way:
    """Compile a candidate for a contraction's arrays.

    Raises:
        PlanishError: it cannot be compiled.
    """
    program = contraction.program
    kernel = kernel_of(program, candidate, target, tree_of(program, candidate))
    return Way("kernel", CompiledKernel(kernel, contraction.operands, contraction.result), target.cores)


def numpy_ways(contraction: Contraction, subscripts: str) -> Iterator[Way]:
    """List NumPy's ways to sum the same products; its einsum is the first."""
    yield Way("einsum", partial(_c_einsum(), subscripts))
    multiplied = multiplication(contraction)
    if multiplied is not None:
        yield Way("matmul", multiplied)


def _c_einsum() -> Callable[..., Any]:
    """Find what `numpy.einsum` calls when it is told of plain arrays alone."""
    try:
        from numpy._core.multiarray import c_einsum
    except ImportError:  # another NumPy may keep it elsewhere
        return np.einsum
    return c_einsum
