"""Inputs of programs: no zeros, distinct magnitudes, and sums that are exact in any order.

A style says what they look like: magnitudes, signs, and where the largest are. How fine they may be follows
from the program, so that no order of its sums has to round.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, islice, product
from math import isfinite, prod, sqrt
from typing import Any, Literal

import numpy as np

from planish.core.hashing import rng
from planish.levels.loops.lang.draft import collisions, index_ranges, is_gather, parts_of
from planish.levels.loops.lang.element_types import INTEGER, numpy_type
from planish.levels.loops.lang.program import (
    COMPARISONS,
    POSITIONS,
    QINT8,
    QUINT8,
    TF32,
    TF32_BITS,
    Access,
    Apply,
    Const,
    Expr,
    Program,
    Statement,
    TensorType,
    accesses,
    applied,
)
from planish.levels.loops.reference.bounds import Precision, quantum_of, representable
from planish.levels.loops.reference.packed import elements_of, over_numbers
from planish.levels.loops.reference.views import Array, chunks

FINEST = 1 << 16
"""Levels at most: more would show no more errors."""
COARSEST = 2
USUAL = 256
"""Levels where rounding cannot be avoided."""

_Range = tuple[float, float] | None
"""A quantum (a power of two) and the largest magnitude; None where functions round anyway."""


class _RoundedError(Exception):
    """A sum or product may have to be rounded."""


LONG = 8
"""Levels of terms: a sum is long where terms of only these, all of one sign, could not be added exactly."""
_SPREAD = 8.0
"""Standard deviations within which sums of numbers of random signs are, for each factor of their terms."""
_MARGIN = 4
"""So many times as large sums must be exact, too, since the reference bounds them from samples."""


def is_long(statement: Statement, program: Program) -> bool:
    """Return whether a statement sums too many terms to be exact unless they cancel each other."""
    if program.arithmetic == INTEGER:
        return False
    most = Precision.of(program.arithmetic).max_integer
    return statement.reduce == "add" and terms_of(statement, program) * LONG > most


def terms_of(statement: Statement, program: Program) -> int:
    """Count the terms of each sum of a statement, at most."""
    many = collisions(statement.target, program.size)
    return many * prod(program.size[axis] for axis in statement.reduced_axes)


def canceled(statement: Statement, root_of_squares: float) -> float:
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
    """Return the number of levels into which the magnitudes of inputs may be divided.

    With fewer levels than that, products and sums are multiples of a quantum and below 2^24 quanta (2^53 in
    float64), so that they are exact in any order; see `planish.levels.loops.reference.bounds`. What
    exponentials and the like round is left out: no input avoids that.

    Args:
        program: what is computed.
        highs: input to the bound of its magnitudes, a power of two.
        cancel: whether signs are random, so that long sums of them stay small (`canceled`).

    Returns:
        A power of two, no larger than the inputs' types have room for; `USUAL` where even `COARSEST` levels
        are too many.
    """
    stored = {program.type[t].dtype for t in program.inputs if t not in program.integer_indices}
    levels = most = int(min([FINEST, *(Precision.of(dtype).max_integer for dtype in stored)]))
    while levels >= COARSEST:
        # Magnitudes are below `high`: the largest is one quantum less.
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
            name = statement.target.tensor
            found = _of_statement(statement, program, known, precision, cancel=cancel)
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
        most = min(terms, _MARGIN * canceled(statement, sqrt(terms)))
        return _exactly(value[0], most * value[1], precision)
    return _exactly(value[0], terms * value[1], precision)


def _of(expr: Expr, known: Mapping[str, _Range], precision: Precision) -> _Range:
    match expr:
        case Const(value=value):
            rounded = float(precision.dtype.type(value))
            # An infinity stays one, whatever is added.
            return quantum_of(rounded), abs(rounded) if isfinite(rounded) else 0.0
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
    quanta, larges = zip(*(arg for arg in args if arg is not None), strict=True)
    match function:
        case "add" | "sub":
            return _exactly(min(quanta), sum(larges), precision)
        case "mul":
            return _exactly(prod(quanta), prod(larges), precision)
        case "max" | "min" | "neg" | "abs" | "relu":
            return min(quanta), max(larges)
        case _:
            return None


def _exactly(quantum: float, largest: float, precision: Precision) -> _Range:
    if not representable(largest, quantum, precision):
        raise _RoundedError
    return quantum, largest


def _joined(one: _Range, other: _Range) -> _Range:
    if one is None or other is None:
        return None
    return min(one[0], other[0]), max(one[1], other[1])


@dataclass(frozen=True)
class Style:
    """Distribution of the elements of an input.

    Args:
        low: the least magnitude.
        high: magnitudes are below it.
        signs: "mixed", "positive" or "negative".
        peak: by how much what has the index `at` of a dimension is larger than the rest; a power of two.
        at: the first index, 0, or the last one, -1.
        levels: into how many the magnitudes are divided at most, so that some are equal; 0 for any number.
        also: numbers that half of the elements are, each as often as the others.
    """

    low: float = 0.25
    high: float = 1.0
    signs: Literal["mixed", "positive", "negative"] = "mixed"
    peak: float = 1.0
    at: Literal[0, -1] = -1
    levels: int = 0
    also: tuple[float, ...] = ()

    def scaled(self, factor: float) -> Style:
        """Return the style of magnitudes this many times as large."""
        return replace(self, low=self.low * factor, high=self.high * factor)


MIXED = Style()
POSITIVE = Style(signs="positive")
NEGATIVE = Style(signs="negative")
NEAR_ONE = Style(0.875, 1.125)
"""Products of many of them neither vanish nor overflow."""
_PEAKS = tuple(Style(0.5, 1.0, signs, peak) for peak in (2, 0.5) for signs in ("positive", "negative"))
_FAR, _FAR_PEAK = 2.0**20, 4
"""Size of numbers that are far apart, and the factor of the last: `exp` of their differences overflows."""
_FAR_IN_HALF = 2.0**15
"""The most that they are in float16, however coarse they have to be."""
_TIES = 4
"""Levels with which many elements are equal."""
_MOST_ALSO, _LARGE = 8, 100.0
"""Most numbers of a program that are taken as elements, and the size from which they are too large for it."""
_TURNS = POSITIVE, NEGATIVE
_ENDS: tuple[Literal[0, -1], ...] = (-1, 0)

Styles = Mapping[str, Style]
"""Input to its style."""


def usual_styles(program: Program) -> Styles:
    """Return mixed signs, but positive numbers where roots, logarithms and divisors are made of them."""
    positive = must_be_positive(program)
    return {name: POSITIVE if name in positive else MIXED for name in program.inputs}


def all_styles(program: Program, seed: int) -> Iterator[Styles]:
    """List styles without end, the usual first; what one of them hides the next may show.

    Sums of mixed signs may be negative, which `relu` hides: then all numbers positive, or negative. A
    constant may be above all magnitudes or below: then larger and smaller ones. Of a `max=` one element
    counts: then it is the last one or the first, where loops begin and end. Differences have one sign where
    inputs are positive and negative alternately. In every other set each input has any style of its own.
    What is compared must be equal now and then: to the other side, and to numbers in it. What is subtracted
    lest `exp` overflow counts where it would.

    Args:
        program: whose inputs they are for.
        seed: of the random ones.
    """
    tied = _compared(program)
    sides = [side for s in program.statements for c in _comparisons(s.value) for side in c.args[:2]]
    numbers = [side.value for side in sides if isinstance(side, Const) and isfinite(side.value)]
    also = tuple(dict.fromkeys((0.0, *numbers)))
    # A sum of a tensor and a number is 0 where the tensor is the number's opposite.
    every = tuple(dict.fromkeys((*also, *(n for x in numbers_of(program) for n in (x, -x)))))[:_MOST_ALSO]
    ordered = _ordered(program, {"levels": _TIES, "also": also} if tied else {}, tied)
    for number in count():
        # In turns: what has one style for all inputs hides that one is taken for another.
        yield from islice(ordered, 1 if number else 3)
        generator = rng(seed, len(program.inputs), number)
        made = {name: _any_style(generator) for name in program.inputs}
        if generator.random() < 0.5:
            ties = {"levels": _TIES, "also": every, "peak": 1.0}
            made |= {n: replace(made[n], **ties) for n in program.inputs if n in tied}
        yield made


def _ordered(program: Program, ties: Mapping[str, Any], tied: Container[str]) -> Iterator[Styles]:
    usual = usual_styles(program)
    yield usual
    if ties:
        yield {n: replace(s, **ties) if n in tied else s for n, s in usual.items()}
    for style in (POSITIVE, MIXED.scaled(4), MIXED.scaled(1 / 16), NEAR_ONE, NEGATIVE):
        if style not in usual.values() or len(set(usual.values())) > 1:
            yield dict.fromkeys(program.inputs, style)
    for turn in (0, 1):
        yield {name: _TURNS[(i + turn) % 2] for i, name in enumerate(program.inputs)}
    for at, style in product(_ENDS, _PEAKS):
        yield dict.fromkeys(program.inputs, replace(style, at=at))
    far = {name: _far_apart(program.type[name]) for name in program.inputs}
    yield far
    yield {name: replace(style, signs="negative") for name, style in far.items()}


def _far_apart(kind: TensorType) -> Style:
    # One peak for the last ones, and one for magnitudes of a single level, which are as large as the peak.
    size = _FAR_IN_HALF / _FAR_PEAK ** (2 * len(kind.shape)) if kind.dtype == "float16" else _FAR
    return replace(MIXED.scaled(size), peak=_FAR_PEAK)


def _compared(program: Program) -> set[str]:
    """Find the tensors that comparisons look at, directly or by other tensors."""
    found: set[str] = set()
    # Backwards: what matters for a tensor matters for those that it is made of.
    for statement in reversed(program.statements):
        sides = [arg for c in _comparisons(statement.value) for arg in c.args[:2]]
        read = [statement.value] if statement.target.tensor in found else sides
        found |= {a.tensor for expr in read for a in accesses(expr)}
    return found


def numbers_of(program: Program) -> Iterator[float]:
    """List the numbers in a program that are neither infinite nor large."""
    waiting: list[Expr] = [s.value for s in program.statements]
    for expr in waiting:  # grows
        if isinstance(expr, Apply):
            waiting += expr.args
        number = expr.value if isinstance(expr, Const) else 0.0
        if 0 < abs(number) < _LARGE:
            yield number


def _comparisons(expr: Expr) -> Iterator[Apply]:
    return (part for part in applied(expr) if part.function in COMPARISONS)


def _any_style(generator: np.random.Generator) -> Style:
    signs: tuple[Literal["mixed", "positive", "negative"], ...] = ("mixed", "positive", "negative")
    style = Style(signs=signs[int(generator.integers(3))])
    if generator.random() < 0.25:
        peak, at = (0.25, 4.0)[int(generator.integers(2))], _ENDS[int(generator.integers(2))]
        style = replace(style, peak=peak, at=at)
    return style.scaled(float(4.0 ** generator.integers(-2, 3)))


def must_be_positive(program: Program) -> set[str]:
    """Find the tensors that roots, logarithms and divisors are made of, directly or by other tensors."""
    found: set[str] = set()
    # Backwards, as above.
    for statement in reversed(program.statements):
        whole = statement.target.tensor in found
        found |= _to_be_positive(statement.value) if whole else _delicate(statement.value)
    return found


def _delicate(expr: Expr) -> set[str]:
    """Name the tensors that roots, logarithms and divisors in an expression are made of."""
    if not isinstance(expr, Apply):
        return set()
    if expr.function in ("log", "sqrt", "div"):
        return _to_be_positive(expr.args[-1]).union(*map(_delicate, expr.args[:-1]))
    return set[str]().union(*map(_delicate, expr.args))


def _to_be_positive(expr: Expr) -> set[str]:
    """Name the tensors that make an expression positive where they are; exp(x) and abs(x) are anyway."""
    if isinstance(expr, Apply) and expr.function in ("exp", "sigmoid", "abs"):
        return _delicate(expr)
    if isinstance(expr, Apply):
        return set[str]().union(*map(_to_be_positive, expr.args))
    return {a.tensor for a in accesses(expr)}


_USUAL = 100
"""The bound of usual magnitudes of integers."""
ALIGNMENT = 64
"""Bytes; a cache line, and the widest vector."""


def aligned(kind: TensorType) -> Array:
    """Allocate an array that starts at a cache line; its content is arbitrary."""
    dtype = numpy_type(kind.dtype)
    memory = np.empty(kind.size * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + kind.size * dtype.itemsize].view(dtype).reshape(kind.shape)


def make_inputs(program: Program, seed: int = 0, styles: Styles | None = None) -> dict[str, Array]:
    """Make the inputs of a program.

    Their magnitudes are odd multiples of a power of two, the finest with which the program's sums of products
    are exact in any order (see `planish.levels.loops.reference.inputs`): none is zero, and few are equal.

    Args:
        program: what they are for.
        seed: of the random numbers; each tensor's also depend on its index among the inputs.
        styles: what they look like; by default magnitudes in [0.25, 1) of mixed signs, but positive where a
            logarithm, root or divisor is made of them.

    Returns:
        Input to a contiguous array of the program's element type that starts at a cache line.
    """
    if (whole := over_numbers(program)) is not program:
        return elements_of(program, make_inputs(whole, seed, styles))
    chosen = usual_styles(program) if styles is None else styles
    if program.arithmetic == INTEGER:
        return {n: _integers(program.type[n], chosen[n], rng(seed, i)) for i, n in enumerate(program.inputs)}
    few = any(kind.dtype == QUINT8 for _, kind in program.types)
    chosen = {name: _style_of(program.type[name].dtype, style, few=few) for name, style in chosen.items()}
    peaks = {name: style.peak ** len(program.type[name].shape) for name, style in chosen.items()}
    highs = {
        name: 2.0 ** np.ceil(np.log2(style.high)) * max(1, peaks[name]) for name, style in chosen.items()
    }
    cancel = all(style.signs == "mixed" for style in chosen.values())
    levels = finest_levels(
        program, highs, cancel=cancel and any(is_long(s, program) for s in program.statements)
    )
    result: dict[str, Array] = {}
    ranges = index_ranges(program)
    for i, name in enumerate(program.inputs):
        array = result[name] = aligned(program.type[name])
        if name in ranges:
            _fill_indices(array, ranges[name], rng(seed, i))
            continue
        own = min(levels, chosen[name].levels or levels)
        filled = np.empty(array.shape) if array.dtype.kind in "iu" else array
        _fill(filled, chosen[name], highs[name] / own / min(1, peaks[name]), rng(seed, i))
        if filled is not array:
            array[...] = filled
        for dimension in range(array.ndim if peaks[name] != 1 else 0):
            array[(*[slice(None)] * dimension, chosen[name].at)] *= chosen[name].peak
    return rounded_tf32(program, result)


def _style_of(dtype: str, style: Style, *, few: bool) -> Style:
    """Return the style that inputs of a type have.

    Those of qint8 are whole numbers below 128; below 8 where there are `few`, lest sums of products of two
    of them be so large that what is added to them is rounded away.
    """
    if dtype not in (QINT8, QUINT8):
        return style
    signs = "positive" if dtype == QUINT8 else style.signs
    if few:
        return Style(2, 8, signs, levels=min(8, style.levels or 8))
    return Style(32, 128, signs, levels=style.levels)


def rounded_tf32(program: Program, inputs: dict[str, Array]) -> dict[str, Array]:
    """Round inputs of tf32 to numbers that the type has, so that no kernel rounds them any more."""
    for name, array in inputs.items():
        if program.type[name].dtype == TF32:
            kept = -1 << (np.finfo(array.dtype).nmant - TF32_BITS)
            np.bitwise_and(array.view(np.int32), kept, out=array.view(np.int32), where=np.isfinite(array))
    return inputs


def _integers(kind: TensorType, style: Style, generator: np.random.Generator) -> Array:
    """Draw integers of a style: up to 100 in the usual one, and never 0."""
    array, most = aligned(kind), np.iinfo(kind.dtype).max
    low, high = (max(1, min(int(_USUAL * n), int(most))) for n in (style.low, style.high))
    # Of no dimension, NumPy returns a number that cannot be written into.
    drawn = np.asarray(generator.integers(low, high, kind.shape, endpoint=True))
    for dimension in range(array.ndim if style.peak != 1 else 0):
        index = (*[slice(None)] * dimension, style.at)
        drawn[index] = np.maximum(drawn[index] * style.peak, 1)
    np.minimum(drawn, most, out=drawn)
    if style.signs != "positive":
        negative = generator.random(kind.shape) < 0.5 if style.signs == "mixed" else True
        np.negative(drawn, out=drawn, where=negative)
    if style.also:
        which = np.asarray(generator.integers(0, 2 * len(style.also), kind.shape))
        for i, number in enumerate(style.also):
            drawn[which == i] = max(-most - 1, min(int(number), most))
    array[...] = drawn
    return array


_FEW = 16
"""Of no more indices one in two lies outside by chance, of others one in sixteen."""
_ROOM = 4
"""Indices of which one lies outside for certain, until each kind of these is there."""


def _fill_indices(array: Array, extent: int, generator: np.random.Generator) -> None:
    """Draw indices, of which some lie outside: by chance, and one of each kind where there is room."""
    array[...] = generator.integers(0, extent, array.shape)
    outside = (-1, -1000, extent, extent + 1000)
    rare = 16 if array.size > _FEW else 2
    which = generator.integers(0, rare * len(outside), array.shape)
    for i, number in enumerate(outside):
        array[which == i] = number
    # By chance alone, an array of 40 lacks one of the kinds nearly always.
    count = min(len(outside), array.size // _ROOM)
    chosen = generator.choice(array.size, count, replace=False)
    array.reshape(-1)[chosen] = generator.permutation(outside)[:count]


def _fill(array: Array, style: Style, quantum: float, generator: np.random.Generator) -> None:
    """Draw odd multiples of the quantum, and then the elements that are other numbers."""
    for (part,) in chunks(array):
        _fill_part(part, style, quantum, generator)
    for (part,) in chunks(array) if style.also else ():
        which = generator.integers(0, 2 * len(style.also), part.shape)
        for i, number in enumerate(style.also):
            part[which == i] = number


def _fill_part(part: Array, style: Style, quantum: float, generator: np.random.Generator) -> None:
    first = int(style.low / quantum) // 2
    many = max(1, int(style.high / quantum) // 2 - first)
    drawn = generator.integers(-many if style.signs == "mixed" else 0, many, part.shape, np.int32)
    # -1, -2, ... become 0, 1, ...: a shift of the sign's bit sets all bits.
    sign = drawn >> 31
    np.bitwise_xor(drawn, sign, out=drawn)
    drawn += first
    if style.signs != "positive":
        sign = sign if style.signs == "mixed" else np.int32(-1)
    # Below: odd numbers, and where the sign is -1 their negatives.
    np.multiply((2 * drawn + 1) * (2 * sign + 1), quantum, out=part, casting="same_kind")
