"""The evolution of GEVO-ML as it was published (section 4)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Annotated

from planish.core import EMPTY_CONTEXT, Candidate, CanEvolve, Objective, PlanishError, SearchContext, rng
from planish.search.factory import Option
from planish.search.nsga2 import Individual, ranked, winner
from planish.search.proposals import neighbour
from planish.search.rounds import CostVectors, VectorRounds, VectorRoundSearcher, recording

if TYPE_CHECKING:
    from numpy.random import Generator as Random

FIRST_CHANGES = 3
"""Mutations of each individual of the first generation (section 4)."""

_Draw = Callable[[], Sequence[Candidate]]


class Gevo(VectorRoundSearcher):
    """GEVO-ML's evolution as published: what fails is drawn again, the best are copied unchanged."""

    needs = CanEvolve

    def __init__(
        self,
        space: CanEvolve,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,  # noqa: ARG002
        *,
        population: Annotated[int, Option("individuals of each generation", least=2)] = 128,
        elites: Annotated[int, Option("of them that are copied unchanged", least=0)] = 16,
        crossover: Annotated[float, Option("chance of two to be crossed", least=0, most=1)] = 0.8,
        mutation: Annotated[float, Option("chance of a child to be changed", least=0, most=1)] = 0.1,
        generations: Annotated[int, Option("after which the search ends; 0: none", least=0)] = 0,
    ) -> None:
        if elites >= population:
            what = f"of a population of {population}, {elites} copied unchanged leave no place for others"
            raise PlanishError(what, "Give --set population=N a larger one, or --set elites=N a smaller.")
        draws = (rng(seed, place) for place in count())
        breeding = _Breeding(space, draws, population, elites, crossover, mutation)
        super().__init__(objectives, breeding.rounds(generations))


@dataclass(frozen=True)
class _Breeding:
    """Breeds generations.

    The paper names 16 elites and three first mutations; the rates and the population are those of GEVO's
    program, on which it builds.
    """

    space: CanEvolve
    draws: Iterator[Random]
    population: int
    elites: int
    crossover: float
    mutation: float

    def rounds(self, generations: int) -> VectorRounds:
        """Breed so many generations; 0: without an end."""
        start = Individual(self.space.start(), ())
        individuals: Sequence[Individual] = [start] * self.population
        for _ in range(FIRST_CHANGES):
            individuals = yield from self._changed(individuals, 1.0)
        individuals = self._ranked(individuals)
        for _ in range(1, generations) if generations else count():
            children = yield from self._changed((yield from self._crossed(individuals)), self.mutation)
            individuals = self._next(individuals, children)

    def _next(self, individuals: Sequence[Individual], children: Sequence[Individual]) -> list[Individual]:
        """Copy the elites, and choose the others among the children by tournaments (section 4.4)."""
        rivals = self._ranked(children)
        others = (winner(rivals, next(self.draws)) for _ in range(self.population - self.elites))
        return self._ranked([*individuals[: self.elites], *others])

    def _ranked(self, individuals: Sequence[Individual]) -> list[Individual]:
        return ranked(individuals, len(individuals))

    def _crossed(
        self, individuals: Sequence[Individual]
    ) -> Generator[Iterable[Candidate], CostVectors, list[Individual]]:
        """Cross couples drawn at random (section 4.2); some stay as they are."""
        couples = -(-self.population // 2)
        drawn = [partial(self._couple, individuals) for _ in range(couples)]
        crossed = yield from _until_measured(drawn)
        return [child for couple in crossed for child in couple][: self.population]

    def _couple(self, individuals: Sequence[Individual]) -> tuple[Candidate, ...]:
        draw = next(self.draws)
        places = draw.choice(len(individuals), 2, replace=False)
        one, other = (individuals[int(place)].candidate for place in places)
        return self.space.crossover(one, other, draw) if draw.random() < self.crossover else (one, other)

    def _changed(
        self, individuals: Sequence[Individual], chance: float
    ) -> Generator[Iterable[Candidate], CostVectors, list[Individual]]:
        """Change some, each until it can be measured (section 4.1)."""
        places = [i for i in range(len(individuals)) if next(self.draws).random() < chance]
        changed = yield from _until_measured(
            [partial(self._mutant, individuals[i].candidate) for i in places]
        )
        mutants = dict(zip(places, changed, strict=True))
        return [each for i, one in enumerate(individuals) for each in mutants.get(i, [one])]

    def _mutant(self, candidate: Candidate) -> tuple[Candidate, ...]:
        found = neighbour(self.space, candidate, next(self.draws))
        return (candidate if found is None else found,)


def _until_measured(
    drawn: Sequence[_Draw],
) -> Generator[Iterable[Candidate], CostVectors, list[Sequence[Individual]]]:
    """Draw from each, and again as long as anything of what it gives fails.

    Who gives nothing else than what fails holds the search up until its budget is spent, as in the paper.
    """
    found: dict[int, Sequence[Individual]] = {}
    while waiting := [place for place in range(len(drawn)) if place not in found]:
        given = list[Sequence[Candidate]]()
        costs = yield chain.from_iterable(recording((drawn[place]() for place in waiting), given))
        for place, each in zip(waiting, given, strict=True):
            measured = [Individual(one, known) for one in each if (known := costs.get(one.hash)) is not None]
            if len(measured) == len(each):
                found[place] = measured
    return [found[place] for place in range(len(drawn))]
