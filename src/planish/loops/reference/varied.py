"""Random inputs of many kinds, for programs that do more than add and multiply.

Inputs of `planish.loops.reference.styles` are chosen by what they show. Many random ones show the rest: which
element of a reduction wins, on which side of a number a sum lies, where a function saturates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from planish.core.seeds import rng
from planish.loops.lang.element_types import WHOLE, numpy_type
from planish.loops.lang.program import Program, TensorType
from planish.loops.lang.subscripts import index_ranges
from planish.loops.reference.inputs import aligned, make_inputs
from planish.loops.reference.styles import must_be_positive, numbers_of
from planish.loops.reference.views import Array, Arrays

_KINDS = ("scaled", "scaled", "spread", "equal", "sparse", "peaked", "peaked", "peaked")
_POWERS = 7
"""Magnitudes are scaled by powers of two from -7 to 7."""
_USUAL = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0)
"""Values of which many elements are equal, beside the numbers in a program."""
_PEAK = 64.0
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
    # Of no dimension, NumPy gives a number that cannot be written into.
    made = np.asarray(made * 2.0 ** int(generator.integers(-_POWERS, _POWERS + 1)))
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
