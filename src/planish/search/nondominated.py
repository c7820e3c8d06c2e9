"""Selection by several costs, with DEAP's non-dominated sorting (NSGA-II: Deb and others, 2002)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice

from planish.core import TargetError

try:
    from deap.base import Fitness
    from deap.tools.emo import assignCrowdingDist, sortNondominated
except ImportError as error:
    raise TargetError(
        "the searchers 'nsga2' and 'gevo' need DEAP", "Install it with: pip install 'planish[hlo]'"
    ) from error


@dataclass(frozen=True)
class Selected:
    """A vector of costs that was selected.

    Args:
        place: where it was among those to select from.
        crowding: its crowding distance on its front; infinite at the ends.
    """

    place: int
    crowding: float


def select(costs: Sequence[tuple[float, ...]], most: int) -> list[Selected]:
    """Select the best vectors: front after front, and of each front the least crowded first.

    Args:
        costs: finite vectors of one length; less is better.
        most: how many to select; there may be fewer.

    Returns:
        The selected ones, the best first.
    """
    individuals = [_Individual(place, vector) for place, vector in enumerate(costs)]
    # Takes O(objectives * n ** 2). Ends with the front that reaches `most`, which crowding cuts below.
    fronts: list[list[_Individual]] = sortNondominated(individuals, most)
    for front in fronts:
        assignCrowdingDist(front)
        # Greatest distance first, so that a cut front keeps its ends and its sparse parts.
        front.sort(key=_Individual.crowding, reverse=True)
    return [Selected(one.place, one.crowding()) for one in islice(chain.from_iterable(fronts), most)]


class _Individual:
    """What DEAP sorts; it reads the fitness alone."""

    def __init__(self, place: int, costs: tuple[float, ...]) -> None:
        self.place = place
        self.fitness = _Fitness(costs)

    def crowding(self) -> float:
        return self.fitness.crowding_dist


class _Fitness(Fitness):
    """DEAP's fitness of costs; DEAP adds the crowding distance to it."""

    crowding_dist: float

    def __init__(self, costs: tuple[float, ...]) -> None:
        # DEAP's constructor reads the weights, so they come first; -1 is to minimise.
        self.weights = (-1.0,) * len(costs)
        super().__init__(costs)
