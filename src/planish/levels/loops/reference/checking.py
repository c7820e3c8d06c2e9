"""Comparison of a kernel's outputs with the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.bounds import Bounded, Precision, limits
from planish.levels.loops.reference.views import Array, Arrays, chunks, same_bits


@dataclass(frozen=True)
class Expected:
    """An output with its tolerance.

    Args:
        value: in float64, or in a narrower type that holds the same numbers.
        low: the least correct value, in the type that the program is computed in.
        high: the greatest.
        dtype: the type that the output is stored in.
    """

    value: Array
    low: Array
    high: Array
    dtype: np.dtype[Any]

    @staticmethod
    def of(values: Bounded, precision: Precision, dtype: str) -> Expected:
        """Compute the range of correct values, rounded outwards; infinities and NaN must be equal.

        What is stored in a narrower type is rounded once more, to the nearest: from the least correct value
        comes the least correct one that is stored.
        """
        found = Expected._computed(values, precision)
        return replace(found, dtype=numpy_type(dtype)).rounded()

    @staticmethod
    def _computed(values: Bounded, precision: Precision) -> Expected:
        value, error, dtype = values.value, values.error, precision.dtype
        if error is None:
            exact = np.asarray(value, dtype)
            return Expected(exact, exact, exact, dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            # The conversion rounds to the nearest: one number further out, the range is whole.
            low = np.nextafter((value - error).astype(dtype), dtype.type(-np.inf))
            high = np.nextafter((value + error).astype(dtype), dtype.type(np.inf))
        if not np.all(np.isfinite(value) & np.isfinite(error)):
            sure = ~np.isfinite(value)
            low, high = np.where(sure, value, low), np.where(sure, value, high)
            low, high = np.where(np.isinf(error), -np.inf, low), np.where(np.isinf(error), np.inf, high)
        return Expected(value, low.astype(dtype), high.astype(dtype), dtype)

    def rounded(self) -> Expected:
        """Round the range to what is stored."""
        if self.dtype == self.low.dtype:
            return self
        low, high = self.stored(self.low), self.stored(self.high)
        if self.dtype == numpy_type("bfloat16"):
            # Processors with AVX512_BF16 store numbers below the smallest normal one as 0.
            tiny = limits("bfloat16").tiny
            low = np.where((low > 0) & (low < tiny), 0, low)
            high = np.where((high < 0) & (high > -tiny), 0, high)
        return replace(self, low=low, high=high)

    def stored(self, array: Array) -> Array:
        """Round computed values to what is stored, in the type that they are compared in."""
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(self.dtype).astype(self.low.dtype)

    @property
    def tolerance(self) -> Array:
        """Return how far a correct kernel may be off, for each element; 0 where it must be exact."""
        with np.errstate(invalid="ignore", over="ignore"):
            return (np.asarray(self.high, np.float64) - self.low) / 2

    @property
    def testable(self) -> int:
        """Count of the elements that separate right kernels from wrong ones: not NaN, infinite or unknown."""
        return sum(
            int(np.count_nonzero(np.isfinite(value) & np.isfinite(low) & np.isfinite(high)))
            for value, low, high in chunks(self.value, self.low, self.high)
        )

    @cached_property
    def has_nan(self) -> bool:
        """Return whether some element is NaN."""
        return any(bool(np.isnan(chunk).any()) for (chunk,) in chunks(self.value))

    def accepts(self, array: Array) -> Array:
        """Return which elements are correct; NaN is where it must be, or where nothing is known.

        Args:
            array: in the type that the program is computed in.
        """
        unknown = np.isneginf(self.low) & np.isposinf(self.high)
        nan = np.isnan(array) & (np.isnan(self.low) | unknown)
        return (self.low <= array) & (array <= self.high) | nan

    def accepts_all(self, array: Array) -> bool:
        """Return True if all elements are correct; quicker than `accepts`.

        Args:
            array: contiguous, in the type that the output is stored in.
        """
        if self._exact is not None and same_bits(array, self._exact):
            return True
        # A copy where the type is another one, or NaN are looked for.
        indices, low, high = self._nan
        array = array.astype(self.low.dtype, copy=indices.size > 0).reshape(-1)
        if indices.size:
            found = array[indices]
            array[indices] = np.where(np.isnan(found), 0, np.where(low[indices] < 0, 0, 1))
        return all(bool(np.all(a <= x) and np.all(x <= b)) for a, x, b in chunks(low, array, high))

    @cached_property
    def _exact(self) -> Array | None:
        """The elements as they are stored, if a single value is correct for each."""
        exact = self.low is self.high or np.array_equal(self.low, self.high)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ascontiguousarray(self.low.astype(self.dtype)) if exact else None

    @cached_property
    def _nan(self) -> tuple[Array, Array, Array]:
        """Indices where NaN is correct, and the ranges: 0 to 0 where it must be, -1 to 1 where it may be."""
        low, high = (np.ascontiguousarray(end).reshape(-1) for end in (self.low, self.high))
        must = np.isnan(low)
        may = np.isneginf(low) & np.isposinf(high)
        indices = np.flatnonzero(must | may)
        if indices.size:
            low, high = (
                np.where(must, 0, np.where(may, other, end)).astype(end.dtype)
                for end, other in ((low, -1), (high, 1))
            )
        return indices, low, high


class ReferenceOutputs(Mapping[str, Array]):
    """Outputs of the reference: name to elements in float64; `expected` has the tolerances too."""

    def __init__(self, expected: Mapping[str, Expected]) -> None:
        self.expected = expected

    def __getitem__(self, name: str) -> Array:
        return self.expected[name].value.astype(np.float64, copy=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self.expected)

    def __len__(self) -> int:
        return len(self.expected)


def check(program: Program, got: Arrays, reference: ReferenceOutputs) -> str | None:
    """Compare a kernel's outputs with the reference's.

    Args:
        program: what was computed.
        got: output to its elements, of the program's shape and element type.
        reference: the outputs that `reference` computed.

    Returns:
        None if all are correct; else which element is wrong most, and how many are.
    """
    for name in program.outputs:
        expected, kind = reference.expected[name], program.type[name]
        if name not in got:
            return f"output {name} is missing"
        array = got[name]
        if array.shape != kind.shape or array.dtype != numpy_type(kind.dtype):
            return f"{name} is {array.dtype}{list(array.shape)}, not {kind.dtype}{list(kind.shape)}"
        if not expected.accepts_all(array):
            return _wrong(name, array.astype(expected.low.dtype, copy=False), expected)
    return None


def _wrong(name: str, array: Array, expected: Expected) -> str:
    correct = expected.accepts(array)
    with np.errstate(invalid="ignore"):
        off = np.abs(np.subtract(array, expected.value, dtype=np.float64)) - expected.tolerance
    # A NaN that should be none is the worst.
    off = np.where(correct, -np.inf, np.where(np.isnan(off), np.inf, off))
    worst = np.unravel_index(np.argmax(off), off.shape)
    index = ", ".join(map(str, worst))
    tolerance = float(np.broadcast_to(expected.tolerance, array.shape)[worst])
    within = f" within {tolerance:.2g}" if 0 < tolerance < np.inf else ""
    return (
        f"{name}[{index}] is {float(array[worst]):.9g}, not {float(expected.value[worst]):.9g}{within}; "
        f"{np.count_nonzero(~correct)} of {array.size} elements are wrong"
    )
