"""Boxes, and the window that they are seen through."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.report.chart_data import SAMPLE_POINTS, Strip, strip_of

SAMPLES = st.lists(st.floats(0, 1e3), min_size=1, max_size=3 * SAMPLE_POINTS)


def _strip(*samples: list[float]) -> Strip:
    found = strip_of({f"#{i}": s for i, s in enumerate(samples, 1)})
    assert found is not None
    return found


@given(st.lists(SAMPLES, min_size=1, max_size=3))
def test_boxes_summarise_all_and_points_fill_the_window(samples: list[list[float]]) -> None:
    strip = _strip(*samples)
    low, high = strip.window
    for row, known in zip(strip.rows, samples, strict=True):
        lower, middle, upper = row.box.quartiles
        inside = [s for s in known if low <= s <= high]
        assert middle == pytest.approx(statistics.median(known))
        assert min(known) <= lower <= middle <= upper <= max(known)
        assert set(row.box.whiskers) <= set(inside)
        assert (row.count, row.beyond) == (len(known), len(known) - len(inside))
        assert len(row.points) == len(row.jitter) == min(SAMPLE_POINTS, len(inside))
        assert set(row.points) <= set(inside)
        assert row.points[0] == min(inside)
        assert row.points[-1] == max(inside) or len(row.points) == 1
        assert all(0 <= place < 1 for place in row.jitter)


def test_hiccups_are_counted_and_do_not_stretch_the_window() -> None:
    strip = _strip([1.0, 2.0, 3.0, 4.0, 100.0], [6.0])
    assert strip.rows[0].box.quartiles == (2, 3, 4)
    assert strip.rows[0].box.whiskers == (1, 4)
    assert strip.window == (0.5, 6.5)
    assert (strip.rows[0].beyond, strip.rows[1].beyond) == (1, 0)
    assert strip.rows[0].points == (1, 2, 3, 4)


def test_a_window_has_a_width_and_stays_above_zero() -> None:
    assert _strip([5.0]).window == (4.5, 5.5)
    assert _strip([0.0]).window == (-1, 1)
    assert _strip([1e-9, 1e-9, 1.0, 1.0]).window[0] == 0.5e-9


def test_without_finite_samples_there_is_nothing() -> None:
    assert strip_of({}) is None
    assert strip_of({"#1": (math.nan, math.inf)}) is None
