"""Search that changes one part of a program at a time, the costliest first."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Annotated

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanVaryParts,
    Measured,
    Objective,
    SearchContext,
    Trial,
    rng,
)
from planish.search.factory import Option
from planish.search.rounds import PATIENCE, TrialRounds, TrialRoundSearcher, Visited, measured_of

if TYPE_CHECKING:
    from numpy.random import Generator as Draws

AGAIN = 0.5
"""The chance that a part is varied, and not one of the cheaper ones: each has half of what is left."""


class HottestFirst(TrialRoundSearcher):
    """Changes one part of a program at a time, the costliest first, and keeps what gains."""

    needs = CanVaryParts

    def __init__(
        self,
        space: CanVaryParts,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,
        *,
        gain: Annotated[float, Option("share that a change has to gain", least=0, most=1)] = 0.01,
        width: Annotated[int, Option("random changes of a part that are measured together", least=1)] = 4,
    ) -> None:
        super().__init__(_Search(space, objectives[0], seed, context, gain, width).rounds())


@dataclass
class _Search:
    """The search.

    Args:
        space: what is searched.
        objective: the leading one.
        seed: each round is drawn by the seed and its number.
        context: what was learned before.
        gain: the share that a change has to gain, to be kept.
        width: random changes in a round.
    """

    space: CanVaryParts
    objective: Objective
    seed: int
    context: SearchContext
    gain: float
    width: int

    def rounds(self) -> TrialRounds:
        """Measure the start, then what is suggested for each part, then random changes."""
        start = self.space.start()
        measured = measured_of((yield [start]).get(start.hash))
        parts = self.space.parts(measured.parts) if measured else ()
        if measured is None or not parts:
            return
        best, visited = (start, self._cost(measured)), Visited(self.space)
        visited.add(start)
        for part in parts:
            suggested = self.space.suggestions(best[0], part, self.context)
            best = yield from self._better(best, [each for each in suggested if visited.add(each)])
        for number in count():
            draws = rng(self.seed, number)
            part = next((each for each in parts if draws.random() < AGAIN), parts[0])
            changed = list(self._changed(best[0], part, draws, visited))
            if not changed:
                return
            best = yield from self._better(best, changed)

    def _changed(
        self, candidate: Candidate, part: str, draws: Draws, visited: Visited
    ) -> Iterable[Candidate]:
        """Draw changes that are new; none where the part seems used up."""
        for _ in range(self.width):
            drawn = (self.space.vary(candidate, part, draws) for _ in range(PATIENCE))
            new = next((each for each in drawn if visited.add(each)), None)
            if new is None:
                return
            yield new

    def _better(
        self, best: tuple[Candidate, float], candidates: Sequence[Candidate]
    ) -> Generator[Iterable[Candidate], Mapping[str, Trial | None], tuple[Candidate, float]]:
        """Measure candidates; return the best of them with its cost if it gains enough, else the old one."""
        found = yield candidates
        measured = (measured_of(found.get(candidate.hash)) for candidate in candidates)
        costs = [(self._cost(each), number) for number, each in enumerate(measured) if each]
        cost, number = min(costs, default=(best[1], -1))
        # Costs of objectives to be raised are negative.
        gains = best[1] - cost >= self.gain * abs(best[1]) and cost < best[1]
        return (candidates[number], cost) if gains else best

    def _cost(self, measured: Measured) -> float:
        return self.objective.cost(measured.values[self.objective.name])
