"""Figures: axes, curves, fronts, samples, and the numbers that are read from them."""

from __future__ import annotations

import math
import pprint
import statistics
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_text import Golden
from planish.core import Candidate, Measured, Objective, Trial, best_trial, rng
from planish.plot.axes import PlotAxis, axis_of, span_axis
from planish.plot.comparisons import SAMPLE_POINTS, Strip, strip_of
from planish.plot.fronts import TRADEOFF_POINTS, tradeoffs
from planish.plot.search import CURVE_POINTS, by_number, curve, limit_of
from planish.tuning.comparison import Compared, Finalist
from planish.tuning.stored_run import by_time, failure_groups, stage_times, value_for
from report.planks import ERROR, STARTED, TIME, compared, failed, finalist, measured, trial

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


SCORE = Objective("score", "", "up")


def test_a_front_over_two_directions() -> None:
    trials = [
        measured(0, 1.0, score=1.0),
        measured(1, 2.0, score=3.0),
        measured(2, 3.0, score=2.0),
        failed(3),
        measured(4, 0.1),
    ]
    start = trials[2].candidate
    (found,) = tradeoffs(trials, [TIME, SCORE], [trials[1].candidate, trials[3].candidate], start)
    assert (found.x, found.y) == (TIME, SCORE)
    assert found.points == ((1, 1), (2, 3), (3, 2))
    assert found.front == ((1, 1), (2, 3))
    assert found.finalists == ((2, 3),)
    assert found.baseline == (3, 2)


def test_each_further_objective_is_set_against_the_leading_one() -> None:
    trials = [measured(i, i + 1.0, error=9.0 - i, score=2.0) for i in range(3)]
    found = tradeoffs(trials, [TIME, ERROR, SCORE], [], Candidate())
    assert [t.y for t in found] == [ERROR, SCORE]
    assert found[1].front == ((1, 2), (2, 2), (3, 2))
    assert found[0].baseline is None


@pytest.mark.parametrize("objectives", [[TIME], [TIME, ERROR]])
def test_nothing_to_trade(objectives: list[Objective]) -> None:
    assert tradeoffs([failed(0), measured(1, 1.0)], objectives, [], None) == []


def test_of_thousands_the_front_is_kept_whole() -> None:
    count = 2 * TRADEOFF_POINTS + 1
    trials = [
        replace(measured(i, i + 1.0, error=float(count - i)), candidate=Candidate()) for i in range(count)
    ]
    (found,) = tradeoffs(trials, [TIME, ERROR], [], None)
    assert 0 < len(found.points) <= TRADEOFF_POINTS
    assert len(found.front) == count


SAMPLES = st.lists(st.floats(0, 1e3), min_size=1, max_size=3 * SAMPLE_POINTS)


def _strip(*samples: list[float]) -> Strip:
    found = strip_of({f"#{i}": s for i, s in enumerate(samples, 1)})
    assert found is not None
    return found


@given(st.lists(SAMPLES, min_size=1, max_size=3))
def test_boxes_summarize_all_and_points_fill_the_window(samples: list[list[float]]) -> None:
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
        assert all(0 <= offset < 1 for offset in row.jitter)


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


if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def _small_run() -> list[Trial]:
    """A run whose sixth trial came from the store, and that slept before the eighth."""
    trials = [
        trial(0, Measured({"time_s": 1e-3, "error": 0.1})),
        failed(1, "refused", "no such axis"),
        measured(2, 0.5e-3, error=0.2),
        failed(3, "timeout", "10 s"),
        measured(4, 0.7e-3, error=0.1),
        replace(measured(5, 0.4e-3, error=0.3), cached=True, time=STARTED - 999),
        failed(6, "refused", "another axis"),
        measured(7, 0.3e-3, error=0.5),
    ]
    trials[0] = replace(trials[0], candidate=Candidate())
    trials[7] = replace(trials[7], time=STARTED + 5000)
    return trials


def _plain(things: Sequence[DataclassInstance | None]) -> list[Any]:
    return [thing and asdict(thing) for thing in things]


def test_numbers(golden: Golden) -> None:
    trials = _small_run()
    finalists = [finalist(7, 0.31, "better"), finalist(5, 0.98, "same")]
    clock = by_time(trials, STARTED)
    found = compared(finalists)
    samples = {each.name: each.lead.samples for each in (*found.finalists, found.baseline)}
    numbers = {
        "by number": _plain([curve(trials, by_number(trials), TIME)]),
        "by time": _plain([clock, curve(trials, clock.seconds, TIME)]),
        "failures": _plain(failure_groups(trials)),
        "stages": _plain(stage_times(trials, {"search": 0.5, "compare": 1.5, "polish": 0.25, "run": 99.0})),
        "standings": [*map(_standing, found.finalists), _standing(found.baseline)],
        "samples": _plain([strip_of(samples)]),
        "tradeoffs": _plain(tradeoffs(trials, [TIME, ERROR], [f.candidate for f in finalists], Candidate())),
    }
    golden.check("report/numbers.txt", pprint.pformat(_rounded(numbers), width=110, sort_dicts=False))


def _standing(side: Compared) -> dict[str, Any]:
    """Return what the data say of one side of the comparison."""
    lead, finalist = side.lead, side if isinstance(side, Finalist) else None
    return {
        "name": side.name,
        "candidate": asdict(finalist.candidate) if finalist else None,
        "median": lead.median,
        "gain": lead.gain.value,
        "interval": (lead.gain.low, lead.gain.high) if finalist else None,
        "verdict": lead.verdict if finalist else "",
        "samples": lead.samples,
    }


def _rounded(value: Any) -> Any:
    """Round to what every processor agrees on."""
    match value:
        case float():
            return float(f"{value:.9g}")
        case dict():
            return {str(name): _rounded(part) for name, part in value.items()}
        case list() | tuple():
            return [_rounded(part) for part in value]
        case _:
            return value
