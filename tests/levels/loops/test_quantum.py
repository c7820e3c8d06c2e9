"""The quantum and the largest magnitude of arrays, against fractions of numbers one by one."""

from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from planish.levels.loops.reference.bounds import largest_of, quantum_of_all
from planish.levels.loops.reference.views import CHUNK


def scaled(n: int, exponent: int) -> float:
    return n * 2.0**exponent


NUMBERS = st.one_of(
    st.builds(scaled, st.integers(-(2**53), 2**53), st.integers(-40, 40)),
    st.sampled_from([0.0, -0.0, np.inf, -np.inf, 1e300, 2.0**33 + 0.5, -(2.0**62), 2.0**-30, 2.0**-31]),
)


def by_fractions(values: NDArray[Any]) -> float:
    """Halve 1 until every number is a multiple, as long as that is at least 2^-30."""
    numbers = [Fraction(float(v)) for v in values.ravel() if isfinite(v)]
    quanta = [2.0**-n for n in range(31)]
    return next((g for g in quanta if all((v / Fraction(g)).denominator == 1 for v in numbers)), 0.0)


@given(st.lists(NUMBERS, max_size=6), st.integers(0, CHUNK))
def test_the_quantum_is_that_of_fractions(numbers: list[float], position: int) -> None:
    values = np.full(CHUNK + 7, 3.0)
    values[position : position + len(numbers)] = numbers[: CHUNK + 7 - position]
    assert quantum_of_all(values.reshape(-1, 1)) == by_fractions(values[max(0, position - 1) : position + 7])
    finite = np.abs(values[np.isfinite(values)])
    assert largest_of(values) == finite.max()


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_narrow_types_are_not_rounded_on_the_way(dtype: str) -> None:
    values = np.array([[40000, -3], [5, 7]]).astype(dtype)
    assert (quantum_of_all(values), largest_of(values)) == (1.0, 40000.0)
    if dtype != "int32":
        assert quantum_of_all(values / np.asarray(8, dtype)) == 0.125


def test_nan_is_a_multiple_of_nothing_and_no_magnitude() -> None:
    values = np.array([1.0, np.nan, -4.0])
    assert (quantum_of_all(values), largest_of(values)) == (0.0, 4.0)
    assert (quantum_of_all(np.zeros((0, 3))), largest_of(np.zeros((0, 3)))) == (1.0, 0.0)
    assert largest_of(np.array([np.inf, np.nan])) == 0.0
