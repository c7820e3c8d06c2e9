"""The tree of what a policy may write: every beginning is asked for once, whoever goes on from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, PlanishError, Policy, PolicyState, Space, Step

Floats = NDArray[np.float64]


@dataclass(eq=False)
class Node:
    """The beginning of a candidate; once it has ended, the whole of it.

    Args:
        state: where the policy stands.
        log_probability: of all steps up to here, the end included where it has ended.
        depth: how many steps that are, the end included.
        ended: whether this is a whole candidate.
        steps: what may come next, the most probable first, None for the end; empty until it was asked for.
        sure: the logarithm of each step's probability.
        children: of those places among the steps that were taken.
    """

    state: PolicyState
    log_probability: float = 0.0
    depth: int = 0
    ended: bool = False
    steps: Sequence[Step | None] = ()
    sure: Floats = field(default_factory=lambda: np.empty(0))
    children: dict[int, Node] = field(default_factory=dict[int, "Node"])

    @property
    def candidate(self) -> Candidate:
        """The steps so far."""
        return self.state.candidate


class PrefixTree:
    """What a policy has said so far; all that sample from it share one, as a cache of prefixes.

    Args:
        policy: is asked.
        space: from whose start.

    Attributes:
        inferences: how many beginnings the policy was asked about.
        calls: in how many batches.
    """

    def __init__(self, policy: Policy, space: Space) -> None:
        self._policy = policy
        self.root = Node(policy.begin(space))
        self.inferences = 0
        self.calls = 0

    def open(self, nodes: Iterable[Node]) -> None:
        """Find out what may follow some beginnings: one question for all that are new.

        Raises:
            PlanishError: the policy lets nothing follow, not even the end, or its answer is not a number.
        """
        # Each once and in order: the same question in the same order gives a network's answer to the last
        # digit.
        new = [node for node in dict.fromkeys(nodes) if not node.steps and not node.ended]
        if not new:
            return
        self.inferences, self.calls = self.inferences + len(new), self.calls + 1
        for node, said in zip(new, self._policy.log_probabilities([n.state for n in new]), strict=True):
            # What is impossible is left out, so that no decoder takes it when all else is used up.
            ranked = sorted(((s, p) for s, p in said.items() if p > -math.inf), key=lambda pair: -pair[1])
            if not ranked or not all(map(math.isfinite, (p for _, p in ranked))):
                what = f"the policy gives no probabilities after '{node.candidate.text}'"
                raise PlanishError(what, "Use another one: planish policy lists them.")
            node.steps = [step for step, _ in ranked]
            node.sure = np.array([p for _, p in ranked])

    def child(self, node: Node, place: int) -> Node:
        """Give what a beginning becomes by one of its steps."""
        if place not in node.children:
            step = node.steps[place]
            state = node.state if step is None else self._policy.extend(node.state, step)
            sure = node.log_probability + float(node.sure[place])
            node.children[place] = Node(state, sure, node.depth + 1, step is None)
        return node.children[place]
