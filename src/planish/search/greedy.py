"""Greedy search with look-ahead (thesis 3.7)."""

from collections.abc import Iterator, Sequence

from planish.core import UNTAUGHT, CanStep, Objective, SearchContext
from planish.search.rounds import Rounds, RoundSearcher
from planish.search.state_graph import StateGraph, StateNode


class Greedy1(RoundSearcher):
    """Greedy search: takes the best step, and stops where no step is better (thesis 3.7)."""

    needs = CanStep

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = UNTAUGHT,  # noqa: ARG002
    ) -> None:
        super().__init__(objectives, greedy(space, 1))


class Greedy2(RoundSearcher):
    """Greedy search with look-ahead 2: it tolerates one bad step before a better state (thesis 3.7)."""

    needs = CanStep

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = UNTAUGHT,  # noqa: ARG002
    ) -> None:
        super().__init__(objectives, greedy(space, 2))


def greedy(space: CanStep, lookahead: int) -> Rounds:
    """Go step by step toward the best state within sight, until none is better than here.

    It costs O(steps * actions ** lookahead) measurements, less for states met twice. The thesis
    evaluates the states exactly `lookahead` steps away; here the nearer ones count too, and the
    nearest of equals is chosen. A failed state can be passed through and is never a goal.

    Args:
        space: where to walk, from its start.
        lookahead: how many steps it sees ahead, from 1.
    """
    graph = StateGraph(space)
    node = graph.start
    yield from graph.measure([node])
    while True:
        # Listed twice, which is cheap: the graph keeps the children. This round is lazy, and measured as it
        # grows.
        yield from graph.measure(last for _, last in _ahead(graph, node, lookahead))
        first = {last: first for first, last in _ahead(graph, node, lookahead)}
        # The node comes first and sorting is stable, so a state that is merely as good is no goal.
        goal = graph.ranked([node, *first])[:1]
        if not goal or goal[0] == node:
            return
        node = first[goal[0]]


def _ahead(graph: StateGraph, node: StateNode, lookahead: int) -> Iterator[tuple[StateNode, StateNode]]:
    """List (first step, state) for each other state within sight, the nearest first."""
    # By state: a step and its inverse would bring the walk back here as if it were news.
    seen = {node.state}
    border = [(child, child) for child in graph.children(node)]
    for depth in range(lookahead):
        # Failed states are not cut off: look-ahead is there to pass through what is bad (thesis 3.7).
        if depth:
            border = [(first, child) for first, last in border for child in graph.children(last)]
        for first, last in border:
            if last.state not in seen:
                seen.add(last.state)
                yield first, last
