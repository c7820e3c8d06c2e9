"""The best so far, over trials and over time."""

import math
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Measured, Objective, Trial, best_trial, rng
from planish.report.chart_data import CURVE_POINTS, by_number, by_time, curve, limit_of, value_for
from report.planks import STARTED, TIME, failed, measured, trial

RATE = Objective("rate", "1/s", "up")
VALUES = st.lists(st.one_of(st.none(), st.floats(1e-6, 1e3)), min_size=1, max_size=60)


def _trials(values: list[float | None]) -> list[Trial]:
    return [failed(i) if v is None else measured(i, v, rate=v) for i, v in enumerate(values)]


@given(VALUES, st.sampled_from([TIME, RATE]))
def test_the_best_so_far_is_the_running_best(values: list[float | None], objective: Objective) -> None:
    trials = _trials(values)
    found = curve(trials, by_number(trials), objective)
    better = min if objective is TIME else max
    known = [(i + 1.0, v) for i, v in enumerate(values) if v is not None]
    running = list(accumulate((v for _, v in known), better))
    for (x, _), best in zip(known, running, strict=True):
        assert [y for at, y in found.best if at <= x][-1] == best or x == found.end
    assert len(found.best) == (len(dict.fromkeys(running)) + 1 if known else 0)
    assert found.best[-1:] == (((found.end, running[-1]),) if known else ())
    assert found.measured == tuple(known)
    assert found.failed == tuple(i + 1.0 for i, v in enumerate(values) if v is None)


def test_thousands_are_thinned_evenly_and_the_best_is_kept() -> None:
    values = [float(value) for value in rng(1).uniform(1e-6, 1e3, 5001)]
    trials = _trials([*values, *[None] * 5001])
    found = curve(trials, by_number(trials), TIME)
    assert 1000 < len(found.measured) <= CURVE_POINTS
    assert 1000 < len(found.failed) <= CURVE_POINTS
    assert set(found.measured) <= {(i + 1.0, v) for i, v in enumerate(values)}
    steps = {b - a for (a, _), (b, _) in pairwise(found.measured)}
    assert steps == {3.0}
    assert found.best[-1] == (10_002, min(values))


@pytest.mark.parametrize(
    ("values", "baseline", "objective", "limit"),
    [
        ([8.0, 90.0, 2.0], None, TIME, 16.0),
        ([8.0, 90.0, 2.0], 10.0, TIME, 20.0),
        ([8.0, 0.1, 90.0], 6.0, RATE, 3.0),
        ([], None, TIME, math.inf),
        ([-1.0], None, TIME, math.inf),
        ([0.0], None, RATE, -math.inf),
    ],
)
def test_what_is_twice_as_bad_as_the_first_best_is_off_the_scale(
    values: list[float], baseline: float | None, objective: Objective, limit: float
) -> None:
    trials = [measured(i, v, rate=v) for i, v in enumerate(values)]
    assert limit_of(curve(trials, by_number(trials), objective), baseline, objective) == limit


def test_values_that_are_not_finite_are_no_values() -> None:
    trials = [measured(0, math.nan), measured(1, math.inf), measured(2, 5.0), measured(3, 5.0)]
    assert curve(trials, by_number(trials), TIME).measured == ((3, 5), (4, 5))
    assert best_trial(trials, TIME) is trials[2]
    assert best_trial(trials[:2], TIME) is None
    assert best_trial([measured(0, 1.0, rate=math.inf), known := measured(1, 1.0, rate=1.0)], RATE) is known


def test_no_trials_are_no_curve() -> None:
    found = curve([], [], TIME)
    assert (found.best, found.measured, found.failed, found.end) == ((), (), (), 0)


def test_trials_that_end_out_of_order_stand_where_they_ended() -> None:
    trials = [replace(measured(0, 3.0), time=STARTED + 9), replace(measured(1, 2.0), time=STARTED + 4)]
    seconds = by_time(trials, STARTED).seconds
    assert seconds == (9, 4)
    assert curve(trials, seconds, TIME).best == ((4, 2.0), (9, 2.0))


def test_pauses_are_left_out_and_counted() -> None:
    day = 86_400
    trials = [measured(0, 1.0), replace(measured(1, 1.0), time=STARTED + 1 + day), measured(2, 1.0)]
    trials[2] = replace(trials[2], time=STARTED + day + 6)
    found = by_time(trials, STARTED)
    assert found.seconds == pytest.approx((1, 1.003, 6.003))
    assert found.paused == pytest.approx(day - 0.003)


def test_a_long_trial_is_no_pause() -> None:
    long = replace(measured(0, 1.0), time=STARTED + 500, seconds={"run": 480.0})
    assert by_time([long], STARTED).seconds == (500,)


def test_what_the_store_knew_costs_no_time() -> None:
    old = replace(measured(1, 2.0), cached=True, time=5.0)
    assert by_time([measured(0, 1.0), old, measured(2, 1.0)], STARTED).seconds == (1, 1, 3)


def test_the_value_of_a_candidate() -> None:
    trials = [failed(0), measured(1, 2.0), trial(1, Measured({"time_s": 3.0}))]
    assert value_for(trials, trials[1].candidate, TIME) == 2.0
    assert value_for(trials, trials[0].candidate, TIME) is None
    assert value_for(trials, None, TIME) is None
