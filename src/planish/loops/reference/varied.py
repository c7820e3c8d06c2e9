"""Random inputs of many kinds, for programs that do more than add and multiply.

Inputs of `planish.loops.reference.styles` are chosen by what they show. Many random ones show the rest: which
element of a reduction wins, on which side of a number a sum lies, where a function saturates.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from planish.core.seeds import rng
from planish.loops.lang.element_types import WHOLE, numpy_type
from planish.loops.lang.program import Program, TensorType
from planish.loops.lang.subscripts import index_ranges
from planish.loops.reference.inputs import aligned, make_inputs
from planish.loops.reference.styles import must_be_positive, numbers_of
from planish.loops.reference.views import Array, Arrays

_KINDS = ("scaled", "scaled", "shifted", "shifted", "spread", "equal", "sparse", "peaked", "peaked")
_OCTAVES = 7
"""Magnitudes are scaled by 2 to a power from -7 to 7, whole or not: a sum comes near any number."""
_USUAL = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0)
"""Values of which many elements are equal, beside the numbers in a program."""
_PEAK = 64.0
_EXTREME = 4.0, 64.0
"""By how much extremes are larger than the rest: enough in a sum, or little lest a function saturates."""
_SHARED = 0.5
"""The share of sets in which all inputs are of one kind."""
_MOST = 60_000.0
"""Magnitudes are below it: float16 has no larger ones."""


def varied_inputs(program: Program, seed: int, number: int) -> Arrays:
    """Make a set of inputs.

    Args:
        program: what they are for.
        seed: of all sets.
        number: of the set.
    """
    generator = rng(seed, number, 1 << 18)
    positive = must_be_positive(program) if generator.random() < 0.75 else set[str]()
    common = _KINDS[int(generator.integers(len(_KINDS)))] if generator.random() < _SHARED else ""
    values = (*_USUAL, *numbers_of(program))
    made = make_inputs(program, seed * 1000 + number)
    for name in (n for n in program.inputs if n not in index_ranges(program)):
        kind = common or _KINDS[int(generator.integers(len(_KINDS)))]
        drawn = _drawn(generator, kind, program.type[name].shape, values)
        made[name] = _stored(
            np.abs(drawn) + 2.0**-8 if name in positive else drawn, program.type[name], program
        )
    return made


def extreme_inputs(program: Program, seed: int, number: int, count: int) -> Arrays:
    """Make a set in which a greatest, a least and a smallest element of each input have planned indices.

    Args:
        program: what they are for.
        seed: of all sets.
        number: of the set; the first has the greatest elements at the first index, the second at the last.
        count: of the sets; together they have them at every index of small inputs, else at indices that are
            spread over each dimension.
    """
    generator = rng(seed, number, 1 << 24)
    positive = must_be_positive(program)
    made = make_inputs(program, seed * 1000 + number)
    for i, name in enumerate(n for n in program.inputs if n not in index_ranges(program)):
        shape = program.type[name].shape
        drawn = np.asarray(generator.uniform(0.5, 1.0, shape) * _signs(generator, shape))
        scale = float(generator.choice(_EXTREME))
        # A smallest one first: the others matter more where few sets are to have all.
        for j, value in enumerate((2.0**-8, scale, -scale / 2)):
            drawn[_planned(rng(seed, i, 1 << 25), shape, (number + j) % count, count)] = value
        drawn *= 2.0 ** generator.uniform(-1, 1)
        made[name] = _stored(np.abs(drawn) if name in positive else drawn, program.type[name], program)
    return made


def _planned(
    generator: np.random.Generator, shape: Sequence[int], number: int, count: int
) -> tuple[int, ...]:
    """Return the indices of one of some elements that are spread over a tensor; in order of `number`, any."""
    size = prod(shape)
    if size <= count:
        return tuple(int(n) for n in np.unravel_index(generator.permutation(size)[number % size], shape))
    if number < 2:
        return tuple(-number % extent for extent in shape)
    # Of each dimension all indices, or one in each of as many parts as there are sets.
    parts = (generator.permutation(np.arange(count) * extent // count) for extent in shape)
    return tuple(
        min(int(part[number] + generator.integers(max(1, extent // count))), extent - 1)
        for part, extent in zip(parts, shape, strict=True)
    )


def _stored(drawn: Array, kind: TensorType, program: Program) -> Array:
    """Round to the tensor's type; integers are some times as large, so that not all are 0."""
    array = aligned(kind)
    if program.arithmetic == WHOLE:
        info = np.iinfo(kind.dtype)
        array[...] = np.clip(np.round(drawn * 8), info.min, info.max)
    else:
        array[...] = np.clip(drawn, -_MOST, _MOST).astype(numpy_type(kind.dtype))
    return array


def _drawn(generator: np.random.Generator, kind: str, shape: Sequence[int], values: Sequence[float]) -> Array:
    """Draw elements of a kind."""
    if kind == "equal":
        return np.asarray(generator.choice(values, shape))
    made = np.asarray(generator.uniform(0.5, 1.0, shape)) * _signs(generator, shape)
    if kind == "spread":
        return made * 2.0 ** generator.uniform(-10, 10, shape)
    if kind == "shifted":
        made = float(generator.choice((-1.0, 1.0))) + made * 2.0 ** -int(generator.integers(4))
    # Of no dimension, NumPy gives a number that cannot be written into.
    made = np.asarray(made * 2.0 ** generator.uniform(-_OCTAVES, _OCTAVES))
    if kind == "sparse":
        return np.where(generator.random(shape) < 0.2, made, 0.0)
    if kind == "peaked":
        place = tuple(_place(generator, extent) for extent in shape)
        made[place] = made[place] * generator.choice((_PEAK, -_PEAK, 1 / _PEAK, -1 / _PEAK, 0.0))
    return made


def _signs(generator: np.random.Generator, shape: Sequence[int]) -> Array | float:
    if generator.random() < 0.5:
        return np.where(generator.random(shape) < 0.5, -1.0, 1.0)
    return float(generator.choice((-1.0, 1.0)))


def _place(generator: np.random.Generator, extent: int) -> Any:
    """Choose an index of a dimension, the first and the last one often, or all of them."""
    which = int(generator.integers(5))
    return (slice(None), 0, -1, *[int(generator.integers(extent))] * 2)[which]
