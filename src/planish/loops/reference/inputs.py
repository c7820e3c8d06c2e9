"""Arrays to run a program on: no zeros, distinct magnitudes, and sums that are exact in any order."""

from __future__ import annotations

import numpy as np

from planish.core.seeds import rng
from planish.loops.lang.numpy_types import numpy_type
from planish.loops.lang.program import Program, TensorType
from planish.loops.reference.exactness import finest_levels, is_long
from planish.loops.reference.styles import Style, Styles, usual_styles
from planish.loops.reference.views import Array

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
    peaks = {name: style.peak ** len(program.type[name].shape) for name, style in chosen.items()}
    highs = {
        name: 2.0 ** np.ceil(np.log2(style.high)) * max(1, peaks[name]) for name, style in chosen.items()
    }
    cancel = all(style.signs == "mixed" for style in chosen.values())
    levels = finest_levels(
        program, highs, cancel=cancel and any(is_long(s, program) for s in program.statements)
    )
    result: dict[str, Array] = {}
    for i, name in enumerate(program.inputs):
        array = result[name] = aligned(program.type[name])
        own = min(levels, chosen[name].levels or levels)
        _fill(array, chosen[name], highs[name] / own / min(1, peaks[name]), rng(seed, i))
        for dimension in range(array.ndim if peaks[name] != 1 else 0):
            array[(*[slice(None)] * dimension, chosen[name].at)] *= chosen[name].peak
    return result


def _fill(array: Array, style: Style, grain: float, generator: np.random.Generator) -> None:
    """Draw odd multiples of the grain."""
    first = int(style.low / grain) // 2
    many = max(1, int(style.high / grain) // 2 - first)
    drawn = generator.integers(-many if style.signs == "mixed" else 0, many, array.shape, np.int32)
    negative = drawn < 0
    np.bitwise_xor(drawn, -1, out=drawn, where=negative)  # -1, -2, ... become 0, 1, ...
    drawn += first
    np.multiply(2 * drawn + 1, grain, out=array, casting="same_kind")
    if style.signs != "positive":
        np.negative(array, out=array, where=negative if style.signs == "mixed" else True)
    if style.also:
        which = generator.integers(0, 2 * len(style.also), array.shape)
        for i, number in enumerate(style.also):
            array[which == i] = number
