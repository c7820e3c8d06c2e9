"""Policies by name, and policies made of the lists that a space begins with."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanObserve,
    CanSeed,
    CanStep,
    PlanishError,
    Policy,
    PolicyState,
    ScheduleError,
    SearchContext,
    Space,
    Step,
)
from planish.models.network_policies import policy_of
from planish.models.policy_files import policy_for

ESCAPE = 0.1
"""What all steps that follow the last one in some list weigh, beside all lists together, which weigh 1."""
Steps = tuple[Step, ...]
Weights = Mapping[Step | None, float]


@dataclass(frozen=True)
class SeedState:
    """State of the policy: the steps so far in their order, and the candidate that they make.

    Args:
        space: of the candidate.
        taken: steps, in order.
        candidate: which may have them in an order of its own.
    """

    space: CanStep
    taken: Steps
    candidate: Candidate


class SeedPolicy:
    """Goes on as the lists do that begin so, or, less probably, as any list does after the last step.

    The list of index r weighs 1 / (r + 1), all of them together 1. After a prefix, a step weighs as much
    as the lists that begin so and go on with it, and `ESCAPE` times the share of what follows the last step
    anywhere. So the lists themselves are probable, and less so their prefixes with the ends of others.

    Args:
        lists: the best first; at least one.
    """

    def __init__(self, lists: Sequence[Candidate]) -> None:
        if not lists:
            raise PlanishError("there are no lists to make a policy of", "Name a policy: --set policy=NAME.")
        whole = sum(1 / (index + 1) for index in range(len(lists)))
        begun = defaultdict[Steps, defaultdict[Step | None, float]](lambda: defaultdict(float))
        after = defaultdict[Step | None, defaultdict[Step | None, float]](lambda: defaultdict(float))
        for index, candidate in enumerate(lists):
            weight = 1 / (index + 1) / whole
            steps = (None, *candidate.steps, None)
            for at, (last, step) in enumerate(pairwise(steps)):
                begun[candidate.steps[:at]][step] += weight
                after[last][step] += weight
        self._begun: Mapping[Steps, Weights] = begun
        self._after: Mapping[Step | None, Weights] = after
        self._longest = max(len(candidate.steps) for candidate in lists)

    def begin(self, space: Space) -> SeedState:
        """Begin at the start of a space.

        Raises:
            PlanishError: the space does not take steps.
        """
        if not isinstance(space, CanStep):
            raise PlanishError("a policy needs a space that is walked step by step", "Name another space.")
        return SeedState(space, (), space.start())

    def extend(self, state: PolicyState, step: Step) -> SeedState:
        """Take a step."""
        assert isinstance(state, SeedState)
        candidate = state.space.extend(state.candidate, step)
        return SeedState(state.space, (*state.taken, step), candidate)

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Weigh what follows in the lists; what the space cannot take, or changes nothing, is none."""
        return [self._next(state) for state in states if isinstance(state, SeedState)]

    def _next(self, state: SeedState) -> Mapping[Step | None, float]:
        # What follows a step in some list may lead back to it: without a bound, it could go round for ever.
        if len(state.taken) >= self._longest:
            return {None: 0.0}
        found = defaultdict[Step | None, float](float)
        for step, weight in self._begun.get(state.taken, {}).items():
            found[step] += weight
        follows = self._after.get(state.taken[-1] if state.taken else None, {None: 1.0})
        whole = sum(follows.values())
        for step, weight in follows.items():
            found[step] += ESCAPE * weight / whole
        kept = {step: weight for step, weight in found.items() if step is None or _moves(state, step)}
        total = sum(kept.values())
        return {step: math.log(weight / total) for step, weight in kept.items()} if total else {None: 0.0}


def _moves(state: SeedState, step: Step) -> bool:
    """Return whether a step leads to another candidate."""
    try:
        return state.space.extend(state.candidate, step) != state.candidate
    except ScheduleError:
        return False


AUTO, SEEDS = "auto", "seeds"
"""Name the first policy that fits, and the one that is made of what the space begins with."""


def policy_named(space: Space, name: str, context: SearchContext = EMPTY_CONTEXT) -> Policy:
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
        return SeedPolicy(seeds)
    if not isinstance(space, CanObserve):
        what = f"no policy is for the space {type(space).__name__}: it describes no candidate to one"
        raise PlanishError(what, "Name another space, or another searcher: planish searchers.")
    return policy_of(policy_for(space, name))
