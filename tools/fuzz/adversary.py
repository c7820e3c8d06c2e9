"""Finite inputs that tell wrong kernels from right ones, made without the level's own choice of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from fuzz.draw import chance, pick
from planish.core import rng
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import Program, TensorType
from planish.levels.loops.lang.subscripts import index_ranges

Array = NDArray[Any]
LOOKS = ("plain", "one sign", "one sign", "small", "large", "wide", "ties", "sparse", "edge", "edge", "point")
_SIZES = (1, -1, 1, -1, 8, -8, 1 / 8, -1 / 8)
_NUMBERS = (0.0, 1.0, -1.0, 0.25, 0.75, -0.75, 0.5, 1.5, 2.0, -2.0)
"""Those of random programs, so that comparisons have equals."""


def adversarial(program: Program, seed: int, number: int) -> Mapping[str, Array]:
    """Make the inputs of a set: all of one look, or each of its own.

    Args:
        program: whose.
        seed: of all sets.
        number: of the set.
    """
    random = rng(seed, number, 1 << 21)
    common = pick(random, LOOKS) if chance(random, 0.6) else ""
    ranges = index_ranges(program)
    made: dict[str, Array] = {}
    for name in program.inputs:
        kind = program.type[name]
        if name in ranges:
            values = random.integers(-2, ranges[name] + 2, kind.shape).astype(np.float64)
        else:
            values = _looking(random, kind, common or pick(random, LOOKS))
        made[name] = _stored(values, kind, whole=program.arithmetic == "int32" and name not in ranges)
    return made


def _stored(values: Array, kind: TensorType, *, whole: bool) -> Array:
    """Round to the type of a tensor; whole numbers are a few times as large, lest all be 0."""
    values = np.round(values * 8) if whole else values
    if kind.dtype.startswith("int"):
        ends = np.iinfo(kind.dtype)
        return np.clip(values, max(ends.min, -(2**30)), min(ends.max, 2**30)).astype(kind.dtype)
    return np.clip(values, -60000, 60000).astype(numpy_type(kind.dtype))


def _looking(random: Generator, kind: TensorType, look: str) -> Array:
    size = np.asarray(0.5 + 1.5 * random.random(kind.shape))
    sign = np.where(random.random(kind.shape) < 0.5, -1.0, 1.0)
    match look:
        case "one sign":
            made = size * pick(random, _SIZES)
        case "small" | "large":
            made = size * sign * (2.0**-7 if look == "small" else 2.0**7)
        case "wide":
            made = sign * 2.0 ** random.uniform(-10, 10, kind.shape)
        case "ties":
            made = random.choice(_NUMBERS, kind.shape)
        case "sparse":
            made = np.where(random.random(kind.shape) < 0.2, size * sign, 0.0)
        case "edge" | "point":
            made = _peaked(random, size, look)
        case _:
            made = size * sign
    return np.asarray(made)


def _peaked(random: Generator, size: Array, look: str) -> Array:
    """Let what is at an edge, or a single element, be larger or smaller than all others, of any sign."""
    base = np.asarray(size * pick(random, (-1, 1, 1 / 64, -1 / 64, 0)))
    peak = pick(random, (-64.0, 64.0, 8.0, -8.0, 1 / 64, -1 / 64, 0.0))
    place: list[Any] = [slice(None)] * size.ndim
    for d in range(size.ndim):
        if look == "point" or chance(random, 1 / size.ndim):
            place[d] = pick(random, (0, -1, int(random.integers(size.shape[d]))))
    base[tuple(place)] = size[tuple(place)] * peak
    return base
