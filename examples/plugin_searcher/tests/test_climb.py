"""The searcher does what every searcher must, and what it is called after."""

from collections.abc import Sequence

from planish.core import Objective, Searcher
from planish.search import make_searcher
from planish.testing.searchers import SearcherConformance, drive
from planish.testing.synthetic import Lattice
from planish_climb import Climb


class TestClimb(SearcherConformance):
    """It visits a small space whole, so it finds the best: `gap` stays at 1."""

    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return Climb(space, objectives, seed)


def test_planish_finds_it_by_name() -> None:
    lattice = Lattice()
    searcher = make_searcher("climb", lattice, [lattice.objective], 0, {"tries": 4})
    assert isinstance(searcher, Climb)


def test_it_goes_up_before_it_looks_elsewhere() -> None:
    lattice = Lattice((40, 3), ridge=0)
    trials = drive(Climb(lattice, [lattice.objective], 1, tries=4), lattice.outcome, 60)
    costs = [cost for trial in trials if (cost := trial.cost(lattice.objective)) is not None]
    assert min(costs[30:]) < min(costs[:10])
