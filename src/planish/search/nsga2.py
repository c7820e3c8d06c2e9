"""NSGA-II: evolution by all objectives at once, as in GEVO-ML (section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Annotated, ClassVar

from planish.core import (
    UNTAUGHT,
    Candidate,
    CanEvolve,
    CanSeed,
    Costs,
    Objective,
    SearchContext,
    bounds,
    rng,
)
from planish.search.options import Option
from planish.search.recall import Recall
from planish.search.rounds import CostVectors, VectorRounds, VectorRoundSearcher, noted
from planish.search.sampling import changed, new_from, new_sample
from planish.search.tournament import Individual, Select, ranked, winner
from planish.search.visited import Visited

if TYPE_CHECKING:
    from numpy.random import Generator


TRIES = 4
"""Rounds of breeding for one generation: each fills the places of those that failed."""


class Nsga2(VectorRoundSearcher):
    """NSGA-II: evolution towards the Pareto front of all objectives (GEVO-ML)."""

    needs = CanEvolve
    library: ClassVar[str | None] = "deap"

    def __init__(
        self,
        space: CanEvolve,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = UNTAUGHT,
        *,
        population: Annotated[int, Option("candidates of each generation", least=2)] = 24,
        elite: Annotated[int, Option("best parents that compete with their children", least=0)] = 16,
        crossover: Annotated[float, Option("chance of two parents to be crossed", least=0, most=1)] = 0.8,
        mutation: Annotated[float, Option("chance of a child to be changed", least=0, most=1)] = 1.0,
        bound: Annotated[
            float, Option("times as bad as the baseline, where it ends; 0: none", least=0)
        ] = 2.0,
        generations: Annotated[int, Option("after which the search ends; 0: none", least=0)] = 0,
    ) -> None:
        from planish.search.nondominated import select  # without DEAP there is no such searcher

        recall, rates = Recall(), Rates(population, elite, crossover, mutation, generations)
        worst = _Worst(tuple(objectives), bound)
        first = space.seeds(context) if isinstance(space, CanSeed) else ()
        super().__init__(objectives, nsga2(space, seed, rates, worst, select, recall, first), recall)


@dataclass(frozen=True)
class Rates:
    """How a population is bred.

    The elite's default in `Nsga2` is the paper's, the rate of crossover is GEVO's. GEVO's mutation of 0.1
    brings hardly anything new once the parents are alike; here each child has a change of its own. GEVO's
    population is 128 (256 in its experiments), for days of search; ours of 24 is for hours. With that rate,
    on lattices after ZDT1 to ZDT3, with 5 or 12 knobs besides the first and 10 % of noise on the time, it
    finds (mean of four runs) 84 to 96 % of the front's hypervolume in 300 evaluations, 96 to 100 % in 1,200,
    and more than 99.5 % in 5,000. Those of 16 and 32 find nearly as much; 128 finds 84 to 97 % in 1,200,
    without noise.

    Args:
        population: candidates of each generation, from 2.
        elite: how many of the parents compete with their children to be the next parents.
        crossover: the chance of two parents to be crossed.
        mutation: the chance of a child to be changed.
        generations: after so many the search ends; 0: none.
    """

    population: int
    elite: int
    crossover: float
    mutation: float
    generations: int


@dataclass(frozen=True)
class _Worst:
    """Up to where costs are of use; what is beyond gives way to all that is not.

    The paper has no bound; without one our fronts have more members that answer at random than useful ones.

    Args:
        objectives: of the task.
        times: as bad as the baseline, where it is known (`planish.core.bounds`); up to 1: there is no end.
    """

    objectives: Sequence[Objective]
    times: float

    def bounded(self, costs: Costs, baseline: Costs | None) -> Costs:
        """Make costs beyond the bound worse than all within it, the worse the farther (Deb's constraints)."""
        if baseline is None or self.times <= 1:
            return costs
        worst = bounds(baseline, self.objectives, self.times)
        # A baseline of 0 has no times as bad: any span will do, but not 0, which is divided by.
        spans = [far - near or 1.0 for far, near in zip(worst, baseline, strict=True)]
        # Every objective exceeds by the same share: such vectors are ordered among themselves, and each is
        # dominated by all within the bound.
        beyond = sum(max(0.0, (c - far) / span) for c, far, span in zip(costs, worst, spans, strict=True))
        return tuple(far + beyond * span for far, span in zip(worst, spans, strict=True)) if beyond else costs


def nsga2(
    space: CanEvolve,
    seed: int,
    rates: Rates,
    worst: _Worst,
    select: Select,
    recall: Recall,
    first: Sequence[Candidate] = (),
) -> VectorRounds:
    """Breed generation after generation, no candidate twice, until nothing new is found.

    The first generation begins with what is known to be good; the rest of it is sampled, as is any that has
    fewer than two parents. The next parents are selected from the elite and the children by fronts and
    crowding (section 4.4). With an elite as large as the population this is NSGA-II as first published. The
    unchanged program is no parent, as in the paper: with it, patches of a small training step reached a
    hypervolume of 1.92 instead of 1.88 in 150 evaluations (mean of four runs, which differ by 0.3), which is
    no difference.

    Where a child fails, another one is bred in its place before the next generation (section 4.1), but not
    for ever: parents all of whose children fail must not hold up the search. Unlike in the paper, a child
    that is not new is changed until it is.

    Args:
        space: where to search.
        seed: the i-th candidate is made with `rng(seed, i)`, but two that are crossed with the first's.
        rates: how a population is bred.
        worst: up to where costs are of use.
        select: selects so many of some costs, the best first.
        recall: what was proposed before.
        first: what is known to be good; all of it, though the first generation is larger then.
    """
    visited, parents, places = Visited(space, recall), list[Individual](), count()
    # With several objectives the unchanged program is measured beside what is asked for.
    sown = [each for each in first if each != space.start() and visited.add(each)]
    baseline: Costs | None = None
    for _ in range(rates.generations) if rates.generations else count():
        children = list[Individual]()
        for _ in range(TRIES):
            breeding, bred = _Breeding(space, visited, parents, rates), list[Candidate]()
            most = max(0, rates.population - len(children) - len(sown))
            costs = yield noted(chain(sown, breeding.breed(seed, places, most)), bred)
            sown = []
            if not bred:
                return
            baseline = baseline or _unasked(bred, costs)
            children += _measured(bred, costs, baseline, worst)
            if len(children) >= rates.population:
                break
        # Parents are in the order of `select`, the best first, so these are its best.
        pool = parents[: rates.elite] + children
        parents = ranked(pool, rates.population, select)


def _unasked(generation: Sequence[Candidate], costs: CostVectors) -> Costs | None:
    """Give the costs of what was told and not asked for: the baseline."""
    asked = {candidate.hash for candidate in generation}
    return next((vector for told, vector in costs.items() if told not in asked), None)


def _measured(
    generation: Sequence[Candidate], costs: CostVectors, baseline: Costs | None, worst: _Worst
) -> list[Individual]:
    pairs = ((candidate, costs.get(candidate.hash)) for candidate in generation)
    known = ((candidate, vector) for candidate, vector in pairs if vector is not None)
    return [Individual(candidate, worst.bounded(vector, baseline)) for candidate, vector in known]


@dataclass(frozen=True)
class _Breeding:
    """Makes the candidates of one generation."""

    space: CanEvolve
    visited: Visited
    parents: Sequence[Individual]
    rates: Rates

    def breed(self, seed: int, places: Iterator[int], most: int) -> Iterator[Candidate]:
        """Make so many new candidates, fewer where none is new any more."""
        generators = (rng(seed, place) for place in places)
        new = self._children(generators) if len(self.parents) > 1 else self._samples(generators)
        for candidate in islice(new, most):
            if candidate is None:
                return
            yield candidate

    def _samples(self, generators: Iterator[Generator]) -> Iterator[Candidate | None]:
        for generator in generators:
            yield self.visited.recalled() or new_sample(self.space, self.visited, generator)

    def _children(self, generators: Iterator[Generator]) -> Iterator[Candidate | None]:
        # One iterator twice: successive generators in pairs, one for each child.
        for pair in zip(generators, generators, strict=False):
            couple = cache(partial(self._couple, pair[0]))  # known children need none
            for member, generator in enumerate(pair):
                yield self.visited.recalled() or self._child(couple()[member], generator)

    def _child(self, child: Candidate, generator: Generator) -> Candidate | None:
        times = int(generator.random() < self.rates.mutation)
        return new_from(self.space, self.visited, changed(self.space, child, times, generator), generator)

    def _couple(self, generator: Generator) -> tuple[Candidate, Candidate]:
        """Cross two parents, or give them as they are; the second is drawn from all but the first."""
        one = winner(self.parents, generator)
        # A parent that won twice would be crossed with itself, which gives two copies of it.
        other = winner([parent for parent in self.parents if parent is not one], generator)
        if generator.random() < self.rates.crossover:
            return self.space.crossover(one.candidate, other.candidate, generator)
        return one.candidate, other.candidate
