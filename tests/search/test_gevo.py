"""GEVO-ML's evolution as published: until it evaluates, couples at random, elites that are copied."""

from collections import Counter
from collections.abc import Callable

import pytest
from numpy.random import Generator

from planish.core import Candidate, Failed, Measured, Outcome, PlanishError, Trial
from planish.search import Gevo
from planish.testing.driving import drive
from planish.testing.lattice import Lattice
from search.tradeoff import BOTH

CRASH = Failed("run", "crash")


class Recorder(Lattice):
    """A lattice that notes what is changed, and what is crossed."""

    def __init__(self) -> None:
        super().__init__((50, 50, 50))
        self.changed: list[Candidate] = []
        self.couples: list[tuple[Candidate, Candidate]] = []

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        self.changed.append(candidate)
        return super().mutate(candidate, rng)

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        self.couples.append((a, b))
        return super().crossover(a, b, rng)


def _costs(space: Lattice, candidate: Candidate) -> Outcome:
    first, second, third = space.position(candidate)
    return Measured({"time_s": float(first + third), "error": float(50 - first + second)})


def _odd_fails(space: Lattice) -> Callable[[Candidate], Outcome]:
    return lambda c: CRASH if sum(space.position(c)) % 2 else _costs(space, c)


def _round(searcher: Gevo, evaluate: Callable[[Candidate], Outcome]) -> list[Candidate]:
    asked = list(searcher.ask(1000))
    searcher.tell([Trial(candidate, evaluate(candidate)) for candidate in asked])
    return asked


def test_the_first_individuals_are_the_program_changed_three_times() -> None:
    """Each change is measured before the next (sections 4 and 4.1)."""
    space = Recorder()
    searcher = Gevo(space, BOTH, 0, population=6, elites=2)
    before = [space.start()] * 6
    for _ in range(3):
        space.changed.clear()
        asked = _round(searcher, lambda c: _costs(space, c))
        assert space.changed == before
        before = asked
    space.changed.clear()
    searcher.ask(1000)
    assert len(space.couples) > 0
    assert not space.changed


def test_a_change_that_fails_is_drawn_again_until_it_evaluates() -> None:
    space = Recorder()
    evaluate = _odd_fails(space)
    searcher = Gevo(space, BOTH, 1, population=30, elites=2)
    waiting = 30
    while waiting:
        asked = _round(searcher, evaluate)
        assert len(asked) == waiting, "those alone whose change failed"
        waiting = sum(not isinstance(evaluate(candidate), Measured) for candidate in asked)
    assert set(space.changed) == {space.start()}
    _round(searcher, evaluate)
    assert all(isinstance(evaluate(candidate), Measured) for candidate in space.changed)


def test_children_are_crossed_again_until_both_evaluate() -> None:
    space = Recorder()
    evaluate = _odd_fails(space)
    trials = drive(Gevo(space, BOTH, 0, population=20, elites=4, mutation=0.0), evaluate, 400)
    parents = {parent for couple in space.couples for parent in couple}
    assert all(isinstance(evaluate(parent), Measured) for parent in parents)
    assert sum(isinstance(trial.outcome, Failed) for trial in trials) > 20, "or nothing was drawn again"


def test_the_elites_are_copied_unchanged() -> None:
    """All children are worse than all before them, and yet the others are children."""

    class Unlike(Recorder):
        def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
            super().crossover(a, b, rng)
            return self.sample(rng), self.sample(rng)

    space, firsts = Unlike(), list[Candidate]()

    def evaluate(candidate: Candidate) -> Outcome:
        return _costs(space, candidate) if candidate in firsts else Measured({"time_s": 1e3, "error": 1e3})

    searcher = Gevo(space, BOTH, 3, population=20, elites=4, crossover=1.0, mutation=0.0)
    for _ in range(3):
        firsts[:] = searcher.ask(1000)
        searcher.tell([Trial(candidate, _costs(space, candidate)) for candidate in firsts])
    kept: Counter[Candidate] = Counter()
    for generation in range(6):
        space.couples.clear()
        _round(searcher, evaluate)
        if generation:
            kept.update({parent for couple in space.couples for parent in couple if parent in firsts})
    assert 0 < len(kept) <= 4, "16 of 20 are children, however bad"
    assert max(kept.values()) > 3, "and the elites are there in each generation"


def test_couples_are_drawn_at_random() -> None:
    """Not by tournaments, which the worst of four never wins (section 4.2)."""
    drawn: Counter[int] = Counter()
    for seed in range(300):
        space = Recorder()
        searcher = Gevo(space, BOTH, seed, population=4, elites=1, crossover=1.0)
        first: list[Candidate] = []
        for _ in range(3):
            first[:] = searcher.ask(1000)
            worse = [Measured({"time_s": 1.0 + i, "error": 1.0 + i}) for i in range(4)]
            searcher.tell([Trial(*each) for each in zip(first, worse, strict=True)])
        searcher.ask(1)
        assert all(a in first and b in first for a, b in space.couples)
        if len(set(first)) == 4:
            drawn.update(first.index(parent) for parent in space.couples[0])
    shares = [drawn[place] / drawn.total() for place in range(4)]
    assert shares == pytest.approx([0.25] * 4, abs=0.08)


def test_elites_that_leave_no_place_are_refused() -> None:
    with pytest.raises(PlanishError, match=r"population of 10, 16 copied unchanged"):
        Gevo(Lattice(), BOTH, 0, population=10)
