"""Pareto front, hypervolume, and non-dominated sorting, against their definitions."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, Failed, Measured, Objective, Outcome, Step, Trial
from planish.core.front import (
    HypervolumeTracker,
    best_non_regressing,
    crowding_distances,
    dominates,
    front_of,
    growth_of,
    hypervolume,
    nondominated_sort,
    pareto_front,
    reference_point,
)

TIME, SCORE = Objective("time_s", "s"), Objective("score", "", "up")
SIDE = 5


def _vectors(length: int, most: int) -> st.SearchStrategy[list[tuple[float, ...]]]:
    return st.lists(st.tuples(*[st.integers(0, SIDE).map(float)] * length), max_size=most)


TABLES = st.integers(1, 4).flatmap(lambda n: _vectors(n, 40))


def _dominated(b: tuple[float, ...], a: tuple[float, ...]) -> bool:
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def _trial(**values: float) -> Trial:
    return Trial(Candidate(), Measured(values))


@given(_vectors(3, 2).filter(lambda found: len(found) == 2))
def test_what_dominates_is_never_worse_and_once_better(pair: list[tuple[float, ...]]) -> None:
    assert dominates(pair[0], pair[1]) == _dominated(pair[1], pair[0])


@given(TABLES)
def test_the_front_is_what_nothing_dominates_once_each(costs: list[tuple[float, ...]]) -> None:
    expected = sorted({b for b in costs if not any(_dominated(b, a) for a in costs)})
    assert [costs[index] for index in front_of(costs)] == expected


@given(TABLES)
def test_of_equals_the_first_is_kept(costs: list[tuple[float, ...]]) -> None:
    assert all(index == costs.index(costs[index]) for index in front_of(costs))


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
    assert best_non_regressing(trials, [time, error], base.candidate) == good
    assert best_non_regressing([base, destroyed, failed], [time, error], base.candidate) == base
    assert best_non_regressing([destroyed, good], [time, error], base.candidate) == destroyed, (
        "none to compare with"
    )
    assert best_non_regressing(trials, [time], base.candidate) == destroyed
    assert best_non_regressing([failed], [time, error], base.candidate) is None


TIME_ERROR = (Objective("time_s", "s"), Objective("error", exact=True))
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
    growth = growth_of(trials, TIME_ERROR, START)
    assert growth.volumes == [(1, 1.0), (4, pytest.approx(1.5)), (6, pytest.approx(1.75))]
    assert growth.evaluations == 6
    assert len(growth.points) == 5
    assert growth.front == [(1.0, 0.2), (3.0, 0.1)]
    assert growth.baseline == (2.0, 0.2)


def test_while_the_baseline_is_unknown_there_is_no_hypervolume() -> None:
    trials = [trial(0, 1.0, 0.2), trial(1, 2.0, 0.2, candidate=START)]
    assert growth_of(trials[:1], TIME_ERROR, START).volume is None
    assert growth_of(trials, TIME_ERROR, None).volume is None
    assert growth_of(trials, TIME_ERROR, START).volumes == [(2, pytest.approx(1.5))]


def test_more_of_what_should_be_more_is_better() -> None:
    def rated(index: int, rate: float, candidate: Candidate | None = None) -> Trial:
        outcome = Measured({"rate": rate, "error": 0.5})
        return Trial(candidate or Candidate((Step(),)), outcome, index)

    trials = [rated(0, 10.0, START), rated(1, 15.0)]
    assert growth_of(trials, (Objective("rate", "1/s", "up"), TIME_ERROR[1]), START).volumes == [
        (1, 1.0),
        (2, pytest.approx(2.0)),
    ]


@given(st.integers(2, 3).flatmap(lambda n: _vectors(n, 30)), st.integers(0, 29))
def test_trial_by_trial_it_is_what_all_trials_give_at_once(
    values: list[tuple[float, ...]], baseline: int
) -> None:
    objectives = [Objective(name) for name in "abc"[: len(values[0]) if values else 2]]
    growth, seen, reached = HypervolumeTracker(objectives, START), list[Trial](), 0.0
    for index, vector in enumerate(values):
        outcome = Measured({o.name: value for o, value in zip(objectives, vector, strict=True)})
        candidate = START if index == baseline else Candidate((Step(),) * (index + 1))
        seen.append(Trial(candidate, outcome, index))
        growth.add(seen[-1])
        assert growth.front == [t.costs(objectives) for t in pareto_front(seen, objectives)]
        if index < baseline:
            assert growth.volume is None
            continue
        worst = reference_point(values[baseline])
        unit = math.prod(far - near for far, near in zip(worst, values[baseline], strict=True))
        volume = hypervolume(values[: index + 1], worst) / unit
        assert growth.volume == pytest.approx(volume)
        assert (growth.volumes[-1][0] == index + 1) == (index == baseline or volume > reached + 1e-9)
        reached = volume


Vectors = list[tuple[float, ...]]
COSTS = st.integers(1, 3).flatmap(
    lambda n: st.lists(st.tuples(*[st.integers(0, 5).map(float)] * n), max_size=24)
)


def _peeled(costs: Vectors) -> list[set[int]]:
    """Take one front after another off, by the definition of dominance."""
    left, fronts = set(range(len(costs))), list[set[int]]()
    while left:
        fronts.append({i for i in left if not any(dominates(costs[j], costs[i]) for j in left)})
        left -= fronts[-1]
    return fronts


def _gaps(front: Vectors, index: int) -> float:
    """Compute a crowding distance where no two vectors share a cost."""
    total = 0.0
    for column in zip(*front, strict=True):
        lower = [cost for cost in column if cost < column[index]]
        upper = [cost for cost in column if cost > column[index]]
        total += (min(upper) - max(lower)) / (max(column) - min(column)) if lower and upper else math.inf
    return total / len(front[0])


@given(COSTS)
def test_fronts_are_those_of_the_definition(costs: Vectors) -> None:
    fronts = list(nondominated_sort(costs))
    assert [set(front) for front in fronts] == _peeled(costs)
    assert sum(map(len, fronts)) == len(costs), "none is in two fronts, or twice in one"


@given(COSTS)
def test_equal_vectors_are_neighbors_in_their_order(costs: Vectors) -> None:
    for front in nondominated_sort(costs):
        alike: dict[tuple[float, ...], list[int]] = {}
        for index in front:
            alike.setdefault(costs[index], []).append(index)
        assert [i for group in alike.values() for i in group] == front
        assert all(group == sorted(group) for group in alike.values())


def test_a_front_begins_with_what_lost_its_last_dominator_first() -> None:
    costs = [(0.0, 2.0), (2.0, 0.0), (3.0, 1.0), (1.0, 3.0), (2.0, 3.0)]
    assert list(nondominated_sort(costs)) == [[0, 1], [3, 2], [4]]


@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.permutations(range(8)), min_size=n, max_size=n)))
def test_crowding_is_the_mean_gap_between_neighbors(columns: list[list[int]]) -> None:
    front = [tuple(map(float, row)) for row in zip(*columns, strict=True)]
    expected = [_gaps(front, index) for index in range(len(front))]
    assert crowding_distances(front) == pytest.approx(expected)


def test_a_cost_that_all_share_adds_nothing_but_its_ends() -> None:
    assert crowding_distances([(0.0, 7.0), (1.0, 7.0), (4.0, 7.0)]) == [math.inf, 0.5, math.inf]
    assert crowding_distances([(1.0, 1.0)]) == [math.inf]
