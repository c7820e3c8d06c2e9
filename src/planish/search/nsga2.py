"""NSGA-II: evolution by all objectives at once, as in GEVO-ML (section 4).

Ranking by fronts and crowding, and tournaments, serve the searcher `gevo` too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Annotated

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanEvolve,
    CanSeed,
    Costs,
    Objective,
    SearchContext,
    bounds,
    crowding_distances,
    dominates,
    nondominated_sort,
    rng,
)
from planish.search.factory import Option
from planish.search.proposals import Visited, changed, new_from, new_sample
from planish.search.rounds import CostVectors, Recall, VectorRounds, VectorRoundSearcher, recording

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True)
class BoundedCosts:
    """Makes costs beyond a bound give way to all that are within it.

    GEVO-ML has no bound; without one our fronts have more members that answer at random than useful ones.

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


@dataclass(frozen=True)
class Individual:
    """A candidate that was measured.

    Args:
        candidate: that.
        costs: by all objectives; less is better.
        crowding: its crowding distance on its front, once it was ranked.
    """

    candidate: Candidate
    costs: Costs
    crowding: float = 0.0


def ranked(pool: Sequence[Individual], most: int) -> list[Individual]:
    """Select the best: front after front, and of each front the least crowded first.

    Args:
        pool: where to select from.
        most: how many to select; there may be fewer.

    Returns:
        The selected ones with their crowding, the best first.
    """
    found = list[Individual]()
    for front in nondominated_sort([each.costs for each in pool]):
        crowding = crowding_distances([pool[place].costs for place in front])
        # Greatest distance first, so that a front that is cut keeps its ends and its sparse parts.
        found += sorted(
            (replace(pool[p], crowding=c) for p, c in zip(front, crowding, strict=True)),
            key=lambda each: -each.crowding,
        )
        if len(found) >= most:
            break
    return found[:most]


def winner(individuals: Sequence[Individual], generator: Generator) -> Individual:
    """Hold a tournament of two: dominance decides, then the lesser crowding, then chance."""
    # Where only one is left to draw from, it wins against itself.
    places = generator.choice(len(individuals), min(2, len(individuals)), replace=False)
    one, other = individuals[places[0]], individuals[places[-1]]
    if dominates(one.costs, other.costs):
        return one
    if dominates(other.costs, one.costs) or other.crowding > one.crowding:
        return other
    return one


@dataclass(frozen=True)
class Rates:
    """Rates of crossover and mutation of a population.

    The rate of crossover is GEVO's. GEVO's mutation of 0.1 brings hardly anything new once the parents are
    alike; here each child has a change of its own. GEVO's population is 128 (256 in its experiments), for
    days of search; ours of 8 is for minutes: what was learnt counts after 8 measurements. On lattices after
    ZDT1 and ZDT2, with 5 or 12 knobs besides the first and 10 % of noise on the time, it finds (mean of six
    runs) 87 to 92 % of the front's hypervolume in 96 evaluations, 92 to 98 % in 300, and more than 99 % in
    1,200. A population of 24 finds 86 to 91 %, 89 to 96 % and 96 to 99.8 %.

    Args:
        population: candidates of each generation, and parents of the next one, from 2.
        crossover: the chance of two parents to be crossed.
        mutation: the chance of a child to be changed.
        generations: after so many the search ends; 0: none.
    """

    population: int
    crossover: float
    mutation: float
    generations: int


@dataclass(frozen=True)
class Breeding:
    """Makes the candidates of one generation.

    Args:
        space: of the candidates.
        visited: what was proposed before, and is not proposed again.
        parents: that were measured; of fewer than two nothing is bred, and candidates are sampled.
        rates: how often children are crossed and changed.
    """

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


TRIES = 4
"""Rounds of breeding for one generation: each fills the places of those that failed."""


class Nsga2(VectorRoundSearcher):
    """NSGA-II: evolution towards the Pareto front of all objectives (GEVO-ML)."""

    needs = CanEvolve

    def __init__(
        self,
        space: CanEvolve,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,
        *,
        population: Annotated[int, Option("candidates of each generation", least=2)] = 8,
        crossover: Annotated[float, Option("chance of two parents to be crossed", least=0, most=1)] = 0.8,
        mutation: Annotated[float, Option("chance of a child to be changed", least=0, most=1)] = 1.0,
        bound: Annotated[
            float, Option("times as bad as the baseline, where it ends; 0: none", least=0)
        ] = 2.0,
        generations: Annotated[int, Option("after which the search ends; 0: none", least=0)] = 0,
    ) -> None:
        recall, rates = Recall(), Rates(population, crossover, mutation, generations)
        worst = BoundedCosts(tuple(objectives), bound)
        first = space.seeds(context) if isinstance(space, CanSeed) else ()
        super().__init__(objectives, nsga2(space, seed, rates, worst, recall, first), recall)


def nsga2(
    space: CanEvolve,
    seed: int,
    rates: Rates,
    worst: BoundedCosts,
    recall: Recall,
    first: Sequence[Candidate] = (),
) -> VectorRounds:
    """Breed generation after generation, no candidate twice, until nothing new is found.

    The first generation begins with what is known to be good, and the rest of it is sampled, as is any that
    has fewer than two parents. What is known and does not fit is half of each later generation: what is
    bred beside it puts together what has been found good by then. The next parents are selected from the
    parents and their children by fronts and crowding (section 4.4), as in NSGA-II. The
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
        recall: what was proposed before.
        first: what is known to be good, the best first.
    """
    visited, parents, places = Visited(space, recall), list[Individual](), count()
    # With several objectives the unchanged program is measured beside what is asked for. Noted when they are
    # proposed, since the place of a proposal is how many were recorded before it.
    seeded = (each for each in first if each != space.start() and visited.add(each))
    baseline: Costs | None = None
    for _ in range(rates.generations) if rates.generations else count():
        children = list[Individual]()
        known = list(islice(seeded, rates.population // 2 if parents else rates.population))
        for _ in range(TRIES):
            breeding, bred = Breeding(space, visited, parents, rates), list[Candidate]()
            most = rates.population - len(children) - len(known)
            costs = yield recording(chain(known, breeding.breed(seed, places, most)), bred)
            known = []
            if not bred:
                return
            baseline = baseline or _unasked(bred, costs)
            children += _measured(bred, costs, baseline, worst)
            if len(children) >= rates.population:
                break
        parents = ranked(parents + children, rates.population)


def _unasked(generation: Sequence[Candidate], costs: CostVectors) -> Costs | None:
    """Return the costs of what was reported and not asked for: the baseline."""
    asked = {candidate.hash for candidate in generation}
    return next((vector for name, vector in costs.items() if name not in asked), None)


def _measured(
    generation: Sequence[Candidate], costs: CostVectors, baseline: Costs | None, worst: BoundedCosts
) -> list[Individual]:
    pairs = ((candidate, costs.get(candidate.hash)) for candidate in generation)
    known = ((candidate, vector) for candidate, vector in pairs if vector is not None)
    return [Individual(candidate, worst.bounded(vector, baseline)) for candidate, vector in known]
