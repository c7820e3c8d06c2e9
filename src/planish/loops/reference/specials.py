"""Inputs with special values: zeros, the ends of each type's range, infinities and NaN.

The inputs of `planish.loops.reference.styles` show mistakes in what is read and summed; all have usual
magnitudes. These show what a kernel makes of special values. They have a few of each, so that most outputs
stay usual numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from planish.core.seeds import rng
from planish.loops.lang.draft import axes_of
from planish.loops.lang.element_types import WHOLE
from planish.loops.lang.program import Apply, Const, Program, Statement
from planish.loops.lang.subscripts import index_ranges
from planish.loops.reference.inputs import make_inputs
from planish.loops.reference.reference import factors
from planish.loops.reference.styles import Styles, must_be_positive, usual_styles
from planish.loops.reference.views import Array, Arrays

ZERO, LARGEST, INFINITE, NAN = "zero", "largest", "infinite", "NaN"
SPARSE = 1 << 12
"""An array has each special value once, and again for so many elements more."""
_SMALL = {"float16": 2.0**-10}
_USUAL_SMALL = 2.0**-22
"""The other elements' magnitudes where a program is linear: products of two lie far below 1e-6."""
_SMALLER = 2.0**-22
"""By how much they are smaller where all are near zero; not in float16, which has no such numbers."""
_HUGE = {"float16": 2.0**14, "float64": 2.0**200}
_USUAL_HUGE = 2.0**124
"""Of float64 products of five are in range, for the reference has no more range than the kernel."""
_TINY = {"float16": (2.0**-14, 2.0**-20), "float64": (2.0**-300, 2.0**-1060)}
_USUAL_TINY = 2.0**-100, 2.0**-130
"""A normal number and a subnormal one of each type; the usual ones are those of bfloat16, too."""
_EXTREMES = {"max", "min"}


def special_inputs(program: Program, seed: int, kinds: Sequence[str], *, small: bool) -> Arrays:
    """Make inputs of a program in floating point with special values.

    Args:
        program: what they are for.
        seed: of the random numbers.
        kinds: of `ZERO`, `LARGEST`, `INFINITE` and `NAN`. Values of one kind alone have one sign, so that a
            sum of them is no other special value. Only the first input has the largest values: products of
            two overflow.
        small: whether the other elements are small.
    """
    made = make_inputs(program, seed, _styles(program, small=small, smaller=list(kinds) == [ZERO]))
    # The sign of a zero that is computed is not specified, nor is that of an infinite quotient.
    divisors = must_be_positive(program) if _divides(program) else set[str]()
    slices = any(s.reduce in _EXTREMES for s in program.statements)
    sums = any(s.reduce == "add" for s in program.statements)
    ranges = index_ranges(program)
    for i, (name, array) in enumerate(made.items()):
        if name in program.whole_indices:
            continue
        generator = rng(seed, i, 1 << 19)
        own = [kind for kind in kinds if kind != LARGEST or i == 0]
        values = list(_values(program.type[name].dtype, own, zeros=name not in divisors, subnormal=not sums))
        if name in ranges:
            values = [v for v in values if not np.isfinite(v) or abs(v) > 1]
        if slices and INFINITE in kinds:
            _fill_slices(array, np.inf, generator)
        elif slices and list(kinds) == [ZERO]:
            _fill_slices(array, _TINY.get(program.type[name].dtype, _USUAL_TINY)[-1], generator)
        _strew(array, values, generator)
    _make_some_equal([a for n, a in made.items() if n not in ranges], rng(seed, len(made), 1 << 19))
    return made


def _styles(program: Program, *, small: bool, smaller: bool) -> Styles:
    def scale(dtype: str) -> float:
        if not (small or smaller):
            return 1.0
        return _SMALL.get(dtype) or _USUAL_SMALL * (_SMALLER if smaller else 1.0)

    return {n: style.scaled(scale(program.type[n].dtype)) for n, style in usual_styles(program).items()}


