"""How fine a program's inputs may be, so that no order of its sums has to round."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, prod, sqrt

from planish.loops.lang.element_types import WHOLE
from planish.loops.lang.program import (
    COMPARISONS,
    POSITIONS,
    Access,
    Apply,
    Const,
    Expr,
    Program,
    Statement,
    accesses,
)
from planish.loops.lang.subscripts import collisions, is_gather, parts_of
from planish.loops.reference.bounds import Precision, representable
from planish.loops.reference.grains import grain_of

FINEST = 1 << 16
"""Levels at most: more would show no more errors."""
COARSEST = 2
USUAL = 256
"""Levels where rounding cannot be avoided."""

_Range = tuple[float, float] | None
"""A grain (a power of two) and the largest magnitude; None where functions round anyway."""


class _RoundedError(Exception):
    """A sum or product may have to be rounded."""


LONG = 8
"""A sum is long where terms of only so many levels could not be added up exactly, had they all one sign."""
_SPREAD = 8.0
"""Sums of numbers of random signs are within so many standard deviations, for each factor of their terms."""
_MARGIN = 4
"""So much more room is left, since the reference doubts it too."""


def is_long(statement: Statement, program: Program) -> bool:
    """Whether a statement sums so many terms that they can be exact only where they cancel each other."""
    if program.arithmetic == WHOLE:
        return False
    whole = Precision.of(program.arithmetic).whole
    return statement.reduce == "add" and terms_of(statement, program) * LONG > whole


def terms_of(statement: Statement, program: Program) -> int:
    """Count the terms of each sum of a statement, at most."""
    many = collisions(statement.target, program.size)
    return many * prod(program.size[axis] for axis in statement.reduced_axes)


def cancelled(statement: Statement, root_of_squares: float) -> float:
    """Bound the partial sums of terms with random signs, in every order that does not depend on them.

    The sum of numbers with random signs has the root of the sum of their squares as its standard deviation,
    and no part of it has a larger one. Of 10^12 parts hardly one is beyond 8 times that. In a product of
    sums that is so for each factor.

    Args:
        statement: what is summed.
        root_of_squares: the root of the sum of the terms' squares.
    """
    return _SPREAD ** max(1, len(list(accesses(statement.value)))) * root_of_squares


def finest_levels(program: Program, highs: Mapping[str, float], *, cancel: bool = False) -> int:
    """Give into how many levels the magnitudes of inputs may be divided.

    With fewer levels than that, products and sums are multiples of a grain and below 2^24 grains (2^53 in
    float64), so that they are exact in any order; see `planish.loops.reference.bounds`. What exponentials and
    the like round is left out: nothing mends that.

    Args:
        program: what is computed.
        highs: input to the bound of its magnitudes, a power of two.
        cancel: whether signs are random, so that long sums of them stay small (`cancelled`).

    Returns:
        A power of two, no larger than the inputs' types have room for; `USUAL` where even `COARSEST` levels
        are too many.
    """
    stored = {program.type[t].dtype for t in program.inputs if t not in program.whole_indices}
    levels = most = int(min([FINEST, *(Precision.of(dtype).whole for dtype in stored)]))
    while levels >= COARSEST:
        # Magnitudes are below `high`: the largest is one grain less.
        ranges = {name: (high / levels, high - high / levels) for name, high in highs.items()}
        if _is_exact(program, ranges, cancel=cancel):
            return levels
        levels //= 2
    return min(USUAL, most)


def _is_exact(program: Program, ranges: Mapping[str, _Range], *, cancel: bool) -> bool:
    precision = Precision.of(program.arithmetic)
    known = dict(ranges)
    if kind := program.type.get(POSITIONS):
        known[POSITIONS] = 1.0, float(kind.size - 1)
    try:
        for statement in program.statements:
            name, found = (
                statement.target.tensor,
                _of_statement(statement, program, known, precision, cancel=cancel),
            )
            # Several statements may write parts of one tensor.
            known[name] = _joined(known[name], found) if name in known else found
    except _RoundedError:
        return False
    return True


def _of_statement(
    statement: Statement, program: Program, known: Mapping[str, _Range], precision: Precision, *, cancel: bool
) -> _Range:
    value = _of(statement.value, known, precision)
    if value is None or statement.reduce == "mul":
        return None
    if statement.reduce != "add":
        return value
    terms = terms_of(statement, program)
    if cancel and is_long(statement, program):
        most = min(terms, _MARGIN * cancelled(statement, sqrt(terms)))
        return _exactly(value[0], most * value[1], precision)
    return _exactly(value[0], terms * value[1], precision)


def _of(expr: Expr, known: Mapping[str, _Range], precision: Precision) -> _Range:
    match expr:
        case Const(value=value):
            rounded = float(precision.dtype.type(value))
            # An infinity stays one, whatever is added.
            return grain_of(rounded), abs(rounded) if isfinite(rounded) else 0.0
        case Access(tensor=tensor, pad=pad):
            inside = known[tensor]
            return inside if pad is None else _joined(inside, _of(Const(pad), known, precision))
        case Apply() if is_gather(expr):
            return known[parts_of(expr)[0].tensor]
        case _:
            return _applied(expr.function, [_of(arg, known, precision) for arg in expr.args], precision)


def _applied(function: str, args: list[_Range], precision: Precision) -> _Range:
    # What is compared does not enter the result.
    if function in COMPARISONS:
        return _joined(args[2], args[3])
    if any(arg is None for arg in args):
        return None
    grains, larges = zip(*(arg for arg in args if arg is not None), strict=True)
    match function:
        case "add" | "sub":
            return _exactly(min(grains), sum(larges), precision)
        case "mul":
            return _exactly(prod(grains), prod(larges), precision)
        case "max" | "min" | "neg" | "abs" | "relu":
            return min(grains), max(larges)
        case _:
            return None


def _exactly(grain: float, largest: float, precision: Precision) -> _Range:
    if not representable(largest, grain, precision):
        raise _RoundedError
    return grain, largest


def _joined(one: _Range, other: _Range) -> _Range:
    if one is None or other is None:
        return None
    return min(one[0], other[0]), max(one[1], other[1])
