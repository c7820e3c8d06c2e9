"""Exhaustive and random search."""

from collections import Counter
from collections.abc import Iterator

import pytest
from numpy.random import Generator

from planish.core import Candidate
from planish.search import Exhaustive, Random
from planish.testing.driving import drive
from planish.testing.lattice import Lattice, Set
from search.trail import TIME, Go, Trail


class Sampled:
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
