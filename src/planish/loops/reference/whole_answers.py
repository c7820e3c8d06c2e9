"""What a program of whole numbers computes: by NumPy in int32, modulo 2^32, so that every order is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, copysign, isinf, prod

import numpy as np

from planish.loops.lang.element_types import nearest_whole
from planish.loops.lang.program import (
    IDENTITY,
    POSITIONS,
    Access,
    Apply,
    Const,
    Expr,
    Program,
    Statement,
    accesses,
)
from planish.loops.lang.subscripts import is_spread
from planish.loops.reference.bounds import VALUES
from planish.loops.reference.checking import Expected
from planish.loops.reference.spreading import combined, filled_with
from planish.loops.reference.views import Array, Arrays, contract, cut, overhang, view, within

_UFUNC = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}
_EXACT = 2.0**53
"""Whole numbers below it are exact in float64."""


def whole_numbers(
    program: Program, inputs: Arrays, block: int, changes: Mapping[str, Callable[[Array], Array]]
) -> dict[str, Expected]:
    """Compute a program.

    Args:
        program: what is computed.
        inputs: every input, of the shape in the program.
        block: elements that may be held at once beyond the tensors themselves.
        changes: of tensors, once they are computed; see `planish.loops.reference.reference.reference`.
    """
    tensors: dict[str, Array] = {name: inputs[name].astype(np.int32) for name in program.inputs}
    if kind := program.type.get(POSITIONS):
        tensors[POSITIONS] = np.arange(kind.size, dtype=np.int32)
    for s in program.statements:
        kind = program.type[s.target.tensor]
        # Several statements may write parts of one tensor, and what none writes is zero.
        whole = tensors.setdefault(s.target.tensor, np.zeros(kind.shape, np.int32))
        if is_spread(s.target):
            whole.fill(nearest_whole(filled_with(s.reduce)))
            part = np.empty([program.size[axis] for axis in s.output_axes], np.int32)
            _compute(s, part, tensors, program, block)
            combined(s, whole, part, program.size)
        else:
            _compute(s, view(whole, s.target.index, s.output_axes, program.size), tensors, program, block)
        if s.target.tensor in changes:
            whole[...] = changes[s.target.tensor](whole)
    return {name: _exactly(tensors[name]) for name in program.outputs}


def _exactly(array: Array) -> Expected:
    return Expected(array, array, array, array.dtype)


def _compute(statement: Statement, out: Array, tensors: Arrays, program: Program, block: int) -> None:
    """Compute a statement into a view of its target, with a dimension for each of its axes."""
    leaves = {a: _leaf(a, statement, tensors, program) for a in accesses(statement.value)}
    factors = _factors(statement, leaves)
    if factors:
        # By way of int64, whose lowest bits are taken: beyond int32 the cast from float64 is undefined.
        out[...] = contract(factors[0], factors[1], out.ndim).astype(np.int64)
        return
    if statement.reduce:
        out.fill(nearest_whole(IDENTITY[statement.reduce]))
    extents = [program.size[axis] for axis in statement.axes]
    for window in cut(extents, [range(len(extents))], block):
        shape = [w.stop - w.start for w in window]
        terms = np.broadcast_to(_value(statement.value, leaves, window), shape)
        here = out[(*window[: out.ndim], ...)]
        if statement.reduce:
            ufunc = _UFUNC[statement.reduce]
            inner = tuple(range(out.ndim, len(shape)))
            terms = ufunc(here, ufunc.reduce(terms, axis=inner, dtype=np.int32))
        here[...] = terms


def _leaf(access: Access, statement: Statement, tensors: Arrays, program: Program) -> Array:
    array = tensors[access.tensor]
    around = overhang(access, array.shape, program.size)
    if access.pad is not None:
        array = np.pad(array, around, constant_values=nearest_whole(access.pad))
    return view(array, access.index, statement.axes, program.size, [before for before, _ in around])


def _value(expr: Expr, leaves: Mapping[Access, Array], window: tuple[slice, ...]) -> Array:
    match expr:
        case Const(value=value):
            return np.asarray(_away_from_zero(value), np.int32)
        case Access():
            return within(leaves[expr], window)
        case Apply(function="relu", args=(arg,)):
            return np.maximum(_value(arg, leaves, window), np.int32(0))
        case Apply(function=function, args=args):
            return VALUES[function](*(_value(arg, leaves, window) for arg in args))


def _away_from_zero(value: float) -> int:
    """Make a number whole; those of programs are, but a mistake that is made on purpose takes half of one."""
    return nearest_whole(value if isinf(value) else copysign(ceil(abs(value)), value))


def _factors(statement: Statement, leaves: Mapping[Access, Array]) -> tuple[Array, Array] | None:
    """Give the factors of a sum of products, if matrix multiplication in float64 is exact."""
    match statement.value:
        case Apply(function="mul", args=(Access() as a, Access() as b)) if statement.reduce == "add":
            both = leaves[a].astype(np.float64), leaves[b].astype(np.float64)
            terms = prod(n for n in np.broadcast_shapes(both[0].shape, both[1].shape))
            # The worst case of every partial sum, so that no order of additions rounds.
            return both if terms * np.abs(both[0]).max() * np.abs(both[1]).max() < _EXACT else None
        case _:
            return None
