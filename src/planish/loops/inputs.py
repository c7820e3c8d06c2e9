"""Arrays to run a program on."""

from __future__ import annotations

import numpy as np

from planish.core.seeds import rng
from planish.loops.program import Apply, Expr, Program, TensorType, accesses
from planish.loops.views import Array

ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector."""


def aligned(kind: TensorType) -> Array:
    """Allocate an array that starts at a cache line; its content is arbitrary."""
    dtype = np.dtype(kind.dtype)
    memory = np.empty(kind.size * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + kind.size * dtype.itemsize].view(dtype).reshape(kind.shape)


def make_inputs(program: Program, seed: int = 0) -> dict[str, Array]:
    """Make the inputs of a program.

    They are multiples of 1/16, so that sums of products are exact in any order (see
    `planish.loops.bounds`); in [-1, 1), or in [0.5, 1.5) where a logarithm, root or divisor is made of them.

    Args:
        program: what they are for.
        seed: of the random numbers; each tensor's also depend on its place among the inputs.

    Returns:
        Input to a contiguous array of the program's element type that starts at a cache line.
    """
    positive = _must_be_positive(program)
    result: dict[str, Array] = {}
    for i, name in enumerate(program.inputs):
        array = aligned(program.type[name])
        low, high = (8, 24) if name in positive else (-16, 16)
        np.divide(rng(seed, i).integers(low, high, array.shape, np.int8), 16, out=array, casting="same_kind")
        result[name] = array
    return result


def _must_be_positive(program: Program) -> set[str]:
    """Find the tensors that roots, logarithms and divisors are made of, directly or by other tensors."""
    found: set[str] = set()
    for statement in reversed(program.statements):
        whole = statement.target.tensor in found
        parts = [statement.value] if whole else _delicate(statement.value)
        found |= {a.tensor for part in parts for a in accesses(part)}
    return found


def _delicate(expr: Expr) -> list[Expr]:
    if not isinstance(expr, Apply):
        return []
    if expr.function in ("log", "sqrt", "div"):
        return [expr.args[-1], *(part for arg in expr.args[:-1] for part in _delicate(arg))]
    return [part for arg in expr.args for part in _delicate(arg)]
