"""Following a policy greedily, and improving on its way (thesis 3.6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from itertools import chain, islice
from typing import Annotated

from planish.core import (
    UNTAUGHT,
    Candidate,
    CanJudge,
    CanName,
    CanStep,
    Objective,
    Policy,
    PolicyState,
    SearchContext,
)
from planish.search.decoding import priority_samples
from planish.search.options import Option
from planish.search.policy_searcher import Name, PolicySearcher, new_programs, new_states, timed_policy
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
    ends = followed(policy, space)
    if isinstance(policy, CanJudge):
        sampled = priority_samples(policy, space, samples=ways, by="whole")
        several = list(islice(new_programs(space, chain(ends, sampled)), ways))
        states = [_standing(policy, space, one) for one in several]
        worth = policy.worth(states)
        ends = iter([several[max(range(len(several)), key=worth.__getitem__)]])
    yield from ends


def _standing(policy: Policy, space: CanName, candidate: Candidate) -> PolicyState:
    state = policy.begin(space)
    for step in candidate.steps:
        state = policy.extend(state, step)
    return state


def followed(policy: Policy, space: CanName, *, whole: bool = False) -> Iterator[Candidate]:
    """Give where the most probable steps end; with `whole`, every state on the way before it.

    No step leads back to where the way has been: where two ways are as good, a network may go to and fro.

    Args:
        policy: is followed.
        space: from whose start.
        whole: whether the way counts too.
    """
    *way, end = _walked(policy, space, policy.begin(space))
    if whole:
        yield from (state.candidate for state in way)
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
    known, lowest = set[str](), math.inf
    candidates = (state.candidate for state in _walked(policy, space, policy.begin(space)))
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
        candidates = _aside(policy, space, best)


def _aside(policy: Policy, space: CanName, candidate: Candidate) -> Iterator[Candidate]:
    """Leave the way to a candidate at each of its states, the end included, and follow the policy on."""
    state = policy.begin(space)
    # The end included: the best state may lie in the middle of a way that went on from it.
    for taken in (*candidate.steps, None):
        for step in policy.log_probabilities([state])[0]:
            # Not the end: that prefix was a state of the way, and is measured already.
            if step is not None and step != taken:
                yield from (after.candidate for after in _walked(policy, space, policy.extend(state, step)))
        if taken is not None:
            state = policy.extend(state, taken)


def _walked(policy: Policy, space: CanName, state: PolicyState) -> Iterator[PolicyState]:
    """Give a state, and those that the most probable steps lead to."""
    seen = set[str]()
    at: PolicyState | None = state
    while at is not None:
        yield at
        # By state and not by candidate: different steps back lead to the same program.
        seen.add(space.state(at.candidate))
        at = _onward(policy, space, at, seen)


def _onward(policy: Policy, space: CanName, state: PolicyState, seen: Set[str]) -> PolicyState | None:
    """Give the state after the most probable step that leads to a new one; None for the end.

    The end is no way out of a loop: where it is `UNLIKELY`, it is taken only if all else leads back.
    """
    steps = policy.log_probabilities([state])[0]
    ranked = sorted(steps, key=lambda step: -steps[step])
    for step in ranked:
        after = None if step is None else policy.extend(state, step)
        # Reached only when all more probable steps lead back: see `UNLIKELY`.
        if after is None and steps[None] >= steps[ranked[0]] - UNLIKELY:
            return None
        if after is not None and space.state(after.candidate) not in seen:
            return after
    return None
