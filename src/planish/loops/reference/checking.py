"""Comparing a kernel's answer with the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planish.loops.lang.numpy_types import numpy_type
from planish.loops.lang.program import Program
from planish.loops.reference.bounds import Bounded, Precision
from planish.loops.reference.views import Array, Arrays, chunks


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
        """Take the range of correct values, rounded outwards; infinities and NaN must be met as they are.

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
        return replace(self, low=self.stored(self.low), high=self.stored(self.high))

    def stored(self, array: Array) -> Array:
        """Round computed values to what is stored, in the type that they are compared in."""
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(self.dtype).astype(self.low.dtype)

    @property
    def tolerance(self) -> Array:
        """How far a correct kernel may be off, for each element; 0 where it must be exact."""
        with np.errstate(invalid="ignore", over="ignore"):
            return (np.asarray(self.high, np.float64) - self.low) / 2

    @property
    def testable(self) -> int:
        """How many elements tell a right kernel from a wrong one: not NaN, nor infinite, nor unknown."""
        return sum(
            int(np.count_nonzero(np.isfinite(value) & np.isfinite(low) & np.isfinite(high)))
            for value, low, high in chunks(self.value, self.low, self.high)
        )

    def accepts(self, array: Array) -> Array:
        """Tell which elements are correct; NaN is where it must be, or where nothing is known.

        Args:
            array: in the type that the program is computed in.
        """
        unknown = np.isneginf(self.low) & np.isposinf(self.high)
        nan = np.isnan(array) & (np.isnan(self.low) | unknown)
        return (self.low <= array) & (array <= self.high) | nan


class Answer(Mapping[str, Array]):
    """Output to its elements in float64; `expected` has the tolerances too."""

    def __init__(self, expected: Mapping[str, Expected]) -> None:
        self.expected = expected

    def __getitem__(self, name: str) -> Array:
        return self.expected[name].value.astype(np.float64, copy=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self.expected)

    def __len__(self) -> int:
        return len(self.expected)


def check(program: Program, got: Arrays, answer: Answer) -> str | None:
    """Compare a kernel's outputs with the reference's.

    Args:
        program: what was computed.
        got: output to its elements, of the program's shape and element type.
        answer: what `reference` gave.

    Returns:
        None if all are correct; else which element is wrong most, and how many are.
    """
    for name in program.outputs:
        expected, kind = answer.expected[name], program.type[name]
        if name not in got:
            return f"output {name} is missing"
        array = got[name]
        if array.shape != kind.shape or array.dtype != numpy_type(kind.dtype):
            return f"{name} is {array.dtype}{list(array.shape)}, not {kind.dtype}{list(kind.shape)}"
        array = array.astype(expected.low.dtype, copy=False)
        # The quick way first; what fails it may still be NaN where it must be.
        if not all(_between(*parts) for parts in chunks(expected.low, array, expected.high)):
            wrong = _wrong(name, array, expected)
            if wrong:
                return wrong
    return None


def _between(low: Array, array: Array, high: Array) -> bool:
    return bool(np.all(low <= array) and np.all(array <= high))


def _wrong(name: str, array: Array, expected: Expected) -> str | None:
    correct = expected.accepts(array)
    if np.all(correct):
        return None
    with np.errstate(invalid="ignore"):
        off = np.abs(np.subtract(array, expected.value, dtype=np.float64)) - expected.tolerance
    # A NaN that should be none is the worst.
    off = np.where(correct, -np.inf, np.where(np.isnan(off), np.inf, off))
    worst = np.unravel_index(np.argmax(off), off.shape)
    place = ", ".join(map(str, worst))
    tolerance = float(np.broadcast_to(expected.tolerance, array.shape)[worst])
    within = f" within {tolerance:.2g}" if 0 < tolerance < np.inf else ""
    return (
        f"{name}[{place}] is {float(array[worst]):.9g}, not {float(expected.value[worst]):.9g}{within}; "
        f"{np.count_nonzero(~correct)} of {array.size} elements are wrong"
    )
