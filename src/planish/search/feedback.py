"""The searcher that tells a language model what came of its list, and has it try again (thesis chapter 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from planish.core import (
    UNTAUGHT,
    CanReconsider,
    HasText,
    Objective,
    PlanishError,
    Policy,
    PolicyState,
    SearchContext,
)
from planish.search.options import Option
from planish.search.policy_searcher import PolicySearcher
from planish.search.rounds import Rounds
from planish.search.timed_policy import TimedPolicy

_HINT = "Train one: planish policy train --level llvm --network decoder."


class Feedback(PolicySearcher):
    """A language model's list, then those that it writes once told what came of the last (thesis 5.5.3)."""

    needs = HasText
    library = "tokenizers"

    def __init__(
        self,
        space: HasText,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = UNTAUGHT,  # noqa: ARG002
        *,
        policy: Annotated[str, Option("a policy's name, a file, or auto: the first one that can")] = "auto",
        tries: Annotated[int, Option("lists at most, the first one included", least=1)] = 5,
    ) -> None:
        timed = _TimedReconsidering(reconsidering_policy(space, policy))
        super().__init__(objectives, timed, reconsidered(timed, space, tries))


def reconsidered(policy: CanReconsider, space: HasText, tries: int = 5) -> Rounds:
    """Follow a policy greedily, tell it what came of it, and so on, until it holds to its candidate.

    Where a candidate comes again, the policy is told what is known of it; nothing is measured twice.

    Args:
        policy: is followed, and told.
        space: from whose start.
        tries: candidates at most.
    """
    known = dict[str, float | None]()
    state: PolicyState | None = policy.begin(space)
    for _ in range(tries):
        if state is None:
            return
        end = greedy_end(policy, state)
        name = end.candidate.hash
        if name not in known:
            costs = yield [end.candidate]
            known[name] = costs.get(name)
        state = policy.reconsider(end, known[name])


def greedy_end(policy: Policy, state: PolicyState) -> PolicyState:
    """Take the most probable steps to the end."""
    while True:
        steps = policy.log_probabilities([state])[0]
        step = max(steps, key=lambda each: steps[each])
        if step is None:
            return state
        state = policy.extend(state, step)


def reconsidering_policy(space: HasText, name: str) -> CanReconsider:
    """Find a policy that can be told what came of its candidate.

    Args:
        space: where it is to walk.
        name: of a policy, a file, or "auto": the first one that fits and can.

    Raises:
        PlanishError: there is none, or it is for another space, or cannot be told.
    """
    from planish.models.named_policies import AUTO
    from planish.models.network_policies import policy_of
    from planish.models.policy_files import load_policy, places, policy_for

    if name == AUTO:
        held = (load_policy(path) for path in places().values())
        found = (policy_of(each) for each in held if each.fits(space))
        policy = next((each for each in found if isinstance(each, CanReconsider)), None)
        if policy is None:
            raise PlanishError("no policy that fits can be told what came of its list", _HINT)
        return policy
    policy = policy_of(policy_for(space, name))
    if not isinstance(policy, CanReconsider):
        raise PlanishError(f"the policy '{name}' cannot be told what came of its list", _HINT)
    return policy


class _TimedReconsidering(TimedPolicy):
    """Counts the seconds of trying again, too."""

    def __init__(self, policy: CanReconsider) -> None:
        super().__init__(policy)
        self._can = policy

    def reconsider(self, state: PolicyState, cost: float | None) -> PolicyState | None:
        """Reconsider as the policy does."""
        with self._timed():
            return self._can.reconsider(state, cost)
