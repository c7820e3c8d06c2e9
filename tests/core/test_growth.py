"""The front as it grows, against what is worked out from all trials at once."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, Failed, Measured, Objective, Step, Trial, hypervolume, pareto_front
from planish.core.front import growth_of, reference_point

TIME, RATE, ERROR = Objective("time_s", "s"), Objective("rate", "1/s", "up"), Objective("error", exact=True)
BOTH = (TIME, ERROR)
START = Candidate()


def trial(index: int, *values: float, candidate: Candidate | None = None) -> Trial:
    """Make a trial; one without values failed."""
    outcome = Measured({"time_s": values[0], "error": values[1]}) if values else Failed("run", "crash")
    return Trial(candidate or Candidate((Step(),) * (index + 1)), outcome, index)


def test_the_reference_is_twice_as_bad_as_the_baseline() -> None:
    assert reference_point([3.0, -8.0, 0.0]) == (6.0, -4.0, 1.0)


def test_the_baseline_alone_is_one_and_what_is_better_adds_to_it() -> None:
    trials = [
        trial(0, 2.0, 0.2, candidate=START),
        trial(1, 5.0, 0.1),  # beyond the reference: it takes more than twice as long
        trial(2),
        trial(3, 1.0, 0.2),  # half the time
        trial(4, 1.5, 0.3),  # dominated
        trial(5, 3.0, 0.1),  # half the error, at half as much time again
    ]
    growth = growth_of(trials, BOTH, START)
    assert growth.volumes == [(1, 1.0), (4, pytest.approx(1.5)), (6, pytest.approx(1.75))]
    assert growth.evaluations == 6
    assert len(growth.points) == 5
    assert growth.front == [(1.0, 0.2), (3.0, 0.1)]
    assert growth.baseline == (2.0, 0.2)


def test_while_the_baseline_is_unknown_there_is_no_hypervolume() -> None:
    trials = [trial(0, 1.0, 0.2), trial(1, 2.0, 0.2, candidate=START)]
    assert growth_of(trials[:1], BOTH, START).volume is None
    assert growth_of(trials, BOTH, None).volume is None
    assert growth_of(trials, BOTH, START).volumes == [(2, pytest.approx(1.5))]


def test_more_of_what_should_be_more_is_better() -> None:
    def rated(index: int, rate: float, candidate: Candidate | None = None) -> Trial:
        outcome = Measured({"rate": rate, "error": 0.5})
        return Trial(candidate or Candidate((Step(),)), outcome, index)

    trials = [rated(0, 10.0, START), rated(1, 15.0)]
    assert growth_of(trials, (RATE, ERROR), START).volumes == [(1, 1.0), (2, pytest.approx(2.0))]


points = st.tuples(st.floats(0.125, 8), st.floats(0, 1)).map(lambda p: (round(p[0], 3), round(p[1], 3)))


@given(st.lists(points, min_size=1, max_size=30))
def test_trial_by_trial_it_is_what_all_trials_give_at_once(values: Sequence[tuple[float, float]]) -> None:
    trials = [trial(i, *v, candidate=None if i else START) for i, v in enumerate(values)]
    growth = growth_of(trials, BOTH, START)
    assert growth.front == [t.costs(BOTH) for t in pareto_front(trials, BOTH)]
    worst = reference_point(values[0])
    unit = math.prod(far - near for far, near in zip(worst, values[0], strict=True))
    assert growth.volume == pytest.approx(hypervolume(values, worst) / unit)
    assert [v for _, v in growth.volumes] == sorted({v for _, v in growth.volumes})
    cut = growth_of(trials[: len(trials) // 2 + 1], BOTH, START)
    assert growth.volumes[: len(cut.volumes)] == cut.volumes
