"""Numbers as people read them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Objective, Ratio
from planish.report.wording import (
    amount,
    duration,
    interval,
    label,
    multiple,
    number,
    saved,
    scale,
    shorten,
    title,
    when,
    words,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.5, "s", "1.500 s"),
        (0.0123456, "s", "12.35 ms"),
        (70.1e-6, "s", "70.10 µs"),
        (3e-9, "s", "3.000 ns"),
        (2e-12, "s", "0.002000 ns"),
        (0.0, "s", "0 s"),
        (201.94, "GFLOPS", "201.9 GFLOPS"),
        (1234567.0, "", "1,234,567"),
        (1234567.0, "B", "1,234,567 B"),
        (1234567.8, "", "1,234,568"),
        (0.0125, "", "0.01250"),
        (math.nan, "s", "not a number s"),
        (-math.inf, "", "-∞"),
    ],
)
def test_amounts(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (1.234e-5, "12.3 µs"),
        (0.2, "200 ms"),
        (119.4, "119 s"),
        (125, "2 min 5 s"),
        (7620, "2 h 7 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.789, "1.79"), (1.034, "1.034"), (12.34, "12.3"), (1234, "1,234"), (0.0123, "0.012"), (math.inf, "∞")],
)
def test_multiples(ratio: float, text: str) -> None:
    assert multiple(ratio) == f"{text}\N{MULTIPLICATION SIGN}"


@given(st.floats(1e-9, 1e6))
def test_scaled_seconds_are_between_one_and_a_thousand(seconds: float) -> None:
    factor, unit = scale(seconds, "s")
    assert 1 <= seconds * factor < 1000.001 or unit == "s"
    assert seconds * factor == pytest.approx(
        seconds / {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit], rel=1e-12
    )


@given(st.floats(1e-6, 1e12))
def test_a_number_reads_back_to_four_digits(value: float) -> None:
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=5.1e-4)


def test_names_times_and_long_texts() -> None:
    assert label(Objective("time_s", "s")) == "time"
    assert label(Objective("error")) == "error"
    assert when(0) == "1970-01-01 00:00:00 UTC"
    assert when(None) == "—"
    assert title("; a.ll: 2 functions\nsource_filename") == "a.ll: 2 functions"
    assert title("C[m] = A[m]") == "C[m] = A[m]"
    assert [saved(gain) for gain in (1.25, 1.0, 0.5)] == ["20.00 %", "0.00 %", "-100.00 %"]
    assert words(Objective("size", exact=True)) == {"better": "smaller", "worse": "larger"}
    assert words(Objective("size", direction="up", exact=True)) == {"better": "better", "worse": "worse"}
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd" * 500, 3) == "abc\n… (1,997 characters more)"


@pytest.mark.parametrize(
    ("gain", "text"),
    [
        (Ratio(1.36, 1.09, 1.62), "1.090x to 1.62x"),
        (Ratio(40.8, 1.1e-5, 153_376_719), "<0.001x to >1,000x"),
        (Ratio(0.5, 1e-4, 1.2), "<0.001x to 1.20x"),
        (Ratio(2000, 1500, 2500), "1,500x to 2,500x"),
    ],
)
def test_an_interval_around_1_is_written_only_as_far_as_it_means_something(gain: Ratio, text: str) -> None:
    assert interval(gain) == text.replace("x", "\N{MULTIPLICATION SIGN}")
