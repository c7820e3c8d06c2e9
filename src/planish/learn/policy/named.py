"""A policy for a space by its name, and what it thinks of candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from planish.core import (
    UNTAUGHT,
    Candidate,
    CanObserve,
    CanSeed,
    PlanishError,
    Policy,
    PolicyState,
    SearchContext,
    Space,
    Step,
)
from planish.learn.policy.composed import ComposedPolicy
from planish.learn.policy.listed import policy_of
from planish.learn.policy.policy_folder import policy_for

AUTO, SEEDS = "auto", "seeds"
"""Name the first policy that fits, and the one that is made of what the space begins with."""


def policy_named(space: Space, name: str, context: SearchContext = UNTAUGHT) -> Policy:
    """Find a policy.

    Args:
        space: where it is to walk.
        name: of a policy; a file; "seeds", for one made of the lists that the space begins with; or "auto",
            for the first one that fits the space, or else that.
        context: what was learned before.

    Raises:
        PlanishError: there is none, or it is for another space.
    """
    seeds = space.seeds(context) if isinstance(space, CanSeed) else ()
    if name == SEEDS or (name == AUTO and seeds and not isinstance(space, CanObserve)):
        return ComposedPolicy(seeds)
    if not isinstance(space, CanObserve):
        what = f"no policy is for the space {type(space).__name__}: it describes no candidate to one"
        raise PlanishError(what, "Name another space, or another searcher: planish searchers.")
    return policy_of(policy_for(space, name))


def chances(policy: Policy, space: Space, candidates: Sequence[Candidate]) -> list[float]:
    """Tell how probable candidates are to a policy, as their steps stand; 0 where it cannot write them."""
    start = policy.begin(space)
    known: dict[tuple[Step, ...], tuple[PolicyState, Mapping[Step | None, float]]] = {}

    def said(taken: tuple[Step, ...]) -> Mapping[Step | None, float]:
        # Candidates share beginnings, and each question to a network takes a while.
        if taken not in known:
            state = policy.extend(known[taken[:-1]][0], taken[-1]) if taken else start
            known[taken] = state, policy.log_probabilities([state])[0]
        return known[taken][1]

    def chance(candidate: Candidate) -> float:
        total = 0.0
        for place, step in enumerate((*candidate.steps, None)):
            found = said(candidate.steps[:place])
            if step not in found:
                return 0.0
            total += found[step]
        return math.exp(total)

    return [chance(candidate) for candidate in candidates]
