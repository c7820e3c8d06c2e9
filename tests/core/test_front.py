"""The front and its hypervolume against their definitions."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import (
    Candidate,
    Failed,
    Measured,
    Objective,
    Outcome,
    Step,
    Trial,
    best_harmless,
    dominates,
    front_of,
    hypervolume,
    pareto_front,
)

TIME, SCORE = Objective("time_s", "s"), Objective("score", "", "up")
SIDE = 5


def _vectors(length: int, most: int) -> st.SearchStrategy[list[tuple[float, ...]]]:
    return st.lists(st.tuples(*[st.integers(0, SIDE).map(float)] * length), max_size=most)


COSTS = st.integers(1, 4).flatmap(lambda n: _vectors(n, 40))


def _dominated(b: tuple[float, ...], a: tuple[float, ...]) -> bool:
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def _trial(**values: float) -> Trial:
    return Trial(Candidate(), Measured(values))


@given(_vectors(3, 2).filter(lambda found: len(found) == 2))
def test_what_dominates_is_never_worse_and_once_better(pair: list[tuple[float, ...]]) -> None:
    assert dominates(pair[0], pair[1]) == _dominated(pair[1], pair[0])


@given(COSTS)
def test_the_front_is_what_nothing_dominates_once_each(costs: list[tuple[float, ...]]) -> None:
    expected = sorted({b for b in costs if not any(_dominated(b, a) for a in costs)})
    assert [costs[place] for place in front_of(costs)] == expected


@given(COSTS)
def test_of_equals_the_first_is_kept(costs: list[tuple[float, ...]]) -> None:
    assert all(place == costs.index(costs[place]) for place in front_of(costs))


def test_the_front_of_trials_is_by_cost_and_of_what_has_all_values() -> None:
    trials = [
        _trial(time_s=3.0, score=3.0),
        _trial(time_s=3.0, score=3.0),
        _trial(time_s=0.1),
        _trial(time_s=1.0, score=1.0),
        Trial(Candidate(), Failed("run", "crash")),
        _trial(time_s=2.0, score=0.5),
        _trial(time_s=0.1, score=float("nan")),
    ]
    assert [id(t) for t in pareto_front(trials, [TIME, SCORE])] == [id(trials[3]), id(trials[0])]


@pytest.mark.parametrize(
    ("outcome", "costs"),
    [
        (Measured({"time_s": 2.0, "score": 3.0}), (2.0, -3.0)),
        (Measured({"time_s": 2.0}), None),
        (Measured({"time_s": float("inf"), "score": 3.0}), None),
        (Failed("run", "crash"), None),
    ],
)
def test_a_trial_has_all_costs_or_none(outcome: Outcome, costs: tuple[float, ...] | None) -> None:
    assert Trial(Candidate(), outcome).costs([TIME, SCORE]) == costs


@given(st.integers(1, 4).flatmap(lambda n: _vectors(n, 12).map(lambda costs: (n, costs))))
def test_the_hypervolume_is_the_number_of_unit_cells_dominated(
    case: tuple[int, list[tuple[float, ...]]],
) -> None:
    length, costs = case
    cells = product(range(SIDE), repeat=length)
    dominated = sum(any(all(c <= x for c, x in zip(v, cell, strict=True)) for v in costs) for cell in cells)
    assert hypervolume(costs, (float(SIDE),) * length) == dominated


def test_the_hypervolume_of_a_staircase() -> None:
    assert hypervolume([(1, 3), (2, 1), (2, 2), (4, 0), (0, 9)], (4, 4)) == 3 * 1 + 2 * 2
    assert hypervolume([], (1.0, 1.0)) == 0


def test_a_reference_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="argument 2"):
        hypervolume([(1.0, 2.0)], (3.0,))


def test_of_several_objectives_the_best_harms_nothing_and_may_be_the_baseline() -> None:
    def trial(index: int, time: float, error: float) -> Trial:
        steps = (Step(),) * index
        return Trial(Candidate(steps), Measured({"time_s": time, "error": error}), index)

    time, error = Objective("time_s", "s"), Objective("error")
    base, destroyed, good = trial(0, 1.0, 0.1), trial(1, 0.1, 0.9), trial(2, 0.8, 0.1)
    failed = Trial(Candidate((Step(),) * 3), Failed("build", "refused"), 3)
    trials = [base, destroyed, good, failed]
    assert best_harmless(trials, [time, error], base.candidate) == good
    assert best_harmless([base, destroyed, failed], [time, error], base.candidate) == base
    assert best_harmless([destroyed, good], [time, error], base.candidate) == destroyed, (
        "none to compare with"
    )
    assert best_harmless(trials, [time], base.candidate) == destroyed
    assert best_harmless([failed], [time, error], base.candidate) is None
