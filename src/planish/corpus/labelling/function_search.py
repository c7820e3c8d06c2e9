"""The search on one function: what planish does, and what the thesis does."""

from __future__ import annotations

import time
from dataclasses import dataclass

from planish.core import Candidate, Objective, Searcher
from planish.corpus.labelling.function_costs import FunctionCosts
from planish.corpus.labelling.ranking import Ranking
from planish.llvm.passes import PassSpace, candidate_of
from planish.search import Portfolio, RandomMinimise, Rounds, RoundSearcher
from planish.search.archive import Archive
from planish.search.minimise import minimise

_ASKED = 16


@dataclass(frozen=True)
class FunctionBudget:
    """When the search on a function ends.

    Args:
        evaluations: lists that are run, the minimisation at the end apart.
        seconds: of the processor, from the start of the search; with it, results depend on the machine.
        give_up: after so many evaluations the search ends if no list is better than -Oz; 0: never.
    """

    evaluations: int
    seconds: float = float("inf")
    give_up: int = 0

    def left(self, ranking: Ranking) -> int:
        """Count the lists that may still be run."""
        hopeless = self.give_up and not ranking.improved
        return min(self.evaluations, self.give_up if hopeless else self.evaluations) - ranking.evaluations


def search(
    costs: FunctionCosts,
    space: PassSpace,
    objective: Objective,
    budget: FunctionBudget,
    seed: int,
    searcher: str = "portfolio",
) -> None:
    """Search for lists that make one function small; their ranking keeps what was found.

    Args:
        costs: of lists on the function.
        space: where to search.
        objective: what is made less.
        budget: when to end.
        seed: of all randomness.
        searcher: "portfolio" (ours) or "random-minimise" (thesis 4.3.2).
    """
    objectives = (objective,)
    if searcher == "portfolio":
        made: Searcher = Portfolio(space, objectives, seed)
    else:
        made = RandomMinimise(space, objectives, seed, samples=budget.evaluations)
    drive(made, costs, budget)
    shorten(costs, space, objective)


def shorten(costs: FunctionCosts, space: PassSpace, objective: Objective) -> None:
    """Leave out of the best list what does not contribute."""
    best = costs.ranking.best()
    if best is not None:
        rounds = _shortened(space, candidate_of(best[1]))
        drive(RoundSearcher((objective,), rounds), costs, FunctionBudget(costs.ranking.evaluations + 1000))


def _shortened(space: PassSpace, best: Candidate) -> Rounds:
    ledger = Archive(space)
    yield from ledger.measure_new([best])
    yield from minimise(space, ledger, best)


def drive(searcher: Searcher, costs: FunctionCosts, budget: FunctionBudget) -> None:
    """Ask and tell until the budget or the search is at its end."""
    end = time.process_time() + budget.seconds
    while (left := budget.left(costs.ranking)) > 0 and time.process_time() < end:
        asked = searcher.ask(min(_ASKED, left))
        if not asked:
            return
        searcher.tell(costs.run(asked))
