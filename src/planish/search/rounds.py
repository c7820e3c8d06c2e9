"""A searcher is written as a generator of rounds; this turns one into ask and tell."""

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import islice
from typing import ClassVar

from planish.core import Candidate, Objective, Space, Trial

Costs = Mapping[str, float | None]
"""Candidate hash to its cost by the first objective (less is better); None where it failed."""

Rounds = Generator[Iterable[Candidate], Costs, None]
"""Yields rounds of candidates that do not depend on each other; is sent the costs of the last one."""


class RoundSearcher:
    """Asks and tells on behalf of a generator of rounds.

    A round is handed out in pieces of any size, and the generator goes on when all of it has been
    told. So the candidates and their order never depend on how many are asked for at once, and a
    run cut short is the beginning of the longer run.

    Args:
        objectives: at least one; the first leads.
        rounds: the search; a round may be lazy, and an empty one is passed over.
    """

    needs: ClassVar[type] = Space

    def __init__(self, objectives: Sequence[Objective], rounds: Rounds) -> None:
        self._objective = objectives[0]
        self._rounds = rounds
        self._round = iter(next(rounds, ()))
        self._costs: dict[str, float | None] = {}
        self._waiting: set[str] = set()

    def ask(self, n: int) -> Sequence[Candidate]:
        """Propose up to n candidates; fewer at the end of a round, none at the end of the search.

        Raises:
            ValueError: n is not positive.
            RuntimeError: the round is used up, and not all of it has been told.
        """
        if n < 1:
            raise ValueError(f"ask takes a positive number, not {n}")
        while not (batch := list(islice(self._round, n))):
            if self._waiting:
                raise RuntimeError(f"asked again before {len(self._waiting)} candidates were told")
            if not self._next_round():
                return []
        self._waiting.update(candidate.hash for candidate in batch)
        return batch

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn what became of the candidates; a value that is not finite counts as a failure."""
        for trial in trials:
            cost = trial.cost(self._objective)
            self._costs[trial.candidate.hash] = cost if cost is not None and math.isfinite(cost) else None
            self._waiting.discard(trial.candidate.hash)

    def _next_round(self) -> bool:
        costs, self._costs = self._costs, {}
        try:
            self._round = iter(self._rounds.send(costs))
        except StopIteration:
            return False
        return True
