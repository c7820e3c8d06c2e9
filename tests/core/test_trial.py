"""Outcomes of evaluators, and ratios to the baseline."""

import numpy as np
import pytest

from planish.core import EQUAL, Failed, Measured, Objective, Outcome, Ratio
from planish.core.trial import checked, checked_for

TIME, SIZE, RATE = Objective("time_s", "s"), Objective("size", "bytes"), Objective("rate", "1/s", "up")
ALL = (TIME, SIZE, RATE)


def test_numbers_of_other_kinds_become_plain_ones() -> None:
    returned = Measured({"size": np.float32(0.5), "count": 3, "whole": np.int64(4)}, {"size": [1, 2.0]})  # pyright: ignore[reportArgumentType]
    found = checked(returned)
    assert isinstance(found, Measured)
    assert found == Measured({"size": 0.5, "count": 3.0, "whole": 4.0}, {"size": (1.0, 2.0)})
    assert {type(value) for value in found.values.values()} == {float}


def test_values_of_parts_are_checked_as_those_of_the_whole() -> None:
    found = checked(Measured({"size": 3.0}, parts={"main": np.int64(2)}))  # pyright: ignore[reportArgumentType]
    assert found == Measured({"size": 3.0}, parts={"main": 2.0})
    failed = checked(Measured({"size": 3.0}, parts={"main": float("nan")}))
    assert failed == Failed("run", "not finite", "main is nan")


NO_OUTCOMES = (
    *(True, None, "1", 1.0),
    *(Measured(1.0), Measured({1: 1.0}), Measured({}, 1), Measured({}, {}, 1), Measured({}, {}, {1: 1.0})),  # pyright: ignore[reportArgumentType]
)


@pytest.mark.parametrize("returned", NO_OUTCOMES)
def test_what_is_no_outcome_is_a_failure(returned: object) -> None:
    found = checked(returned)
    assert isinstance(found, Failed)
    assert found.reason == "no outcome"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"time_s": 1.0, "size": 0.0, "rate": 0.0, "beside": -1.0}, None),
        ({"time_s": 0.0, "size": 1.0, "rate": 1.0}, Failed("run", "no time", "time_s is 0 s")),
        ({"time_s": -1.0, "size": 1.0, "rate": 1.0}, Failed("run", "negative", "time_s is -1.0")),
        ({"time_s": 1.0, "size": -8.0, "rate": 1.0}, Failed("run", "negative", "size is -8.0")),
        ({"time_s": 1.0}, Failed("run", "not measured", "size is missing; measured: time_s")),
        ({}, Failed("run", "not measured", "time_s is missing; measured: nothing")),
    ],
)
def test_all_that_was_asked_for_must_be_there_and_possible(
    values: dict[str, float], expected: Outcome | None
) -> None:
    outcome = Measured(values)
    assert checked_for(outcome, ALL) == (expected or outcome)


def test_the_interval_of_a_time_is_turned_into_one_of_the_gain() -> None:
    gain = Ratio(0.5, 0.4, 0.6).gain(TIME)
    assert (gain.value, gain.low, gain.high) == (2, pytest.approx(1 / 0.6), pytest.approx(2.5))


def test_the_interval_of_a_rate_is_kept() -> None:
    assert Ratio(2.0, 1.5, 2.5).gain(RATE) == Ratio(2.0, 1.5, 2.5)


def test_a_ratio_of_zero_is_an_infinite_gain() -> None:
    assert Ratio(0.1, 0.0, 0.2).gain(TIME) == Ratio(10, 5, float("inf"))


def test_equals_gain_nothing() -> None:
    assert EQUAL.gain(TIME) == EQUAL
