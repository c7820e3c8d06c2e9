"""What pass lists cost on one function: an executor runs those that are new."""

from __future__ import annotations

from collections.abc import Sequence

from planish.core import Candidate, Executor, Failed, Measured, Outcome, PlanishError, Trial, evaluate
from planish.corpus.labelling.evaluator import OWN, REFUSED
from planish.corpus.labelling.ranking import Passes, Ranking
from planish.llvm.passes import candidate_of, passes_of


class FunctionCosts:
    """Costs of pass lists on one function; each list is run once.

    Args:
        executor: runs them, in the order in which they are given.
        ranking: is told of each at once.
        objective: the name of what is counted.

    Attributes:
        unoptimised: what the function costs as it is.
    """

    def __init__(self, executor: Executor, ranking: Ranking, objective: str) -> None:
        self._executor, self.ranking, self._objective = executor, ranking, objective
        self.unoptimised = self.cost(())

    def cost(self, passes: Sequence[str]) -> int | None:
        """Give what the function costs after these passes; None where they fail or break it."""
        self.run([candidate_of(passes)])
        return self.ranking.costs[tuple(passes)]

    def run(self, candidates: Sequence[Candidate]) -> list[Trial]:
        """Run lists; gives a trial for each, in the same order."""
        names = [passes_of(candidate) for candidate in candidates]
        costs = self.ranking.costs
        new = {name: each for name, each in zip(names, candidates, strict=True) if name not in costs}
        order = list(new)
        for answer in evaluate(self._executor, list(new.values())):
            self.ranking.add(order[answer.position], self._cost(answer.outcome))
        return [self._trial(each, costs[name]) for name, each in zip(names, candidates, strict=True)]

    def _cost(self, outcome: Outcome) -> int | None:
        measured = charge(outcome)
        return int(measured.values[self._objective]) if measured else None

    def _trial(self, candidate: Candidate, cost: int | None) -> Trial:
        if cost is None:
            return Trial(candidate, Failed("transform", REFUSED))
        return Trial(candidate, Measured({self._objective: float(cost)}))


def charge(outcome: Outcome) -> Measured | None:
    """Give what was measured of a pass list; None where it is to blame for a failure.

    Raises:
        PlanishError: it could not be run.
    """
    if isinstance(outcome, Measured):
        return outcome
    if isinstance(outcome, Failed) and outcome.reason in OWN:
        return None
    # A full disk says nothing of the list, and what a shard lacks is never looked for again.
    raise PlanishError(f"a pass list could not be run: {outcome.reason}: {outcome.detail}")


def candidates_of(lists: Sequence[Passes]) -> tuple[Candidate, ...]:
    """Give lists as an executor takes them."""
    return tuple(map(candidate_of, lists))
