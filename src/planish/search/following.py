"""Searchers that follow a policy: greedily, or by Priority Sampling (thesis 3.6 and chapter 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from heapq import heappop, heappush
from itertools import count, islice
from typing import Annotated

from planish.core import (
    UNTAUGHT,
    Candidate,
    CanName,
    CanObserve,
    Objective,
    Policy,
    PolicyState,
    SearchContext,
    Space,
    Step,
)
from planish.search.options import Option
from planish.search.rounds import Rounds, RoundSearcher, noted
from planish.search.timed_policy import TimedPolicy

UNLIKELY = 3.0
"""An end is so if the most probable step is e to the power of so much times as probable."""

Name = Annotated[str, Option("a policy's name, a file, or auto: the first one that fits the space")]


class _Following(RoundSearcher):
    needs = CanObserve

    def __init__(self, objectives: Sequence[Objective], policy: TimedPolicy, rounds: Rounds) -> None:
        super().__init__(objectives, rounds)
        self._policy = policy

    @property
    def model_s(self) -> float:
        """Seconds that the policy took; see `planish.core.HasModel`."""
        return self._policy.seconds


class FollowPolicy(_Following):
    """Follows a policy greedily, and measures where it ends (LoopTune, thesis 3.6)."""

    def __init__(
        self,
        space: CanObserve,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = UNTAUGHT,  # noqa: ARG002
        *,
        policy: Name = "auto",
        path: Annotated[bool, Option("measure every state on the way, too")] = False,
        improve: Annotated[bool, Option("then leave the best way at each of its states, and so on")] = False,
    ) -> None:
        named = _policy(space, policy)
        rounds = improved(named, space) if improve else _once(followed(named, space, whole=path))
        super().__init__(objectives, named, rounds)


class PrioritySampling(_Following):
    """Priority Sampling: the most probable candidates of a policy, each once (thesis chapter 6)."""

    def __init__(
        self,
        space: CanObserve,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = UNTAUGHT,  # noqa: ARG002
        *,
        policy: Name = "auto",
        samples: Annotated[int, Option("candidates; 0: until there is no other", least=0)] = 0,
        branches: Annotated[int, Option("next steps that are kept of each state; 0: all", least=0)] = 0,
        whole: Annotated[bool, Option("branch by the probability of all steps, not of the last")] = False,
    ) -> None:
        named = _policy(space, policy)
        walk = priority_samples(named, space, branches=branches or None, whole=whole)
        new = _new(space, walk, set())
        super().__init__(objectives, named, _once(islice(new, samples) if samples else new))


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
        costs = yield noted(_new(space, candidates, known), asked)
        found = {one: cost for one in asked if (cost := costs.get(one.hash)) is not None}
        best = min(found, key=lambda one: found[one], default=None)
        if best is None or found[best] >= lowest:
            return
        lowest = found[best]
        candidates = _aside(policy, space, best)


def _aside(policy: Policy, space: CanName, candidate: Candidate) -> Iterator[Candidate]:
    """Leave the way to a candidate at each of its states, the end included, and follow the policy on."""
    state = policy.begin(space)
    for taken in (*candidate.steps, None):
        for step in policy.log_probabilities([state])[0]:
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
        seen.add(space.state(at.candidate))
        at = _onward(policy, space, at, seen)


def priority_samples(
    policy: Policy, space: Space, *, branches: int | None = None, whole: bool = False
) -> Iterator[Candidate]:
    """Give a policy's candidates, each once: the greedy one, and then from the most probable branch on.

    Algorithm 1 of the thesis. Each sample is completed greedily, and what was not chosen on its way is a
    branch for later, by the probability of its own step. Nothing is drawn, and as many inferences are made as
    there are steps in the tree. Of equal branches the older one comes first.

    Args:
        policy: is sampled.
        space: from whose start.
        branches: how many of the next steps are kept of each state, the chosen one included; None: all. It is
            the limit of branches in table 6.1.
        whole: by the probability of all steps up to a branch, which the thesis does not do.
    """
    number = count()
    waiting: list[tuple[float, int, float, PolicyState, Step | None]] = []
    state, sure = policy.begin(space), 0.0
    while True:
        ranked = sorted(policy.log_probabilities([state])[0].items(), key=lambda pair: -pair[1])[:branches]
        for step, log_probability in ranked[1:]:
            path = sure + log_probability
            heappush(waiting, (-(path if whole else log_probability), next(number), path, state, step))
        step, log_probability = ranked[0]
        sure += log_probability
        while step is None:
            yield state.candidate
            if not waiting:
                return
            _, _, sure, state, step = heappop(waiting)
        state = policy.extend(state, step)


def _onward(policy: Policy, space: CanName, state: PolicyState, seen: Set[str]) -> PolicyState | None:
    """Give the state after the most probable step that leads to a new one; None for the end.

    The end is no way out of a loop: where it is `UNLIKELY`, it is taken only if all else leads back.
    """
    steps = policy.log_probabilities([state])[0]
    ranked = sorted(steps, key=lambda step: -steps[step])
    for step in ranked:
        after = None if step is None else policy.extend(state, step)
        if after is None and steps[None] >= steps[ranked[0]] - UNLIKELY:
            return None
        if after is not None and space.state(after.candidate) not in seen:
            return after
    return None


def _new(space: CanName, candidates: Iterator[Candidate], known: set[str]) -> Iterator[Candidate]:
    """Leave out what leads to a state that is known, and note the others."""
    for candidate in candidates:
        state = space.state(candidate)
        if state not in known:
            known.add(state)
            yield candidate


def _once(candidates: Iterator[Candidate]) -> Rounds:
    """Make one round: nothing is learnt on the way."""
    yield candidates


def _policy(space: CanObserve, name: str) -> TimedPolicy:
    from planish.learn.policy import policy_for, policy_of

    return TimedPolicy(policy_of(policy_for(space, name)))
