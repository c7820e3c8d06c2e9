"""Greedy and beam search against recursive references."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from planish.core import Measured, Objective
from planish.search.tree_search import BeamBFS, BeamDFS, Greedy1, Greedy2
from planish.testing.searchers import drive
from search.spaces import TIME, Trail

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
@settings(max_examples=examples(200))
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


BEAMS = pytest.mark.parametrize("kind", [BeamDFS, BeamBFS])
Beam = type[BeamDFS | BeamBFS]


def _asked(kind: Beam, trail: Trail, width: int, depth: int) -> list[int]:
    searcher = kind(trail, [TIME], 0, width=width, depth=depth)
    return [trail.node(trial.candidate) for trial in drive(searcher, trail.outcome, 10_000)]


def _tree(trail: Trail, width: int, depth: int) -> set[int]:
    """Visit, recursively and with no memory, the best children of each node; gives all in sight."""
    sight = {0}

    def visit(path: tuple[int, ...]) -> None:
        if len(path) <= depth:
            children = set(trail.edges[path[-1]]) - {path[-1]}
            sight.update(children)
            ways = sorted((c for c in children - {*path} if c in trail.costs), key=lambda c: trail.costs[c])
            for child in ways[:width]:
                visit((*path, child))

    visit((0,))
    return sight


@BEAMS
@given(trail=trails(), depth=st.integers(1, 5))
@settings(max_examples=examples(150))
def test_with_all_children_it_sees_all_within_its_depth(kind: Beam, trail: Trail, depth: int) -> None:
    asked = _asked(kind, trail, 100, depth)
    assert len(set(asked)) == len(asked)
    assert set(asked) == _tree(trail, 100, depth)


@BEAMS
@given(trail=trails(), width=st.integers(1, 3), depth=st.integers(1, 5))
@settings(max_examples=examples(150))
def test_it_sees_no_more_than_the_tree(kind: Beam, trail: Trail, width: int, depth: int) -> None:
    """It may see less: a state met again is expanded as it was met first, by another path."""
    asked = _asked(kind, trail, width, depth)
    assert len(set(asked)) == len(asked)
    assert set(asked) <= _tree(trail, width, depth)


def _binary(depth: int) -> list[list[int]]:
    """Make a binary tree in the order of a heap."""
    inner = 2**depth - 1
    return [[2 * n + 1, 2 * n + 2] if n < inner else [] for n in range(2 ** (depth + 1) - 1)]


WORSENING = {node: 1.0 + node for node in range(15)}


def test_depth_first_goes_down_the_best_child_first() -> None:
    trail = Trail(_binary(3), WORSENING)
    assert _asked(BeamDFS, trail, 2, 3) == [0, 1, 2, 3, 4, 7, 8, 9, 10, 5, 6, 11, 12, 13, 14]


def test_breadth_first_goes_level_by_level() -> None:
    assert _asked(BeamBFS, Trail(_binary(3), WORSENING), 2, 3) == list(range(15))


@BEAMS
def test_only_the_best_children_are_visited(kind: Beam) -> None:
    """Of width 1, and every step is worse: it goes on to the depth, and no further."""
    assert _asked(kind, Trail(_binary(3), WORSENING), 1, 2) == [0, 1, 2, 3, 4]


@BEAMS
def test_failed_children_take_no_place(kind: Beam) -> None:
    costs = {node: cost for node, cost in WORSENING.items() if node not in (1, 5)}
    assert _asked(kind, Trail(_binary(3), costs), 1, 3) == [0, 1, 2, 5, 6, 13, 14]


@BEAMS
def test_the_way_back_takes_no_place(kind: Beam) -> None:
    line = [[1], [0, 2], [1, 3], [2, 4], [3]]
    assert _asked(kind, Trail(line, {0: 1, 1: 2, 2: 3, 3: 4, 4: 0.5}), 1, 10) == [0, 1, 2, 3, 4]


def test_a_state_met_again_with_more_steps_left_is_expanded_again() -> None:
    """Depth first reaches 3 by 1 and 2 with no step left, and then from the start with two left."""
    edges = [[1, 3], [2], [3], [4], [5], []]
    trail = Trail(edges, {0: 9, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5})
    assert _asked(BeamDFS, trail, 2, 3) == [0, 1, 3, 2, 4, 5]
