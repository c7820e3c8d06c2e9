"""Beam search of any width, depth first and breadth first (thesis 3.7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from planish.core import UNTAUGHT, CanStep, Objective, SearchContext
from planish.search.options import Option
from planish.search.rounds import Rounds, RoundSearcher
from planish.search.state_graph import StateGraph, StateNode

Width = Annotated[int, Option("how many children of each node are visited", least=1)]
Depth = Annotated[int, Option("the longest sequence of steps", least=1)]


class BeamDFS(RoundSearcher):
    """Beam search, depth first: long sequences early; goes on when the next state is worse (thesis 3.7)."""

    needs = CanStep

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = UNTAUGHT,  # noqa: ARG002
        *,
        width: Width = 4,
        depth: Depth = 10,
    ) -> None:
        super().__init__(objectives, beam(space, width, depth, depth_first=True))


class BeamBFS(RoundSearcher):
    """Beam search, breadth first: all short sequences before longer ones (thesis 3.7)."""

    needs = CanStep

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = UNTAUGHT,  # noqa: ARG002
        *,
        width: Width = 4,
        depth: Depth = 10,
    ) -> None:
        super().__init__(objectives, beam(space, width, depth, depth_first=False))


@dataclass(frozen=True)
class _Branch:
    """A node of the search tree, the steps left below it, and the states above it."""

    node: StateNode
    left: int
    path: frozenset[str]


def beam(space: CanStep, width: int, depth: int, *, depth_first: bool) -> Rounds:
    """Visit the tree in which every node has its best `width` children, down to `depth`.

    It has O(width ** depth) nodes, as both variants of the thesis have. Unlike there, no path
    returns to a state that it came from, a state is expanded again only where more steps are left,
    and a failed state is not visited.

    Args:
        space: where to walk, from its start.
        width: children visited of each node; the thesis uses 2 and 4.
        depth: steps from the start to the leaves.
        depth_first: go down the best child first; otherwise level by level.
    """
    graph = StateGraph(space)
    yield from graph.measure([graph.start])
    frontier = [_Branch(graph.start, depth, frozenset([graph.start.state]))]
    expanded: dict[str, int] = {}
    while frontier:
        # Breadth first, a whole level is one round, so its states are measured side by side.
        now, frontier = (frontier[-1:], frontier[:-1]) if depth_first else (frontier, [])
        now = [branch for branch in now if _is_news(branch, expanded)]
        yield from graph.measure(child for branch in now for child in graph.children(branch.node))
        for branch in now:
            best = _best_children(graph, branch, width)
            # Depth first, the frontier is a stack: the best child is pushed last, to be visited first.
            frontier += reversed(best) if depth_first else best


def _is_news(branch: _Branch, expanded: dict[str, int]) -> bool:
    """Whether more steps are left than at any earlier visit to this state, which is noted."""
    # 0 where it was never visited, so that leaves, with no steps left, are not expanded.
    if branch.left <= expanded.get(branch.node.state, 0):
        return False
    # By steps left, and not by having been here: depth first, a state is often met first near the bottom.
    expanded[branch.node.state] = branch.left
    return True


def _best_children(graph: StateGraph, branch: _Branch, width: int) -> list[_Branch]:
    # A step and its inverse would lead back and forth until the depth is used up.
    ways = [child for child in graph.children(branch.node) if child.state not in branch.path]
    return [
        _Branch(child, branch.left - 1, branch.path | {child.state}) for child in graph.ranked(ways)[:width]
    ]