def special_kinds(program: Program) -> Sequence[str]:
    """List the kinds of special values of which every right kernel makes the same.

    Partial products overflow and underflow in some orders only. Of infinities, the reference sums what only
    one of two factors has before it multiplies: that may be infinite where the sum of the products is NaN.
    """
    if any(s.reduce == "mul" for s in program.statements):
        return (NAN,)
    sums = (s for s in program.statements if s.reduce == "add")
    return (ZERO, LARGEST, INFINITE, NAN) if all(map(_sums_products, sums)) else (ZERO, LARGEST, NAN)


def _sums_products(statement: Statement) -> bool:
    first, second = factors(statement.value)
    both = set(axes_of(first)) & set(axes_of(second))
    return isinstance(second, Const) or set(statement.reduced_axes) <= both


def whole_range_inputs(program: Program, seed: int, *, ends: bool) -> Arrays:
    """Make inputs of a program of integers, from the whole range of each type.

    Args:
        program: what they are for.
        seed: of the random numbers.
        ends: whether half of the elements are the range's ends, their neighbours, 0, 1 and -1.
    """
    assert program.arithmetic == WHOLE
    made = make_inputs(program, seed)
    for i, (name, array) in enumerate(made.items()):
        generator, info = rng(seed, i, 1 << 19), np.iinfo(program.type[name].dtype)
        array[...] = generator.integers(info.min, info.max, array.shape, endpoint=True)
        special = np.array([info.min, info.max, info.min + 1, info.max - 1, 0, 1, -1])
        if ends:
            some = generator.random(array.shape) < 0.5
            array[...] = np.where(some, generator.choice(special, array.shape), array)
        _strew(array, special.tolist(), generator)
    _make_some_equal(list(made.values()), rng(seed, len(made), 1 << 19))
    return made


def _values(dtype: str, kinds: Sequence[str], *, zeros: bool, subnormal: bool) -> Iterator[float]:
    """List the special values of a type; subnormal ones are slow, and arithmetic may make zeros of them."""
    signs = (1, -1) if len(kinds) > 1 else (1,)
    if ZERO in kinds:
        yield from (0.0, -0.0) if zeros else ()
        tiny = _TINY.get(dtype, _USUAL_TINY)
        yield from (sign * value for value in tiny[: 1 + subnormal] for sign in (1, -1))
    if LARGEST in kinds:
        yield from (sign * _HUGE.get(dtype, _USUAL_HUGE) for sign in signs)
    if INFINITE in kinds:
        yield from (sign * np.inf for sign in signs)
    if NAN in kinds:
        yield from (np.nan, -np.nan)


def _strew(array: Array, values: Sequence[float], generator: np.random.Generator) -> None:
    """Put values at random indices: one of each, more in large arrays, at most half of the elements."""
    flat = array.reshape(-1)
    count = min(len(values) * (1 + flat.size // SPARSE), max(1, flat.size // 2))
    places = generator.choice(flat.size, count, replace=False)
    flat[places] = np.resize(np.array(values, flat.dtype), count)


def _make_some_equal(arrays: Sequence[Array], generator: np.random.Generator) -> None:
    """Let arrays of one shape have equal elements at some places."""
    for one, other in pairwise(arrays):
        if one.shape == other.shape:
            places = generator.choice(one.size, 1 + one.size // SPARSE, replace=False)
            other.reshape(-1)[places] = one.reshape(-1)[places]


def _fill_slices(array: Array, value: float, generator: np.random.Generator) -> None:
    """Fill a slice along each dimension, with each sign in turn, so that its greatest element is special."""
    for dimension, extent in enumerate(array.shape):
        if extent > 1:
            index = int(generator.integers(extent))
            array[(*[slice(None)] * dimension, index)] = value if dimension % 2 else -value


def _divides(program: Program) -> bool:
    waiting = [s.value for s in program.statements]
    for expr in waiting:  # grows
        if isinstance(expr, Apply):
            if expr.function == "div":
                return True
            waiting += expr.args
    return False
