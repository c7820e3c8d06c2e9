"""A space that finds nothing legal where it looks does not end a search."""

import pytest
from numpy.random import Generator

from planish.core import Candidate, CanEvolve, Objective, ScheduleError, Searcher, rng
from planish.search import make_searcher
from planish.search.proposals import TRIES, Visited, changed, neighbour, new_sample, sample
from planish.testing.driving import drive
from planish.testing.lattice import Lattice
from search.tradeoff import BOTH, Tradeoff


class Steep(Tradeoff):
    """Wherever the first knob is even, no neighbour is found; every so manieth sample is not found either.

    Args:
        period: of the samples that are not found; 1 for all.
    """

    def __init__(self, period: int) -> None:
        super().__init__(0.5)
        self.period = period
        self.samples = self.dead_ends = 0

    def sample(self, rng: Generator) -> Candidate:
        self.samples += 1
        if self.samples % self.period == 0:
            raise ScheduleError("nothing here")
        return super().sample(rng)

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        if self.position(candidate)[0] % 2 == 0:
            self.dead_ends += 1
            raise ScheduleError("nothing here")
        return super().mutate(candidate, rng)


def searcher(name: str, space: CanEvolve, objectives: tuple[Objective, ...] = BOTH) -> Searcher:
    options = {"population": "12"} if name in ("nsga2", "genetic") else {}
    return make_searcher(name, space, objectives, 3, options)


@pytest.mark.parametrize("name", ["nsga2", "genetic", "annealing", "random"])
def test_a_search_goes_on_where_nothing_is_found(name: str) -> None:
    space = Steep(period=3)
    trials = drive(searcher(name, space), space.outcome, 300)
    assert len({trial.candidate for trial in trials}) == 300
    assert space.dead_ends > 0 or name == "random"
    assert space.samples > 300 or name != "random"


@pytest.mark.parametrize("name", ["nsga2", "genetic", "annealing", "random"])
def test_a_search_ends_where_nothing_is_ever_found(name: str) -> None:
    space = Steep(period=1)
    # The seeds are all that there is; NSGA-II leaves out the unchanged program among them.
    known = {"genetic": list(space.seeds()), "nsga2": [one for one in space.seeds() if one.steps]}
    assert list(searcher(name, space).ask(5)) == known.get(name, [])
    assert space.samples <= 4 * TRIES


@pytest.mark.parametrize("name", ["nsga2", "genetic", "annealing", "random"])
def test_dead_ends_do_not_change_that_a_short_run_begins_a_longer_one(name: str) -> None:
    def asked(budget: int, batch: int) -> list[Candidate]:
        space = Steep(period=10**9)
        return [t.candidate for t in drive(searcher(name, space), space.outcome, budget, batch)]

    assert asked(40, 5) == asked(90, 16)[:40]


def test_a_dead_end_is_left_by_a_sample() -> None:
    space, end = Steep(period=2), Lattice((30,) + (10,) * 5).at((2, 9, 9, 9, 9, 9))
    found = neighbour(space, end, rng(1))
    assert found == super(Steep, space).sample(rng(1))
    assert space.dead_ends == 1


def test_what_has_nowhere_to_go_stays() -> None:
    space = Steep(period=1)
    end = space.at((2, 0, 0, 0, 0, 0))
    assert sample(space, rng(1)) is None
    assert changed(space, end, 2, rng(1)) == end
    assert new_sample(space, Visited(space), rng(1)) is None
