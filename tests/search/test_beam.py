"""Beam search against a recursive reference on random graphs, and on graphs made by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planish.search import BeamBFS, BeamDFS
from planish.testing.driving import drive
from search.test_greedy import trails
from search.trail import TIME, Trail

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
@settings(max_examples=150)
def test_with_all_children_it_sees_all_within_its_depth(kind: Beam, trail: Trail, depth: int) -> None:
    asked = _asked(kind, trail, 100, depth)
    assert len(set(asked)) == len(asked)
    assert set(asked) == _tree(trail, 100, depth)


@BEAMS
@given(trail=trails(), width=st.integers(1, 3), depth=st.integers(1, 5))
@settings(max_examples=150)
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
