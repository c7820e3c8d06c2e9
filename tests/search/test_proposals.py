"""Proposals: exhaustive and random search, sampling, and what was proposed before."""

from collections import Counter
from collections.abc import Iterator

import pytest
from numpy.random import Generator

from planish.core import Candidate, CanEvolve, Objective, ScheduleError, Searcher, Space, rng
from planish.search import make_searcher
from planish.search.random_search import Exhaustive, Random
from planish.search.rounds import TRIES, Visited, changed, neighbor, new_sample, sample
from planish.testing.searchers import drive
from planish.testing.synthetic import Lattice, Set
from search.spaces import BOTH, TIME, Go, Tradeoff, Trail


class Sampled(Space):
    """A space that is sampled and not listed."""

    def __init__(self, size: int) -> None:
        self.size_ = size

    def start(self) -> Candidate:
        return Candidate()

    def sample(self, rng: Generator) -> Candidate:
        return Candidate((Set(0, int(rng.integers(self.size_))),))


class SampledTrail(Trail):
    """A trail whose samples are random walks of three steps."""

    def sample(self, rng: Generator) -> Candidate:
        candidate = self.start()
        for _ in range(3):
            steps = self.steps(candidate)
            candidate = self.extend(candidate, steps[int(rng.integers(len(steps)))])
        return candidate


class Vast(Lattice):
    """A lattice that says that it is too large to list, and breaks when it is listed."""

    def size(self) -> int:
        return 10**9

    def candidates(self) -> Iterator[Candidate]:
        raise AssertionError("a vast space was listed")


def _asked(searcher: Random | Exhaustive, space: Lattice, budget: int = 1000) -> list[Candidate]:
    return [trial.candidate for trial in drive(searcher, space.outcome, budget)]


@pytest.mark.parametrize("seed", [0, 5])
def test_exhaustive_goes_in_the_spaces_order(seed: int) -> None:
    lattice = Lattice()
    assert _asked(Exhaustive(lattice, [TIME], seed), lattice) == list(lattice.candidates())


def test_random_shuffles_a_small_space() -> None:
    lattice = Lattice()
    first, second = (_asked(Random(lattice, [TIME], seed), lattice) for seed in (0, 1))
    assert set(first) == set(second) == set(lattice.candidates())
    assert len(first) == len(second) == lattice.size()
    assert first != second != list(lattice.candidates())


def test_random_samples_a_large_space_without_replacement() -> None:
    lattice = Vast()
    asked = _asked(Random(lattice, [TIME], 0), lattice, 96)
    assert len(asked) == len(set(asked)) == 96


def test_a_sampled_space_is_used_up_after_many_repeats() -> None:
    searcher = Random(Sampled(50), [TIME], 3)
    assert {str(c) for c in searcher.ask(1000)} == {f"Set(knob=0, value={v})" for v in range(50)}


def test_random_draws_all_alike() -> None:
    """Chi-squared over the first draw of 2,000 seeds among 10: its 99.9 % quantile at 9 degrees is 27.9."""
    draws = Counter(Random(Sampled(10), [TIME], seed).ask(1)[0] for seed in range(2000))
    assert len(draws) == 10
    assert sum((drawn - 200) ** 2 / 200 for drawn in draws.values()) < 27.9


def test_random_asks_once_for_each_state() -> None:
    """Twelve walks of three steps end in three nodes."""
    space = SampledTrail([[1, 2], [0, 2], [0, 1]], {})
    asked = Random(space, [TIME], 0).ask(1000)
    assert {space.node(candidate) for candidate in asked} == {0, 1, 2}
    assert len(asked) == 3
    assert all(len(candidate.steps) == 3 and isinstance(candidate.steps[0], Go) for candidate in asked)


class Steep(Tradeoff):
    """Wherever the first knob is even, no neighbor is found; every so manieth sample is not found either.

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
    found = neighbor(space, end, rng(1))
    assert found == super(Steep, space).sample(rng(1))
    assert space.dead_ends == 1


def test_what_has_nowhere_to_go_stays() -> None:
    space = Steep(period=1)
    end = space.at((2, 0, 0, 0, 0, 0))
    assert sample(space, rng(1)) is None
    assert changed(space, end, 2, rng(1)) == end
    assert new_sample(space, Visited(space), rng(1)) is None


ONE, TWO = Candidate((Go(1),)), Candidate((Go(1), Go(1)))


class Unnamed(Space):
    def start(self) -> Candidate:
        return Candidate()


class Named(Unnamed):
    """A space that is not walked, and still knows which candidates are the same."""

    def state_key(self, candidate: Candidate) -> str:
        return str(set(candidate.steps))


def test_candidates_of_one_state_are_one() -> None:
    visited = Visited(Named())
    assert [visited.add(candidate) for candidate in (ONE, TWO, Candidate())] == [True, False, True]


def test_without_states_each_candidate_is_its_own() -> None:
    visited = Visited(Unnamed())
    assert [visited.add(candidate) for candidate in (ONE, TWO, ONE)] == [True, True, False]


def test_changes_that_leave_the_state_do_not_pile_up() -> None:
    visited, lengths = Visited(Named()), list[int]()
    visited.add(ONE)

    def change(candidate: Candidate) -> Candidate:
        lengths.append(len(candidate.steps))
        return candidate.then(Go(2 if len(lengths) == 5 else 1))

    assert visited.make_unique(ONE, change) == ONE.then(Go(2))
    assert lengths == [1] * 5
