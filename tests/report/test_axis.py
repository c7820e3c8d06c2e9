"""Axes fit what is put on them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.report.figures import PlotAxis, axis_of, span_axis

POSITIVE = st.lists(st.floats(1e-9, 1e9), min_size=1)


def test_wide_values_are_logarithmic_and_marked_by_one_two_five() -> None:
    assert axis_of([70e-6, 900e-6], "s") == PlotAxis(1e6, "µs", True, (50, 100, 200, 500, 1000))


def test_many_decades_are_marked_by_tens() -> None:
    assert axis_of([1, 5000], "").ticks == (1, 10, 100, 1000, 10000)


@pytest.mark.parametrize("values", [[70e-6, 90e-6], [-1e-5, 9e-5], [0.0, 5e-5]])
def test_narrow_or_negative_values_are_linear(values: list[float]) -> None:
    assert axis_of(values, "s") == PlotAxis(1e6, "µs", log=False)


def test_nothing_has_a_plain_axis() -> None:
    assert axis_of([], "s") == PlotAxis(1, "s", log=False)


@given(POSITIVE)
def test_marks_enclose_the_values(values: list[float]) -> None:
    axis = axis_of(values, "s")
    if axis.log:
        scaled = [value * axis.factor for value in values]
        assert axis.ticks[0] <= min(scaled)
        assert max(scaled) <= axis.ticks[-1]
        assert list(axis.ticks) == sorted(set(axis.ticks))
        assert axis.ticks[1] > min(scaled)
        assert axis.ticks[-2] < max(scaled)


@pytest.mark.parametrize(("end", "unit"), [(0, "s"), (0.02, "ms"), (50, "s"), (600, "min"), (9000, "h")])
def test_spans(end: float, unit: str) -> None:
    assert span_axis(end).unit == unit
    assert not span_axis(end).log
