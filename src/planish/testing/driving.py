"""Driving a searcher as the tuning loop does, without workers or a store."""

import random
from collections.abc import Callable, Sequence

from planish.core import Candidate, Objective, Outcome, Searcher, Trial


def drive(
    searcher: Searcher, evaluate: Callable[[Candidate], Outcome], budget: int, batch: int = 8
) -> list[Trial]:
    """Ask and tell until the budget is spent or the search ends.

    Args:
        searcher: a new one.
        evaluate: what becomes of a candidate; asked once for each.
        budget: candidates to ask for; the last batch is cut to it.
        batch: candidates to ask for at once.

    Returns:
        The trials in the order they were asked.
    """
    trials: list[Trial] = []
    known: dict[str, Outcome] = {}
    while len(trials) < budget:
        asked = searcher.ask(min(batch, budget - len(trials)))
        if not asked:
            break
        known |= {c.hash: evaluate(c) for c in asked if c.hash not in known}
        told = [Trial(c, known[c.hash], index) for index, c in enumerate(asked, start=len(trials))]
        searcher.tell(told)
        trials += told
    return trials


def drive_disorderly(
    searcher: Searcher, evaluate: Callable[[Candidate], Outcome], budget: int, seed: int
) -> list[Candidate]:
    """Ask and tell as the loop does where answers come in any order, and as many are under way as may be.

    Args:
        searcher: a new one.
        evaluate: what becomes of a candidate.
        budget: candidates to ask for.
        seed: decides how many are asked for at once, and which answers come next.

    Returns:
        The candidates in the order they were asked.
    """
    dice, asked, untold = random.Random(seed), list[Candidate](), list[Candidate]()
    while len(asked) < budget:
        new = searcher.ask(dice.randint(1, min(30, budget - len(asked))))
        if not (new or untold):
            break
        asked += new
        untold += new
        dice.shuffle(untold)
        count = dice.randint(0 if new else 1, len(untold))
        told, untold = untold[:count], untold[count:]
        if told:
            searcher.tell([Trial(candidate, evaluate(candidate)) for candidate in told])
    return asked


def best_so_far(trials: Sequence[Trial], objective: Objective) -> list[float | None]:
    """Return the least cost up to each trial; None while all have failed."""
    best: float | None = None
    found: list[float | None] = []
    for trial in trials:
        cost = trial.cost(objective)
        best = cost if best is None or (cost is not None and cost < best) else best
        found.append(best)
    return found
