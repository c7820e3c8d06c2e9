"""Greedy search against a reference on random graphs, and on graphs made by hand."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planish.core import Measured, Objective
from planish.search import Greedy1, Greedy2
from planish.testing.driving import drive
from search.trail import TIME, Trail

GREEDY = {1: Greedy1, 2: Greedy2}


@st.composite
def trails(draw: st.DrawFn) -> Trail:
    """Draw a graph of up to 12 nodes with different costs, of which some fail."""
    size = draw(st.integers(1, 12))
    nodes = st.integers(0, size - 1)
    edges = [draw(st.lists(nodes, max_size=4, unique=True)) for _ in range(size)]
    order = draw(st.permutations(range(size)))
    failed = draw(st.sets(nodes, max_size=3))
    return Trail(edges, {node: 1.0 + rank for node, rank in enumerate(order) if node not in failed})


def _within(edges: Sequence[Sequence[int]], node: int, steps: int) -> set[int]:
    near = {node}
    for _ in range(steps):
        near |= {after for before in near for after in edges[before]}
    return near


def _distance(edges: Sequence[Sequence[int]], node: int, goal: int) -> int:
    return next(steps for steps in range(100) if goal in _within(edges, node, steps))


def _reference(edges: Sequence[Sequence[int]], costs: Mapping[int, float], lookahead: int) -> set[int]:
    """Walk with all costs known; gives every node that came into sight."""
    node, sight = 0, {0}
    while True:
        near = _within(edges, node, lookahead)
        sight |= near
        goal = min(near & costs.keys(), key=lambda n: costs[n], default=node)
        if goal == node:
            return sight
        ways = [after for after in edges[node] if after != node]
        node = min(ways, key=lambda after: _distance_or_far(edges, after, goal, lookahead))


def _distance_or_far(edges: Sequence[Sequence[int]], node: int, goal: int, limit: int) -> int:
    return _distance(edges, node, goal) if goal in _within(edges, node, limit) else limit + 1


@pytest.mark.parametrize("lookahead", [1, 2])
@given(trail=trails())
@settings(max_examples=200)
def test_it_sees_what_the_reference_sees(trail: Trail, lookahead: int) -> None:
    trials = drive(GREEDY[lookahead](trail, [TIME], 0), trail.outcome, 1000)
    asked = [trail.node(trial.candidate) for trial in trials]
    assert len(set(asked)) == len(asked)
    assert set(asked) == _reference(trail.edges, trail.costs, lookahead)


def _nodes(lookahead: int, edges: Sequence[Sequence[int]], costs: Mapping[int, float]) -> list[int]:
    trail = Trail(edges, costs)
    return [trail.node(t.candidate) for t in drive(GREEDY[lookahead](trail, [TIME], 0), trail.outcome, 100)]


LINE = [[1], [0, 2], [1, 3], [2, 4], [3]]


def test_look_ahead_1_stops_where_no_step_is_better() -> None:
    assert _nodes(1, LINE, {0: 5, 1: 4, 2: 6, 3: 1, 4: 0.5}) == [0, 1, 2]


def test_look_ahead_1_stops_on_a_plain() -> None:
    assert _nodes(1, LINE, {0: 5, 1: 5, 2: 1}) == [0, 1]


def test_look_ahead_2_tolerates_one_bad_step() -> None:
    assert _nodes(2, LINE, {0: 5, 1: 4, 2: 6, 3: 1, 4: 0.5}) == [0, 1, 2, 3, 4]


def test_look_ahead_2_does_not_tolerate_two() -> None:
    assert _nodes(2, LINE, {0: 5, 1: 6, 2: 6, 3: 1, 4: 0.5}) == [0, 1, 2]


def test_a_failed_state_is_no_goal_and_no_wall() -> None:
    assert _nodes(1, LINE, {0: 5, 2: 1}) == [0, 1]
    assert _nodes(2, LINE, {0: 5, 2: 3, 4: 1}) == [0, 1, 2, 3, 4]


def test_any_measured_state_is_better_than_a_start_that_failed() -> None:
    assert _nodes(1, LINE, {1: 9, 2: 8, 3: 7, 4: 6}) == [0, 1, 2, 3, 4]


def test_a_larger_value_is_better_where_the_objective_says_so() -> None:
    trail = Trail(LINE, {})
    gflops = Objective("gflops", direction="up")
    searcher = Greedy1(trail, [gflops], 0)
    trials = drive(searcher, lambda c: Measured({"gflops": [3.0, 4, 5, 2, 9][trail.node(c)]}), 100)
    assert [trail.node(trial.candidate) for trial in trials] == [0, 1, 2, 3]
