"""What searchers that ask a policy have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated

from planish.core import (
    UNTAUGHT,
    Candidate,
    CanJudge,
    CanName,
    CanStep,
    NamesPrograms,
    Objective,
    SearchContext,
)
from planish.search.options import Option
from planish.search.rounds import Rounds, RoundSearcher
from planish.search.timed_policy import TimedJudge, TimedPolicy

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
        name: as `planish.models.named_policies.policy_named` takes it.
        context: what was learned before.

    Raises:
        PlanishError: there is none, or it is for another space.
    """
    from planish.models.named_policies import policy_named

    policy = policy_named(space, name, context)
    return TimedJudge(policy) if isinstance(policy, CanJudge) else TimedPolicy(policy)


def new_states(space: CanName, candidates: Iterable[Candidate], known: set[str]) -> Iterator[Candidate]:
    """Leave out what leads to a state that is known, and note the others."""
    for candidate in candidates:
        state = space.state(candidate)
        if state not in known:
            known.add(state)
            yield candidate


def name_of_program(space: CanName) -> Callable[[Candidate], str]:
    """Give what names the program that a candidate makes.

    A state tells what may follow, too; nothing follows a whole sample.
    """
    return space.identity if isinstance(space, NamesPrograms) else space.state


def new_programs(space: CanName, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Leave out what makes a program that another one has made, whatever can follow it."""
    name = name_of_program(space)
    known = set[str]()
    for candidate in candidates:
        program = name(candidate)
        if program not in known:
            known.add(program)
            yield candidate
