"""Non-dominated sorting and crowding distances against their definitions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import crowding_distances, dominates, nondominated_sort

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
def test_equal_vectors_are_neighbours_in_their_order(costs: Vectors) -> None:
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
def test_crowding_is_the_mean_gap_between_neighbours(columns: list[list[int]]) -> None:
    front = [tuple(map(float, row)) for row in zip(*columns, strict=True)]
    expected = [_gaps(front, index) for index in range(len(front))]
    assert crowding_distances(front) == pytest.approx(expected)


def test_a_cost_that_all_share_adds_nothing_but_its_ends() -> None:
    assert crowding_distances([(0.0, 7.0), (1.0, 7.0), (4.0, 7.0)]) == [math.inf, 0.5, math.inf]
    assert crowding_distances([(1.0, 1.0)]) == [math.inf]
