"""Greedy search with look-ahead, and beam search, over the graph of a space's states (thesis 3.7).

Both walk from the start of a space. Each state is measured at most once, in whichever way it is reached.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from planish.core import EMPTY_CONTEXT, Candidate, CanStep, Objective, SearchContext
from planish.search.factory import Option
from planish.search.rounds import Rounds, RoundSearcher


@dataclass(frozen=True)
class StateNode:
    """A state, and the candidate by which it was first reached."""

    candidate: Candidate
    state: str


class StateGraph:
    """A space seen from its start: states are nodes, steps are edges, and costs are kept."""

    def __init__(self, space: CanStep) -> None:
        self._space = space
        self._children: dict[str, Sequence[StateNode]] = {}
        self._costs: dict[str, float | None] = {}
        self.start = self._node(space.start())

    def _node(self, candidate: Candidate) -> StateNode:
        return StateNode(candidate, self._space.state_key(candidate))

    def children(self, node: StateNode) -> Sequence[StateNode]:
        """List the other states that are one step away, each once, in the space's order."""
        if node.state not in self._children:
            steps = self._space.steps(node.candidate)
            ahead = (self._node(self._space.extend(node.candidate, step)) for step in steps)
            # Reversed twice: where two steps lead to one state, the space's first one is kept.
            unique = {child.state: child for child in reversed(list(ahead)) if child.state != node.state}
            self._children[node.state] = list(reversed(unique.values()))
        return self._children[node.state]

    def ranked(self, nodes: Iterable[StateNode]) -> list[StateNode]:
        """Sort measured states by cost, leaving out those that failed; equals keep their order."""
        costs = [(cost, node) for node in nodes if (cost := self._costs[node.state]) is not None]
        return [node for _, node in sorted(costs, key=lambda pair: pair[0])]

    def measure(self, nodes: Iterable[StateNode]) -> Rounds:
        """Make one round of those states that have no outcome yet."""
        asked: dict[str, str] = {}
        costs = yield self._unmeasured(nodes, asked)
        self._costs.update((state, costs.get(name)) for state, name in asked.items())

    def _unmeasured(self, nodes: Iterable[StateNode], asked: dict[str, str]) -> Iterator[Candidate]:
        for node in nodes:
            # Looked up when it is drawn, not before: what the round itself has asked for counts, too.
            if node.state not in self._costs and node.state not in asked:
                asked[node.state] = node.candidate.hash
                yield node.candidate


class Greedy1(RoundSearcher):
    """Greedy search: takes the best step, and stops if no step is better (thesis 3.7)."""

    needs = CanStep
    lookahead = 1

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = EMPTY_CONTEXT,  # noqa: ARG002
    ) -> None:
        super().__init__(objectives, greedy(space, self.lookahead))


class Greedy2(Greedy1):
    """Greedy search with look-ahead 2: it tolerates one bad step before a better state (thesis 3.7)."""

    lookahead = 2


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
        # The node comes first and sorting is stable, so a state that is merely as good is not a goal.
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


Width = Annotated[int, Option("how many children of each node are visited", least=1)]
Depth = Annotated[int, Option("the longest sequence of steps", least=1)]


class BeamDFS(RoundSearcher):
    """Beam search, depth first: long sequences early; continues when the next state is worse (thesis 3.7)."""

    needs = CanStep
    depth_first = True

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = EMPTY_CONTEXT,  # noqa: ARG002
        *,
        width: Width = 4,
        depth: Depth = 10,
    ) -> None:
        super().__init__(objectives, beam(space, width, depth, depth_first=self.depth_first))


class BeamBFS(BeamDFS):
    """Beam search, breadth first: all short sequences before longer ones (thesis 3.7)."""

    depth_first = False


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
        now = [branch for branch in now if _has_more_steps_left(branch, expanded)]
        yield from graph.measure(child for branch in now for child in graph.children(branch.node))
        for branch in now:
            # A step and its inverse would lead back and forth until the depth is used up.
            ways = [child for child in graph.children(branch.node) if child.state not in branch.path]
            best = [
                _Branch(child, branch.left - 1, branch.path | {child.state})
                for child in graph.ranked(ways)[:width]
            ]
            # Depth first, the frontier is a stack: the best child is pushed last, to be visited first.
            frontier += reversed(best) if depth_first else best


def _has_more_steps_left(branch: _Branch, expanded: dict[str, int]) -> bool:
    """Return whether more steps are left than at any earlier visit to this state, which is recorded."""
    # 0 where it was never visited, so that leaves, with no steps left, are not expanded.
    if branch.left <= expanded.get(branch.node.state, 0):
        return False
    # By steps left, and not by having been here: depth first, a state is often met first near the bottom.
    expanded[branch.node.state] = branch.left
    return True
