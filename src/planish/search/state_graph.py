"""The states of a space as a graph; each state is measured at most once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from planish.core import Candidate, CanStep
from planish.search.rounds import Rounds


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
        return StateNode(candidate, self._space.state(candidate))

    def children(self, node: StateNode) -> Sequence[StateNode]:
        """List the other states that are one step away, each once, in the space's order."""
        if node.state not in self._children:
            steps = self._space.steps(node.candidate)
            ahead = (self._node(self._space.extend(node.candidate, step)) for step in steps)
            # Reversed twice: where two steps lead to one state, the space's first one is kept.
            unique = {child.state: child for child in reversed(list(ahead)) if child.state != node.state}
            self._children[node.state] = list(reversed(unique.values()))
        return self._children[node.state]

    def cost(self, node: StateNode) -> float | None:
        """Give a measured state's cost; None where it failed."""
        return self._costs[node.state]

    def ranked(self, nodes: Iterable[StateNode]) -> list[StateNode]:
        """Sort measured states by cost, leaving out those that failed; equals keep their order."""
        costs = [(cost, node) for node in nodes if (cost := self.cost(node)) is not None]
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
