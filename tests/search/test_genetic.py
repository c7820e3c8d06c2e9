"""Genetic search and annealing, and GEVO-ML's evolution as published."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from planish.core import (
    Candidate,
    Failed,
    Measured,
    Objective,
    Outcome,
    PlanishError,
    Space,
    Step,
    Trial,
    rng,
)
from planish.models.cost_model import Prediction, dataset_of
from planish.models.learner import Prior
from planish.models.model_files import made_model, write_model
from planish.models.trees import XgboostTrees
from planish.search import make_searcher
from planish.search.annealing import Annealing
from planish.search.genetic import POOL, TAKEN, Genetic, draw_two, prescreen
from planish.search.nsga2 import Gevo
from planish.search.random_search import Random
from planish.search.rounds import Visited, quality
from planish.testing.searchers import best_so_far, drive
from planish.testing.synthetic import Lattice
from search.spaces import BOTH

TIME = Lattice.objective
RATE = Objective("rate", "1/s", "up")
LARGE = Lattice((12, 8, 8, 8), ridge=2, ruggedness=0.3)
TABLE = LARGE.table()
OPTIMUM = LARGE.optimum()

Evolving = type[Genetic | Annealing]
EACH_KIND = pytest.mark.parametrize("kind", [Genetic, Annealing])


def _search(
    kind: Evolving, objective: Objective, change: Callable[[float], dict[str, float]], budget: int = 300
) -> list[Candidate]:
    """Run on the large lattice with other values in index of its times."""

    def evaluate(candidate: Candidate) -> Outcome:
        outcome = TABLE[candidate.hash]
        return Measured(change(outcome.values["time_s"])) if isinstance(outcome, Measured) else outcome

    return [trial.candidate for trial in drive(kind(LARGE, [objective], 1), evaluate, budget)]


@EACH_KIND
def test_the_unit_does_not_matter(kind: Evolving) -> None:
    in_seconds = _search(kind, TIME, lambda time: {"time_s": time})
    in_other = _search(kind, TIME, lambda time: {"time_s": time * 2.0**40})
    assert in_seconds == in_other


@EACH_KIND
def test_a_rate_steers_as_its_time_does(kind: Evolving) -> None:
    """To within rounding: with powers of two there is none."""
    by_time = _search(kind, TIME, lambda time: {"time_s": 2.0 ** round(time * 1e4)})
    by_rate = _search(kind, RATE, lambda time: {"rate": 2.0 ** -round(time * 1e4)})
    assert by_time == by_rate


@EACH_KIND
def test_values_of_any_sign_are_searched(kind: Evolving) -> None:
    asked = _search(kind, TIME, lambda time: {"time_s": round(time * 1e4) - 10.0})
    assert len(set(asked)) == 300


@pytest.mark.slow(after=1)
@EACH_KIND
def test_it_is_better_than_random_search(kind: Evolving) -> None:
    """In a space of 6,144, after 600 trials, by the median of nine runs."""
    found, by_chance = (
        median(_best(make(LARGE, [TIME], seed), 600) for seed in range(9)) for make in (kind, Random)
    )
    assert found < 1.05 * OPTIMUM < by_chance


def _best(searcher: Genetic | Annealing | Random, budget: int) -> float:
    trials = drive(searcher, lambda candidate: TABLE[candidate.hash], budget)
    return min(cost for trial in trials if (cost := trial.cost(TIME)) is not None)


@EACH_KIND
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


class ParentRecorder(Lattice):
    """A lattice whose mutation changes nothing and whose crossover notes its parents."""

    def __init__(self) -> None:
        super().__init__((50, 50, 50))
        self.parents: list[Candidate] = []

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        self.parents += [a, b]
        return super().crossover(a, b, rng)


def _generation(space: ParentRecorder, searcher: Genetic, outcomes: list[Outcome]) -> list[Candidate]:
    """Ask for a generation and tell it, so that the next one is bred at the next call; keep its parents."""
    space.parents.clear()
    asked = list(searcher.ask(1000))
    searcher.tell([Trial(c, o) for c, o in zip(asked, outcomes, strict=True)])
    return asked


def test_parents_are_drawn_by_fitness() -> None:
    """One of 10 is four times as fast as the others: it is drawn with 4/13, and again behind another."""
    space = ParentRecorder()
    drawn: Counter[int] = Counter()
    for seed in range(300):
        searcher = Genetic(space, [TIME], seed, population=10, elite=0)
        times = [Measured({"time_s": 1.0 if index == 3 else 4.0}) for index in range(10)]
        parents = _generation(space, searcher, [*times])
        searcher.ask(10)
        drawn.update(parents.index(parent) for parent in space.parents)
    pairs = sum(drawn.values()) / 2
    chance = 4 / 13 + 9 * (1 / 13) * (4 / 12)
    assert drawn[3] / pairs == pytest.approx(chance, abs=5 * (chance * (1 - chance) / pairs) ** 0.5)


@pytest.mark.parametrize("count", [2, 3, 100])
def test_two_parents_are_drawn_as_numpy_draws_them(count: int) -> None:
    chances = np.linspace(0.0, 1.0, count) ** 3 + 1e-8
    chances /= chances.sum()
    for index in range(200):
        ours, theirs = rng(1, index), rng(1, index)
        drawn = theirs.choice(count, 2, replace=False, p=chances)
        assert [*draw_two(chances, ours)] == drawn.tolist()
        assert ours.random() == theirs.random()


def test_only_the_last_generation_and_the_elite_are_parents() -> None:
    space = ParentRecorder()
    searcher = Genetic(space, [TIME], 0, population=4, elite=1)
    first = _generation(space, searcher, [Measured({"time_s": float(t)}) for t in (3, 1, 4, 2)])
    second = _generation(space, searcher, [Measured({"time_s": float(t)}) for t in (5, 6, 7, 8)])
    for _ in range(20):
        third = _generation(space, searcher, [Failed("run", "crash")] * 4)
        assert set(space.parents) <= {first[1], *second}, "the parents are others"
        del third
    assert first[1] not in second


def test_failed_candidates_are_no_parents() -> None:
    space = ParentRecorder()
    searcher = Genetic(space, [TIME], 0, population=6, elite=0)
    fates: list[Outcome] = [Measured({"time_s": 1.0}), Failed("run", "crash")] * 3
    first = _generation(space, searcher, fates)
    searcher.ask(6)
    assert set(space.parents) == set(first[::2])


def test_a_generation_is_bred_as_it_is_asked_for() -> None:
    space = ParentRecorder()
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


class Family(Space):
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


CRASH = Failed("run", "crash")


class ChangeRecorder(Lattice):
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
    space = ChangeRecorder()
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
    space = ChangeRecorder()
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
    space = ChangeRecorder()
    evaluate = _odd_fails(space)
    trials = drive(Gevo(space, BOTH, 0, population=20, elites=4, mutation=0.0), evaluate, 400)
    parents = {parent for couple in space.couples for parent in couple}
    assert all(isinstance(evaluate(parent), Measured) for parent in parents)
    assert sum(isinstance(trial.outcome, Failed) for trial in trials) > 20, "or nothing was drawn again"


def test_the_elites_are_copied_unchanged() -> None:
    """All children are worse than all before them, and yet the others are children."""

    class Unlike(ChangeRecorder):
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
        space = ChangeRecorder()
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
    shares = [drawn[index] / drawn.total() for index in range(4)]
    assert shares == pytest.approx([0.25] * 4, abs=0.08)


def test_elites_that_leave_no_place_are_refused() -> None:
    with pytest.raises(PlanishError, match=r"population of 10, 16 copied unchanged"):
        Gevo(Lattice(), BOTH, 0, population=10)


ROUGH = Lattice((12, 8, 8, 8), ridge=2, ruggedness=0.3)
SMALL = Lattice((3, 3), ridge=1)


class Knows:
    """A model that holds the sum of the features for what a candidate costs."""

    def predict(self, features: NDArray[np.float32]) -> Prediction:
        return Prediction(features.sum(axis=1, keepdims=True))


def costs(space: Lattice, candidates: list[Candidate]) -> list[float]:
    return space.features(candidates).sum(axis=1).tolist()


def test_of_each_pool_the_best_predicted_come_first() -> None:
    given = list(islice(prescreen(ROUGH, Visited(ROUGH), Prior(ROUGH, Knows(), ""), 3), TAKEN))
    generator = rng(3, 0, 0)
    pool = {ROUGH.sample(generator) for _ in range(POOL)}
    assert costs(ROUGH, given) == sorted(costs(ROUGH, [*pool]))[:TAKEN]


def test_it_ends_where_nothing_is_new() -> None:
    visited = Visited(SMALL)
    given = [*prescreen(SMALL, visited, Prior(SMALL, Knows(), ""), 0)]
    assert 0 < len(given) == len({each.hash for each in given}) <= 9
    assert not [*prescreen(SMALL, visited, Prior(SMALL, Knows(), ""), 0)]


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model that has learnt what candidates of the rough lattice take."""
    candidates = [ROUGH.sample(rng(9, i)) for i in range(400)]
    outcomes = map(ROUGH.outcome, candidates)
    known = dataset_of(
        ROUGH.features(candidates), [getattr(each, "values", {}).get("time_s", 99.0) for each in outcomes]
    )
    trees = XgboostTrees()
    trees.fit(known)
    path = tmp_path / "m.npz"
    write_model(made_model("lattice", ROUGH.schema, "rank", {}, known, trees.trees), path)
    return str(path)


