"""What a search has measured, and the best few of it."""

from collections.abc import Iterable, Sequence

from planish.core import Candidate, Space
from planish.search.recall import Recall
from planish.search.rounds import Rounds, noted
from planish.search.visited import Visited


class Archive:
    """Candidates with their costs; none is measured twice.

    Equal costs mostly mean equal programs. So of candidates of one cost only the shortest is kept among the
    best (of equally short ones the earliest): else one program's many names would crowd out the others.

    Args:
        space: what the candidates belong to; it tells which of them are the same.
        few: how many of the best are kept, from 1.
        recall: what was proposed before.
    """

    def __init__(self, space: Space, few: int = 1, recall: Recall | None = None) -> None:
        self.visited = Visited(space, recall)
        self._few = few
        self._costs: dict[str, float | None] = {}
        self._best: list[tuple[float, Candidate]] = []

    def cost(self, candidate: Candidate) -> float | None:
        """Give what a candidate cost; None where it failed or was never measured."""
        return self._costs.get(self.visited.name(candidate))

    def best(self) -> Sequence[Candidate]:
        """List the best few, the least cost first; fewer, or none, while no more were measured."""
        return [candidate for _, candidate in self._best]

    def measure_new(self, candidates: Iterable[Candidate]) -> Rounds:
        """Make one round of those candidates that were never proposed."""
        yield from self.measure(filter(self.visited.add, candidates))

    def measure(self, candidates: Iterable[Candidate]) -> Rounds:
        """Make one round of candidates, each of which has just been added to `visited`."""
        asked: list[Candidate] = []
        # A round may be lazy, and the run may end within it: only what was drawn can have been told.
        costs = yield noted(candidates, asked)
        for candidate in asked:
            cost = self._costs[self.visited.name(candidate)] = costs.get(candidate.hash)
            if cost is not None:
                self._rank(cost, candidate)

    def _rank(self, cost: float, candidate: Candidate) -> None:
        # Exactly equal, which counts and sizes of equal programs are; times practically never are.
        twin = next((i for i, (known, _) in enumerate(self._best) if known == cost), None)
        if twin is None:
            self._best.append((cost, candidate))
            self._best = sorted(self._best, key=lambda pair: pair[0])[: self._few]
        elif len(candidate.steps) < len(self._best[twin][1].steps):
            self._best[twin] = (cost, candidate)
