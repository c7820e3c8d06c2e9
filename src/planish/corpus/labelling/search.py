"""The search on one function: what planish does, and what the thesis does."""

from __future__ import annotations

import time
from dataclasses import dataclass

from planish.core import Candidate, Failed, Measured, Objective, Searcher, Trial
from planish.corpus.labelling.examiner import Examiner
from planish.llvm.passes import PassSpace, candidate_of, passes_of
from planish.search import Portfolio, RandomMinimise, Rounds, RoundSearcher
from planish.search.archive import Archive
from planish.search.minimise import minimise

_ASKED = 16


@dataclass(frozen=True)
class Budget:
    """When the search on a function ends.

    Args:
        evaluations: lists that are run, the minimisation at the end apart.
        seconds: of the processor, from the start of the search; with it, results depend on the machine.
        give_up: after so many evaluations the search ends if no list is better than -Oz; 0: never.
    """

    evaluations: int
    seconds: float = float("inf")
    give_up: int = 0

    def left(self, examiner: Examiner) -> int:
        """Count the lists that may still be run."""
        hopeless = self.give_up and not examiner.improved
        return min(self.evaluations, self.give_up if hopeless else self.evaluations) - examiner.evaluations


def search(
    examiner: Examiner,
    space: PassSpace,
    objective: Objective,
    budget: Budget,
    seed: int,
    searcher: str = "portfolio",
) -> None:
    """Search for lists that make one function small; the examiner keeps what was found.

    Args:
        examiner: of the function.
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
    drive(made, examiner, objective, budget)
    shorten(examiner, space, objective)


def shorten(examiner: Examiner, space: PassSpace, objective: Objective) -> None:
    """Leave out of the best list what does not contribute."""
    best = examiner.best()
    if best is not None:
        rounds = _shortened(space, candidate_of(best[1]))
        drive(RoundSearcher((objective,), rounds), examiner, objective, Budget(examiner.evaluations + 1000))


def _shortened(space: PassSpace, best: Candidate) -> Rounds:
    ledger = Archive(space)
    yield from ledger.measure_new([best])
    yield from minimise(space, ledger, best)


def drive(searcher: Searcher, examiner: Examiner, objective: Objective, budget: Budget) -> None:
    """Ask and tell until the budget or the search is at its end."""
    end = time.process_time() + budget.seconds
    while (left := budget.left(examiner)) > 0 and time.process_time() < end:
        asked = searcher.ask(min(_ASKED, left))
        if not asked:
            return
        searcher.tell([_trial(candidate, examiner, objective) for candidate in asked])


def _trial(candidate: Candidate, examiner: Examiner, objective: Objective) -> Trial:
    cost = examiner.cost(passes_of(candidate))
    if cost is None:
        return Trial(candidate, Failed("transform", "refused"))
    return Trial(candidate, Measured({objective.name: float(cost)}))
