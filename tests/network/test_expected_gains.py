"""Division of time between choices and schedules."""

from __future__ import annotations

from planish.network.expected_gains import ExpectedGains

HOUR = 3600.0


def gains(seconds: float | None = HOUR, took: float = 60.0, rest: float = 1.0) -> ExpectedGains:
    """Return the gains after one measurement of a network of ten kernels."""
    made = ExpectedGains(seconds)
    made.note_measurement(took, rest, 10)
    return made


def test_everything_is_measured_without_a_limit() -> None:
    assert gains(None).is_worth("strips", 0.0)


def test_nothing_is_measured_without_time() -> None:
    assert not ExpectedGains(-1).is_worth("strips")
    assert not gains(took=2 * HOUR).is_worth("strips", 100.0)


def test_a_choice_of_few_seconds_gives_way_to_the_search() -> None:
    assert gains().is_worth("strips", 1.0)
    assert not gains().is_worth("strips", 0.001)
    assert gains(rest=0.0).is_worth("strips", 0.001)


def test_the_search_loses_more_with_its_last_minutes() -> None:
    assert gains().is_worth("strips", 0.2)
    assert not gains(seconds=90.0).is_worth("strips", 0.2)


def test_alternatives_are_expected_to_gain_what_earlier_ones_did() -> None:
    poor, good = gains(), gains()
    for _ in range(20):
        poor.note_gain("strips", 1.0, 1.0)
        good.note_gain("strips", 1.0, 0.5)
    assert not poor.is_worth("strips", 0.2)
    assert poor.is_worth("algorithms", 0.2)
    assert good.is_worth("strips", 0.01)