def test_a_genetic_search_begins_with_what_a_model_holds_for_good(model: str) -> None:
    def found(seed: int, name: str) -> float:
        searcher = make_searcher("genetic", ROUGH, [ROUGH.objective], seed, {"model": name})
        best = best_so_far(drive(searcher, ROUGH.outcome, 8, 8), ROUGH.objective)[-1]
        assert (searcher.model_s > 0) == bool(searcher.notes) == (name != "none")
        assert best is not None
        return best

    assert np.mean([found(s, model) for s in range(5)]) < np.mean([found(s, "none") for s in range(5)])


def test_its_generations_after_the_first_are_bred(model: str) -> None:
    told = make_searcher("genetic", ROUGH, [ROUGH.objective], 1, {"model": model, "population": 12})
    trials = drive(told, ROUGH.outcome, 60)
    assert len({trial.candidate.hash for trial in trials}) == 60


class Plain(Space):
    """A space whose candidates nothing describes."""

    def start(self) -> Candidate:
        return ROUGH.start()

    def sample(self, rng: Generator) -> Candidate:
        return ROUGH.sample(rng)

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        return ROUGH.mutate(candidate, rng)

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        return ROUGH.crossover(a, b, rng)


def test_a_model_where_nothing_is_described_is_one_line() -> None:
    with pytest.raises(PlanishError, match="no model is for the candidates of Plain"):
        make_searcher("genetic", Plain(), [ROUGH.objective], 0, {"model": "m.npz"})
