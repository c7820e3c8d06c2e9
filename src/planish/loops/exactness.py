"""How fine a program's inputs may be, so that no order of its sums has to round."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, prod

from planish.loops.bounds import Precision, grain_of, representable
from planish.loops.program import Access, Const, Expr, Program, Statement

FINEST = 1 << 16
"""More levels tell no more errors."""
COARSEST = 2
USUAL = 256
"""Where rounding cannot be avoided."""

_Range = tuple[float, float] | None
"""A grain (a power of two) and the largest magnitude; None where functions round anyway."""


class _RoundedError(Exception):
    """A sum or product may have to be rounded."""


def finest_levels(program: Program, highs: Mapping[str, float]) -> int:
    """Give into how many levels the magnitudes of inputs may be divided.

    With fewer levels than that, products and sums are multiples of a grain and below 2^24 grains (2^53 in
    float64), so that they are exact in any order; see `planish.loops.bounds`. What exponentials and the like
    round is left out: nothing mends that.

    Args:
        program: what is computed.
        highs: input to the bound of its magnitudes, a power of two.

    Returns:
        A power of two; `USUAL` where even `COARSEST` levels are too many.
    """
    levels = FINEST
    while levels >= COARSEST:
        ranges = {name: (high / levels, high - high / levels) for name, high in highs.items()}
        if _is_exact(program, ranges):
            return levels
        levels //= 2
    return USUAL


def _is_exact(program: Program, ranges: Mapping[str, _Range]) -> bool:
    precision = Precision.of(program.types[0][1].dtype)
    known = dict(ranges)
    try:
        for statement in program.statements:
            name, found = statement.target.tensor, _of_statement(statement, program, known, precision)
            known[name] = _joined(known[name], found) if name in known else found
    except _RoundedError:
        return False
    return True


def _of_statement(
    statement: Statement, program: Program, known: Mapping[str, _Range], precision: Precision
) -> _Range:
    value = _of(statement.value, known, precision)
    if value is None or statement.reduce == "mul":
        return None
    if statement.reduce != "add":
        return value
    terms = prod(program.size[axis] for axis in statement.reduced_axes)
    return _exactly(value[0], terms * value[1], precision)


def _of(expr: Expr, known: Mapping[str, _Range], precision: Precision) -> _Range:
    match expr:
        case Const(value=value):
            rounded = float(precision.dtype.type(value))
            return grain_of(rounded), abs(rounded) if isfinite(rounded) else 0.0
        case Access(tensor=tensor, pad=pad):
            inside = known[tensor]
            return inside if pad is None else _joined(inside, _of(Const(pad), known, precision))
        case _:
            return _applied(expr.function, [_of(arg, known, precision) for arg in expr.args], precision)


def _applied(function: str, args: list[_Range], precision: Precision) -> _Range:
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
