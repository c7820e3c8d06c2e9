"""Genetic search and annealing: what they share, and what each promises."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import pytest
from numpy.random import Generator

from planish.core import Candidate, Failed, Measured, Objective, Outcome, Step, Trial
from planish.search import Annealing, Genetic, Random
from planish.search.rounds import quality
from planish.testing.driving import drive
from planish.testing.lattice import Lattice

TIME = Lattice.objective
RATE = Objective("rate", "1/s", "up")
LARGE = Lattice((12, 8, 8, 8), ridge=2, ruggedness=0.3)
TABLE = LARGE.table()
OPTIMUM = LARGE.optimum()

Evolving = type[Genetic | Annealing]
BOTH = pytest.mark.parametrize("kind", [Genetic, Annealing])


def _search(
    kind: Evolving, objective: Objective, change: Callable[[float], dict[str, float]], budget: int = 300
) -> list[Candidate]:
    """Run on the large lattice with other values in place of its times."""

    def evaluate(candidate: Candidate) -> Outcome:
        outcome = TABLE[candidate.hash]
        return Measured(change(outcome.values["time_s"])) if isinstance(outcome, Measured) else outcome

    return [trial.candidate for trial in drive(kind(LARGE, [objective], 1), evaluate, budget)]


@BOTH
def test_the_unit_does_not_matter(kind: Evolving) -> None:
    in_seconds = _search(kind, TIME, lambda time: {"time_s": time})
    in_other = _search(kind, TIME, lambda time: {"time_s": time * 2.0**40})
    assert in_seconds == in_other


@BOTH
def test_a_rate_steers_as_its_time_does(kind: Evolving) -> None:
    """To within rounding: with powers of two there is none."""
    by_time = _search(kind, TIME, lambda time: {"time_s": 2.0 ** round(time * 1e4)})
    by_rate = _search(kind, RATE, lambda time: {"rate": 2.0 ** -round(time * 1e4)})
    assert by_time == by_rate


@BOTH
def test_values_of_any_sign_are_searched(kind: Evolving) -> None:
    asked = _search(kind, TIME, lambda time: {"time_s": round(time * 1e4) - 10.0})
    assert len(set(asked)) == 300


@BOTH
def test_it_is_better_than_random_search(kind: Evolving) -> None:
    """In a space of 6,144, after 600 trials, by the median of nine runs."""
    found, by_chance = (
        median(_best(make(LARGE, [TIME], seed), 600) for seed in range(9)) for make in (kind, Random)
    )
    assert found < 1.05 * OPTIMUM < by_chance


def _best(searcher: Genetic | Annealing | Random, budget: int) -> float:
    trials = drive(searcher, lambda candidate: TABLE[candidate.hash], budget)
    return min(cost for trial in trials if (cost := trial.cost(TIME)) is not None)


@BOTH
def test_failures_do_not_steer(kind: Evolving) -> None:
    """Half the space fails: the search goes on around what was measured."""

    def evaluate(candidate: Candidate) -> Outcome:
        return Failed("run", "odd") if LARGE.position(candidate)[0] % 2 else TABLE[candidate.hash]

    trials = drive(kind(LARGE, [TIME], 0), evaluate, 800)
    even = [LARGE.position(trial.candidate)[0] % 2 == 0 for trial in trials[400:]]
    assert sum(even) > 200
    assert min(cost for trial in trials if (cost := trial.cost(TIME)) is not None) < 1.3 * OPTIMUM


@pytest.mark.parametrize(
    ("cost", "reference", "expected"),
    [(2, 1, 0.5), (1, 1, 1), (-1, -2, 0.5), (1, 0, 0), (0, 0, 1), (1, -1, 0), (0, -1, 0), (1, 2, 1.5)],
)
def test_quality_is_a_ratio_where_there_is_one(cost: float, reference: float, expected: float) -> None:
    assert quality(cost, reference) == expected


class Recorder(Lattice):
    """A lattice whose mutation changes nothing and whose crossover notes its parents."""

    def __init__(self) -> None:
        super().__init__((50, 50, 50))
        self.parents: list[Candidate] = []

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        self.parents += [a, b]
        return super().crossover(a, b, rng)


def _generation(space: Recorder, searcher: Genetic, outcomes: list[Outcome]) -> list[Candidate]:
    """Ask for a generation and tell it, so that the next one is bred at the next call; keep its parents."""
    space.parents.clear()
    asked = list(searcher.ask(1000))
    searcher.tell([Trial(c, o) for c, o in zip(asked, outcomes, strict=True)])
    return asked


def test_parents_are_drawn_by_fitness() -> None:
    """One of 10 is four times as fast as the others: it is drawn with 4/13, and again behind another."""
    space = Recorder()
    drawn: Counter[int] = Counter()
    for seed in range(300):
        searcher = Genetic(space, [TIME], seed, population=10, elite=0)
        times = [Measured({"time_s": 1.0 if place == 3 else 4.0}) for place in range(10)]
        parents = _generation(space, searcher, [*times])
        searcher.ask(10)
        drawn.update(parents.index(parent) for parent in space.parents)
    pairs = sum(drawn.values()) / 2
    chance = 4 / 13 + 9 * (1 / 13) * (4 / 12)
    assert drawn[3] / pairs == pytest.approx(chance, abs=5 * (chance * (1 - chance) / pairs) ** 0.5)


def test_only_the_last_generation_and_the_elite_are_parents() -> None:
    space = Recorder()
    searcher = Genetic(space, [TIME], 0, population=4, elite=1)
    first = _generation(space, searcher, [Measured({"time_s": float(t)}) for t in (3, 1, 4, 2)])
    second = _generation(space, searcher, [Measured({"time_s": float(t)}) for t in (5, 6, 7, 8)])
    for _ in range(20):
        third = _generation(space, searcher, [Failed("run", "crash")] * 4)
        assert set(space.parents) <= {first[1], *second}, "the parents are others"
        del third
    assert first[1] not in second


def test_failed_candidates_are_no_parents() -> None:
    space = Recorder()
    searcher = Genetic(space, [TIME], 0, population=6, elite=0)
    fates: list[Outcome] = [Measured({"time_s": 1.0}), Failed("run", "crash")] * 3
    first = _generation(space, searcher, fates)
    searcher.ask(6)
    assert set(space.parents) == set(first[::2])


def test_a_generation_is_bred_as_it_is_asked_for() -> None:
    space = Recorder()
    searcher = Genetic(space, [TIME], 0, population=6)
    _generation(space, searcher, [Measured({"time_s": float(t)}) for t in range(6)])
    searcher.ask(1)
    assert len(space.parents) == 2, "more was bred than asked for"


def test_without_mutation_children_mix_their_parents() -> None:
    space = Lattice((50, 50, 50))
    searcher = Genetic(space, [TIME], 0, population=8, mutation=0.0)
    first = [t.candidate for t in drive(searcher, lambda _: Measured({"time_s": 1.0}), 8)]
    knobs = [set(values) for values in zip(*map(space.position, first), strict=True)]
    children = [space.position(candidate) for candidate in searcher.ask(8)]
    mixed = sum(all(v in knob for v, knob in zip(c, knobs, strict=True)) for c in children)
    assert mixed >= 4, "only a child that exists already is changed"


@dataclass(frozen=True)
class Born(Step):
    """Tell a candidate from its parent."""

    name: int


class Family:
    """A space in which a candidate's steps are its ancestors."""

    def start(self) -> Candidate:
        return Candidate()

    def sample(self, rng: Generator) -> Candidate:
        return self.mutate(self.start(), rng)

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        return candidate.then(Born(int(rng.integers(2**60))))

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        return (a, b) if rng.random() < 0.5 else (b, a)


