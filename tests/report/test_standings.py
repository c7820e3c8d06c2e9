"""The comparison at the end, in numbers."""

import pytest

from planish.core import Candidate, Objective
from planish.report.standings import standings, work_of
from planish.store import Finalist
from report.planks import TIME, failed, finalist, measured

RATE = Objective("rate", "1/s", "up")


def test_the_interval_of_a_time_is_turned_into_one_of_the_gain() -> None:
    winner, base = standings([finalist(3, 0.5, "faster", spread=0.2)], TIME)
    assert (winner.name, base.name, base.candidate) == ("#1", "baseline", None)
    assert (winner.gain, winner.interval) == (2, (pytest.approx(1 / 0.6), pytest.approx(2.5)))
    assert (winner.median, base.median) == (0.5e-3, 1e-3)


def test_the_interval_of_a_rate_is_kept() -> None:
    (found,) = standings([Finalist(Candidate(), 2.0, {"ratio": [2.0, 1.5, 2.5]})], RATE)
    assert found.interval == (1.5, 2.5)


def test_a_ratio_of_zero_is_an_infinite_gain() -> None:
    (found,) = standings([Finalist(Candidate(), 9.0, {"ratio": [0.1, 0.0, 0.2]})], TIME)
    assert found.interval == (5, float("inf"))


def test_a_finalist_without_figures_is_still_listed() -> None:
    (found,) = standings([Finalist(Candidate(), 1.5)], TIME)
    assert (found.gain, found.median, found.interval, found.verdict, found.samples) == (
        1.5,
        None,
        None,
        "",
        (),
    )
    assert standings([], TIME) == []


def test_work_is_told_by_trials_with_rate_and_time() -> None:
    trials = [failed(0), measured(1, 2.0), measured(2, 0.5, gflops=8.0)]
    assert work_of(trials, TIME) == 4
    assert work_of(trials[:2], TIME) is None
    assert work_of(trials, RATE) is None
