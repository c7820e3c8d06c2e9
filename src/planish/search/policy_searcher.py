"""What searchers that ask a policy have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from planish.core import (
    UNTAUGHT,
    Candidate,
    CanName,
    CanObserve,
    CanSeed,
    CanStep,
    Objective,
    PlanishError,
    SearchContext,
)
from planish.search.options import Option
from planish.search.rounds import Rounds, RoundSearcher
from planish.search.timed_policy import TimedPolicy

AUTO, SEEDS = "auto", "seeds"
"""Name the first policy that fits, and the one that is made of what the space begins with."""
Name = Annotated[
    str, Option("a policy's name, a file, seeds: of the lists that the space begins with, or auto")
]


class PolicySearcher(RoundSearcher):
    """Asks a policy, and tells how long that took.

    Args:
        objectives: at least one; the first leads.
        policy: is asked.
        rounds: the search.
    """

    needs = CanStep

    def __init__(self, objectives: Sequence[Objective], policy: TimedPolicy, rounds: Rounds) -> None:
        super().__init__(objectives, rounds)
        self._policy = policy

    @property
    def model_s(self) -> float:
        """Seconds that the policy took; see `planish.core.HasModel`."""
        return self._policy.seconds


def timed_policy(space: CanStep, name: str, context: SearchContext = UNTAUGHT) -> TimedPolicy:
    """Find a policy, whose time is counted.

    Args:
        space: where it is to walk.
        name: of a policy; a file; "seeds", for one made of the lists that the space begins with; or "auto",
            for the first one that fits the space, or else that.
        context: what was learned before.

    Raises:
        PlanishError: there is none, or it is for another space.
    """
    from planish.learn.policy import ComposedPolicy, policy_for, policy_of

    seeds = space.seeds(context) if isinstance(space, CanSeed) else ()
    if name == SEEDS or (name == AUTO and seeds and not isinstance(space, CanObserve)):
        return TimedPolicy(ComposedPolicy(seeds))
    if not isinstance(space, CanObserve):
        what = f"no policy is for the space {type(space).__name__}: it describes no candidate to one"
        raise PlanishError(what, "Name another space, or another searcher: planish searchers.")
    return TimedPolicy(policy_of(policy_for(space, name)))


def new_states(space: CanName, candidates: Iterable[Candidate], known: set[str]) -> Iterator[Candidate]:
    """Leave out what leads to a state that is known, and note the others."""
    for candidate in candidates:
        state = space.state(candidate)
        if state not in known:
            known.add(state)
            yield candidate


def once(candidates: Iterable[Candidate]) -> Rounds:
    """Make one round: nothing is learnt on the way."""
    yield candidates
