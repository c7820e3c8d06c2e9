"""A space that is only walked: candidates keep every step, so many of them reach one state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planish.core import Candidate, Failed, Measured, Objective, Outcome, Step

TIME = Objective("time_s", "s")


@dataclass(frozen=True)
class Go(Step):
    """Follow an edge."""

    to: int


class Trail:
    """A directed graph: node to the nodes that follow; the start is node 0.

    Args:
        edges: for each node, where its steps lead.
        costs: node to its time; a missing node fails.
    """

    def __init__(self, edges: Sequence[Sequence[int]], costs: Mapping[int, float]) -> None:
        self.edges = edges
        self.costs = costs

    def start(self) -> Candidate:
        return Candidate()

    def node(self, candidate: Candidate) -> int:
        node = 0
        for step in candidate.steps:
            assert isinstance(step, Go)
            assert step.to in self.edges[node]
            node = step.to
        return node

    def steps(self, candidate: Candidate) -> list[Go]:
        return [Go(to) for to in self.edges[self.node(candidate)]]

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        return candidate.then(step)

    def state(self, candidate: Candidate) -> str:
        return str(self.node(candidate))

    def outcome(self, candidate: Candidate) -> Outcome:
        node = self.node(candidate)
        return Measured({"time_s": self.costs[node]}) if node in self.costs else Failed("run", "crash")
