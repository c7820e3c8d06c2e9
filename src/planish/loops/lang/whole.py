"""What a program of whole numbers may say; they are computed modulo 2^32, as NumPy does with int32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isinf, isnan

from planish.core.errors import ProgramError
from planish.loops.lang.gathering import is_gather
from planish.loops.lang.program import COMPARISONS, Access, Apply, Const, Expr, Program, number_text

WHOLE = "int32"
"""The type that whole numbers are computed in."""
FUNCTIONS = frozenset({"add", "sub", "mul", "max", "min", "neg", "abs", "relu", *COMPARISONS})
RANGES: Mapping[str, tuple[int, int]] = {"int8": (-128, 127), "int32": (-(2**31), 2**31 - 1)}


def check_whole_numbers(program: Program) -> None:
    """Refuse functions and numbers that whole numbers do not have; raises ProgramError."""
    for expr in (part for s in program.statements for part in _parts(s.value)):
        match expr:
            case Apply(function=function) if function not in FUNCTIONS:
                what = "look-ups" if is_gather(expr) else f"'{function}'"
                known = sorted(FUNCTIONS.difference(COMPARISONS))
                raise ProgramError(
                    f"whole numbers have no {what}", f"They have {', '.join(known)}, and comparisons."
                )
            case Const(value=value):
                _check_number(value, WHOLE)
            case Access(tensor=tensor, pad=pad) if pad is not None:
                _check_number(pad, program.type[tensor].dtype)
            case _:
                pass


LARGEST: Mapping[str, float] = {"float32": (2 - 2.0**-23) * 2.0**127, "float64": (2 - 2.0**-52) * 2.0**1023}


def check_numbers(program: Program) -> None:
    """Refuse numbers that the type of a program's arithmetic does not reach; raises ProgramError."""
    for expr in (part for s in program.statements for part in _parts(s.value)):
        number = expr.value if isinstance(expr, Const) else getattr(expr, "pad", None)
        if number is None or isinf(number):
            continue
        if isnan(number):
            raise ProgramError("a number of the program is NaN", "Write numbers, or inf.")
        if abs(number) > LARGEST[program.arithmetic]:
            hint = "Use --dtype float64." if program.arithmetic == "float32" else "Write inf for an infinity."
            what = f"{number_text(number)} is larger than every number of {program.arithmetic}"
            raise ProgramError(what, hint)


def _parts(expr: Expr) -> Iterator[Expr]:
    yield expr
    if isinstance(expr, Apply):
        for arg in expr.args:
            yield from _parts(arg)


def _check_number(value: float, dtype: str) -> None:
    low, high = RANGES[dtype]
    if isinf(value) and dtype == WHOLE:
        return  # the least or the greatest of all
    if not (low <= value <= high and value == int(value)):
        raise ProgramError(
            f"{number_text(value)} is no number of {dtype}", f"Those are whole, from {low} to {high}."
        )


def nearest_whole(value: float) -> int:
    """Give the nearest number of int32: the least or the greatest where it is infinite."""
    low, high = RANGES[WHOLE]
    return int(min(max(value, low), high))
