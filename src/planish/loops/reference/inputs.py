"""Arrays to run a program on: no zeros, distinct magnitudes, and sums that are exact in any order."""

from __future__ import annotations

import numpy as np

from planish.core.seeds import rng
from planish.loops.lang.element_types import WHOLE, numpy_type
from planish.loops.lang.program import Program, TensorType
from planish.loops.lang.subscripts import index_ranges
from planish.loops.reference.exactness import finest_levels, is_long
from planish.loops.reference.styles import Style, Styles, usual_styles
from planish.loops.reference.views import Array, chunks

_USUAL = 100
"""The bound of usual magnitudes of whole numbers."""
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
    are exact in any order (see `planish.loops.reference.exactness`): none is zero, and few are equal.

    Args:
        program: what they are for.
        seed: of the random numbers; each tensor's also depend on its place among the inputs.
        styles: what they look like; by default magnitudes in [0.25, 1) of mixed signs, but positive where a
            logarithm, root or divisor is made of them.

    Returns:
        Input to a contiguous array of the program's element type that starts at a cache line.
    """
    chosen = usual_styles(program) if styles is None else styles
    if program.arithmetic == WHOLE:
        return {n: _whole(program.type[n], chosen[n], rng(seed, i)) for i, n in enumerate(program.inputs)}
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
        _fill(array, chosen[name], highs[name] / own / min(1, peaks[name]), rng(seed, i))
        for dimension in range(array.ndim if peaks[name] != 1 else 0):
            array[(*[slice(None)] * dimension, chosen[name].at)] *= chosen[name].peak
    return result


def _whole(kind: TensorType, style: Style, generator: np.random.Generator) -> Array:
    """Draw whole numbers of a style: up to 100 in the usual one, and never 0."""
    array, most = aligned(kind), np.iinfo(kind.dtype).max
    low, high = (max(1, min(int(_USUAL * n), int(most))) for n in (style.low, style.high))
    # Of no dimension, NumPy gives a number that cannot be written into.
    drawn = np.asarray(generator.integers(low, high, kind.shape, endpoint=True))
    for dimension in range(array.ndim if style.peak != 1 else 0):
        place = (*[slice(None)] * dimension, style.at)
        drawn[place] = np.maximum(drawn[place] * style.peak, 1)
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
"""Of so many indices one lies outside for certain, until each kind of these is there."""


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
    places = generator.choice(array.size, count, replace=False)
    array.reshape(-1)[places] = generator.permutation(outside)[:count]


def _fill(array: Array, style: Style, grain: float, generator: np.random.Generator) -> None:
    """Draw odd multiples of the grain, and then the elements that are other numbers."""
    for (part,) in chunks(array):
        _fill_part(part, style, grain, generator)
    for (part,) in chunks(array) if style.also else ():
        which = generator.integers(0, 2 * len(style.also), part.shape)
        for i, number in enumerate(style.also):
            part[which == i] = number


def _fill_part(part: Array, style: Style, grain: float, generator: np.random.Generator) -> None:
    first = int(style.low / grain) // 2
    many = max(1, int(style.high / grain) // 2 - first)
    drawn = generator.integers(-many if style.signs == "mixed" else 0, many, part.shape, np.int32)
    # -1, -2, ... become 0, 1, ...: a shift of the sign's bit gives ones in all bits.
    sign = drawn >> 31
    np.bitwise_xor(drawn, sign, out=drawn)
    drawn += first
    if style.signs != "positive":
        sign = sign if style.signs == "mixed" else np.int32(-1)
    # Below: odd numbers, and where the sign is -1 their negatives.
    np.multiply((2 * drawn + 1) * (2 * sign + 1), grain, out=part, casting="same_kind")
