"""Every searcher passes the suite that plug-ins are held to."""

from collections.abc import Sequence

import pytest

from planish.core import Candidate, Objective, Searcher
from planish.search import make_searcher
from planish.search.annealing import Annealing
from planish.search.genetic import Genetic
from planish.search.guided import ModelGuided
from planish.search.minimization import Portfolio, RandomMinimize
from planish.search.nsga2 import Gevo, Nsga2
from planish.search.random_search import Exhaustive, Random
from planish.search.tree_search import BeamBFS, BeamDFS, Greedy1, Greedy2
from planish.testing.searchers import SearcherConformance, drive
from planish.testing.synthetic import RIDGE_HEIGHT, Lattice
from search.test_factory import OURS


class TestExhaustive(SearcherConformance):
    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return Exhaustive(space, objectives, seed)


class TestRandom(SearcherConformance):
    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return Random(space, objectives, seed)


class TestGreedy1(SearcherConformance):
    """It stops before the ridge, three turns of 5 % short of the optimum."""

    gap = 0.95**-3

    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return Greedy1(space, objectives, seed)


class TestGreedy2(SearcherConformance):
    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return Greedy2(space, objectives, seed)


class TestBeamDFS(SearcherConformance):
    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return BeamDFS(space, objectives, seed, width=2)


class TestBeamBFS(SearcherConformance):
    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return BeamBFS(space, objectives, seed, width=2)


class TestGenetic(SearcherConformance):
    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return Genetic(space, objectives, seed, population=10)


class TestAnnealing(SearcherConformance):
    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return Annealing(space, objectives, seed)


class TestRandomMinimize(SearcherConformance):
    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return RandomMinimize(space, objectives, seed, samples=20)


class TestPortfolio(SearcherConformance):
    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return Portfolio(space, objectives, seed, stage=10)


class TestNsga2(SearcherConformance):
    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return Nsga2(space, objectives, seed, population=10)


class TestGevo(SearcherConformance):
    """It changes no more than the paper's does, so that it is slow; the budget ends it where all fails."""

    repeats = True
    gap = 1.4

    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return Gevo(space, objectives, seed, population=20, elites=4, generations=4)


class TestModelGuided(SearcherConformance):
    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return ModelGuided(space, objectives, seed, batch=10, chains=16)


def test_the_ridge_is_lower_than_the_bowls_are_steep() -> None:
    """Else a beam of width 2 would not prefer the way over it, and the suite would promise too much."""
    assert RIDGE_HEIGHT < 1.1


@pytest.mark.parametrize("name", OURS)
def test_what_is_proposed_does_not_depend_on_the_batch(name: str) -> None:
    lattice = Lattice()

    def asked(batch: int) -> list[Candidate]:
        searcher = make_searcher(name, lattice, [lattice.objective], 0)
        return [trial.candidate for trial in drive(searcher, lattice.outcome, 90, batch)]

    assert asked(1) == asked(7) == asked(64)
