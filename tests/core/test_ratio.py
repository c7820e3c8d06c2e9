"""Ratios to the baseline, and the gains that they are."""

import pytest

from planish.core import EQUAL, Objective, Ratio

TIME, RATE = Objective("time_s", "s"), Objective("rate", "1/s", "up")


def test_the_interval_of_a_time_is_turned_into_one_of_the_gain() -> None:
    gain = Ratio(0.5, 0.4, 0.6).gain(TIME)
    assert (gain.value, gain.low, gain.high) == (2, pytest.approx(1 / 0.6), pytest.approx(2.5))


def test_the_interval_of_a_rate_is_kept() -> None:
    assert Ratio(2.0, 1.5, 2.5).gain(RATE) == Ratio(2.0, 1.5, 2.5)


def test_a_ratio_of_zero_is_an_infinite_gain() -> None:
    assert Ratio(0.1, 0.0, 0.2).gain(TIME) == Ratio(10, 5, float("inf"))


def test_equals_gain_nothing() -> None:
    assert EQUAL.gain(TIME) == EQUAL
