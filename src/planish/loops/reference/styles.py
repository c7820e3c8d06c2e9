"""What inputs look like: magnitudes, signs, and where the largest are."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, islice, product
from math import isfinite
from typing import Any, Literal

import numpy as np

from planish.core.seeds import rng
from planish.loops.lang.program import COMPARISONS, Apply, Const, Expr, Program, TensorType, accesses


@dataclass(frozen=True)
class Style:
    """What the elements of an input look like.

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
        """Give the style of magnitudes this many times as large."""
        return replace(self, low=self.low * factor, high=self.high * factor)


MIXED = Style()
POSITIVE = Style(signs="positive")
NEAR_ONE = Style(0.875, 1.125)
"""Products of many of them neither vanish nor overflow."""
_PEAKS = tuple(Style(0.5, 1.0, signs, peak) for peak in (2, 0.5) for signs in ("positive", "negative"))
_FAR, _FAR_PEAK = 2.0**20, 4
"""Numbers that are far apart are so large, the last so many times so: `exp` of differences overflows."""
_FAR_IN_HALF = 2.0**15
"""The most that they are in float16, however coarse they have to be."""
_TIES = 4
"""Levels with which many elements are equal."""
_MOST_ALSO, _LARGE = 8, 100.0
"""How many numbers of a program are taken as elements, and from where on they are too large for that."""
_TURNS = POSITIVE, Style(signs="negative")
_ENDS: tuple[Literal[0, -1], ...] = (-1, 0)

Styles = Mapping[str, Style]
"""Input to its style."""


def usual_styles(program: Program) -> Styles:
    """Give mixed signs, but positive numbers where roots, logarithms and divisors are made of them."""
    positive = must_be_positive(program)
    return {name: POSITIVE if name in positive else MIXED for name in program.inputs}


def all_styles(program: Program, seed: int) -> Iterator[Styles]:
    """List styles without end, the usual first; what one of them hides the next may show.

    Sums of mixed signs may be negative, which `relu` hides: then all numbers positive, or negative. A
    constant may be above all magnitudes or below: then larger and smaller ones. Of a `max=` one element
    counts: then it is the last one or the first, where loops begin and end. Differences have one sign where
    inputs are positive and negative in turns. In every other set each input has any style of its own. What is
    compared must be equal now and then: to the other side, and to numbers in it. What is subtracted lest
    `exp` overflow counts where it would.

    Args:
        program: whose inputs they are for.
        seed: of the random ones.
    """
    tied, also = _compared(program), tuple(dict.fromkeys((0.0, *_numbers(program))))
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
    for style in (
        POSITIVE,
        MIXED.scaled(4),
        MIXED.scaled(1 / 16),
        NEAR_ONE,
        replace(MIXED, signs="negative"),
    ):
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


def _numbers(program: Program) -> Iterator[float]:
    """List the numbers that something is compared with."""
    for comparison in (c for s in program.statements for c in _comparisons(s.value)):
        yield from (x.value for x in comparison.args[:2] if isinstance(x, Const) and isfinite(x.value))


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
    if isinstance(expr, Apply):
        yield from [expr] if expr.function in COMPARISONS else []
        for arg in expr.args:
            yield from _comparisons(arg)


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