def _accepts(heat: float, slowdown: float, seed: int) -> bool:
    """Whether a chain accepts a child that is slower by this factor: then the third is a grandchild."""
    searcher = Annealing(Family(), [TIME], seed, chains=1, hot=heat, cold=heat)
    trials = drive(searcher, lambda c: Measured({"time_s": slowdown ** len(c.steps)}), 3)
    generations = [len(trial.candidate.steps) for trial in trials]
    assert generations in ([1, 2, 2], [1, 2, 3])
    return generations[2] == 3


@pytest.mark.parametrize(("slowdown", "heat"), [(1.65, 0.5), (1.05, 0.05), (1.2, 0.5), (3.0, 1.0)])
def test_a_slower_candidate_is_accepted_by_its_ratio_and_the_heat(slowdown: float, heat: float) -> None:
    """With probability (1 / slowdown) ** (1 / heat), within five standard errors of 400 runs."""
    chance = slowdown ** (-1 / heat)
    accepted = sum(_accepts(heat, slowdown, seed) for seed in range(400)) / 400
    assert accepted == pytest.approx(chance, abs=5 * (chance * (1 - chance) / 400) ** 0.5)


def test_a_better_candidate_is_always_accepted() -> None:
    assert all(_accepts(1e-6, 0.999, seed) for seed in range(50))


def test_chains_go_on_side_by_side() -> None:
    searcher = Annealing(LARGE, [TIME], 0, chains=7)
    sizes: list[int] = []
    for _ in range(5):
        asked = searcher.ask(100)
        sizes.append(len(asked))
        searcher.tell([Trial(candidate, TABLE[candidate.hash]) for candidate in asked])
    assert sizes == [7] * 5
