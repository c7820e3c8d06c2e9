"""What decides whether sums of numbers are exact: their grain, and the largest magnitude.

The grain is the largest power of two, of 1 and below, that all are multiples of.
"""

from __future__ import annotations

import math

import numpy as np

from planish.loops.reference.views import Array, chunks

_FINEST = 30
"""Grains below 2^-30 are not looked for: no sum of such numbers would be exact in float32."""
_WHOLE = 2.0**62
"""Numbers of fewer grains fit into 64 bits, with their sign."""


def grain_of(value: float) -> float:
    """Give the largest power of two that a number is a multiple of; 1 for zero and infinities."""
    if value == 0 or not np.isfinite(value):
        return 1.0
    n, d = value.as_integer_ratio()
    # The lowest bit that is set; the denominator is a power of two.
    return (n & -n) / d


def grain_of_all(values: Array) -> float:
    """Give the grain of an array: 1, or a smaller power of two; 0 where it would be below 2^-30.

    Args:
        values: of any type; infinities are multiples of everything, NaN of nothing.
    """
    bits = 0
    for (chunk,) in chunks(values):
        found = _bits(chunk.astype(np.float64))
        if found is None:
            return 0.0
        bits |= found
    # In two's complement the lowest bit that is set is that of the magnitude.
    return min(1.0, (bits & -bits) / 2**_FINEST) if bits else 1.0


def _bits(chunk: Array) -> int | None:
    """Collect the bits of numbers in units of the finest grain; None where one is no whole number of them."""
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = chunk * 2.0**_FINEST
        if not np.abs(scaled).max() < _WHOLE:
            # The low bits are what counts, and the remainder is exact. An infinity has none.
            scaled = np.where(np.isinf(scaled), 0.0, np.fmod(scaled, _WHOLE))
        whole = scaled.astype(np.int64)
    return int(np.bitwise_or.reduce(whole)) if np.array_equal(whole, scaled) else None


def largest_of(values: Array) -> float:
    """Give the largest finite magnitude; 0 where there is none.

    Args:
        values: of any type.
    """
    return max([_largest(chunk) for (chunk,) in chunks(values)], default=0.0)


def _largest(chunk: Array) -> float:
    magnitudes = np.abs(chunk.astype(np.float64))
    largest = float(magnitudes.max())
    if math.isfinite(largest):
        return largest
    return float(magnitudes.max(initial=0.0, where=np.isfinite(magnitudes)))
