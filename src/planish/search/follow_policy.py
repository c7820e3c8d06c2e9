"""Following a policy greedily, and improving on its way (thesis 3.6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from itertools import chain
from typing import Annotated

from planish.core import (
    UNTAUGHT,
    Candidate,
    CanJudge,
    CanName,
    CanStep,
    Objective,
    Policy,
    SearchContext,
)
from planish.search.decoding import Node, PrefixTree, prioritised
from planish.search.decoding.priority import WIDTH
from planish.search.options import Option
from planish.search.policy_searcher import Name, PolicySearcher, name_of_program, new_states, timed_policy
from planish.search.rounds import Rounds, noted, once

UNLIKELY = 3.0
"""An end is so if the most probable step is e to the power of so much times as probable."""

WAYS = 8
"""Of so many ways a policy chooses the end that it holds for the best."""


class FollowPolicy(PolicySearcher):
    """Follows a policy, and measures the most hopeful end of its ways (LoopTune, thesis 3.6)."""

    def __init__(
        self,
        space: CanStep,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = UNTAUGHT,
        *,
        policy: Name = "auto",
        path: Annotated[bool, Option("measure every state on the way, too")] = False,
        improve: Annotated[bool, Option("then leave the best way at each of its states, and so on")] = False,
    ) -> None:
        named = timed_policy(space, policy, context)
        ends = followed(named, space, whole=True) if path else hoped(named, space)
        rounds = improved(named, space) if improve else once(ends)
        super().__init__(objectives, named, rounds)


def hoped(policy: Policy, space: CanName, ways: int = WAYS) -> Iterator[Candidate]:
    """Give the end that a policy holds for the best, of its greedy way and its most probable others.

    Where actions lead is harder to foresee than what a schedule is worth that one stands on, so that a greedy
    way may end in what the network itself holds for bad. The thesis' agent has the greedy way only. Of a
    policy that cannot judge, its end is given.

    Args:
        policy: is followed.
        space: from whose start.
        ways: that it chooses among.
    """
    tree = PrefixTree(policy, space)
    *_, end = _walked(tree, space, tree.root)
    if isinstance(policy, CanJudge):
        # Of the same tree: the policy is asked once about what the ways have in common.
        sampled = prioritised(tree, samples=ways, by="whole", width=WIDTH)
        name, several = name_of_program(space), dict[str, Node]()
        for node in chain([end], sampled):
            several.setdefault(name(node.candidate), node)
            if len(several) == ways:
                break
        worth = policy.worth([node.state for node in several.values()])
        end = max(zip(several.values(), worth, strict=True), key=lambda pair: pair[1])[0]
    yield end.candidate


def followed(policy: Policy, space: CanName, *, whole: bool = False) -> Iterator[Candidate]:
    """Give where the most probable steps end; with `whole`, every state on the way before it.

    No step leads back to where the way has been: where two ways are as good, a network may go to and fro.

    Args:
        policy: is followed.
        space: from whose start.
        whole: whether the way counts too.
    """
    tree = PrefixTree(policy, space)
    *way, end = _walked(tree, space, tree.root)
    if whole:
        yield from (node.candidate for node in way)
    yield end.candidate


def improved(policy: Policy, space: CanName) -> Rounds:
    """Search from a policy's way on: what it is worth to leave the way, the policy itself tells.

    All states of the way are measured. Then the way to the best of them is left, at each of its states, by
    each of the other steps, and the policy is followed from there; all of that is measured, too. So it goes
    on, with the way to the best state, until a round finds no better one. No state is measured twice.

    This is policy iteration by rollouts, on one program: the network stays as it is.

    Args:
        policy: is followed.
        space: from whose start.
    """
    known, lowest, tree = set[str](), math.inf, PrefixTree(policy, space)
    candidates = (node.candidate for node in _walked(tree, space, tree.root))
    while True:
        asked = list[Candidate]()
        costs = yield noted(new_states(space, candidates, known), asked)
        found = {one: cost for one in asked if (cost := costs.get(one.hash)) is not None}
        best = min(found, key=lambda one: found[one], default=None)
        if best is None or found[best] >= lowest:
            return
        # Only what is strictly better is worth another round: each costs as many measurements as the way has
        # other steps, and equal states could take turns for ever.
        lowest = found[best]
        candidates = _aside(tree, space, best)


def _aside(tree: PrefixTree, space: CanName, candidate: Candidate) -> Iterator[Candidate]:
    """Leave the way to a candidate at each of its states, the end included, and follow the policy on."""
    node = tree.root
    # The end included: the best state may lie in the middle of a way that went on from it.
    for taken in (*candidate.steps, None):
        tree.open([node])
        for place, step in enumerate(node.steps):
            # Not the end: that prefix was a state of the way, and is measured already.
            if step is not None and step != taken:
                yield from (after.candidate for after in _walked(tree, space, tree.child(node, place)))
        if taken is not None:
            node = tree.child(node, node.steps.index(taken))


def _walked(tree: PrefixTree, space: CanName, node: Node) -> Iterator[Node]:
    """Give a beginning, and those that the most probable steps lead to."""
    seen = set[str]()
    at: Node | None = node
    while at is not None:
        yield at
        # By state and not by candidate: different steps back lead to the same program.
        seen.add(space.state(at.candidate))
        at = _onward(tree, space, at, seen)


def _onward(tree: PrefixTree, space: CanName, node: Node, seen: Set[str]) -> Node | None:
    """Give what the most probable step that leads to a new state makes; None for the end.

    The end is no way out of a loop: where it is `UNLIKELY`, it is taken only if all else leads back.
    """
    tree.open([node])
    for place in range(len(node.steps)):
        after = tree.child(node, place)
        if after.ended:
            # Reached only when all more probable steps lead back: see `UNLIKELY`.
            if node.sure[place] >= node.sure[0] - UNLIKELY:
                return None
        elif space.state(after.candidate) not in seen:
            return after
    return None
