"""NSGA-II: the front that it finds, ranking, and breeding."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

from amounts import examples
from planish.core import EMPTY_CONTEXT, Candidate, Failed, Measured, Outcome, SearchContext, Searcher, Trial
from planish.core.front import crowding_distances, hypervolume, nondominated_sort, pareto_front
from planish.search.nsga2 import TRIES, Individual, Nsga2, ranked
from planish.search.random_search import Random
from planish.testing.searchers import drive
from planish.testing.synthetic import Lattice
from search.spaces import BOTH, REFERENCE, Tradeoff

ROUGH = Tradeoff(0.5)
POWERS = pytest.mark.parametrize("power", [0.5, 2.0])


def _volume(trials: Sequence[Trial]) -> float:
    costs = [trial.costs(BOTH) or () for trial in pareto_front(trials, BOTH)]
    return hypervolume(costs, REFERENCE)


def _found(space: Tradeoff, searcher: Searcher, budget: int = 600) -> float:
    """Return the share of the true front's hypervolume that is found."""
    return _volume(drive(searcher, space.outcome, budget)) / hypervolume(space.front(), REFERENCE)


@POWERS
@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_front_where_random_search_does_not(power: float, seed: int) -> None:
    """Of 3 million candidates it sees 600."""
    space = Tradeoff(power)
    assert _found(space, Random(space, BOTH, seed)) < 0.93
    assert _found(space, Nsga2(space, BOTH, seed, population=32)) > 0.95


@POWERS
@pytest.mark.parametrize(("budget", "wanted"), [(300, 0.9), (1200, 0.99)])
def test_the_defaults_are_better_than_random_search_in_short_and_long_runs(
    power: float, budget: int, wanted: float
) -> None:
    space, seeds = Tradeoff(power), range(examples(3))
    found = [_found(space, Nsga2(space, BOTH, seed), budget) for seed in seeds]
    by_chance = [_found(space, Random(space, BOTH, seed), budget) for seed in seeds]
    assert min(found) > max(*by_chance, wanted)


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_with_two_objectives_too_a_run_cut_short_is_the_beginning_of_the_longer_one(batch: int) -> None:
    def asked(budget: int, batch: int) -> list[Candidate]:
        searcher = Nsga2(ROUGH, BOTH, 4, population=10)
        return [trial.candidate for trial in drive(searcher, ROUGH.outcome, budget, batch)]

    whole = asked(50, 8)
    assert asked(50, batch) == whole
    assert asked(25, batch) == whole[:25]


@pytest.mark.parametrize("population", [2, 3, 7, 10])
def test_a_generation_has_any_size(population: int) -> None:
    searcher = Nsga2(ROUGH, BOTH, 0, population=population)
    for _ in range(4):
        asked = searcher.ask(1000)
        assert len(asked) == population
        searcher.tell([Trial(candidate, ROUGH.outcome(candidate)) for candidate in asked])


def test_where_half_the_space_fails_it_goes_on_around_what_was_measured() -> None:
    def evaluate(candidate: Candidate) -> Outcome:
        odd = sum(ROUGH.position(candidate)) % 2
        return Failed("run", "odd") if odd else ROUGH.outcome(candidate)

    trials = drive(Nsga2(ROUGH, BOTH, 0, population=32), evaluate, 800)
    by_chance = drive(Random(ROUGH, BOTH, 0), evaluate, 800)
    assert _volume(trials) > 1.05 * _volume(by_chance)


def test_it_ends_after_so_many_generations() -> None:
    short, long = (Nsga2(ROUGH, BOTH, 0, population=10, generations=count) for count in (3, 0))
    trials = drive(short, ROUGH.outcome, 100)
    assert len(trials) == 30
    assert [t.candidate for t in drive(long, ROUGH.outcome, 100)[:30]] == [t.candidate for t in trials]


class Recorder(Lattice):
    """A lattice whose crossover notes the parents."""

    def __init__(self) -> None:
        super().__init__((50, 50, 50))
        self.parents: list[Candidate] = []

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        self.parents += [a, b]
        return super().crossover(a, b, rng)


def _values(time: float, error: float) -> Measured:
    return Measured({"time_s": time, "error": error})


def _generation(searcher: Nsga2, outcomes: Sequence[Outcome]) -> list[Candidate]:
    """Ask for a generation and tell it; what is bred in place of failures crashes."""
    asked = list(searcher.ask(1000))
    trials = [Trial(c, o) for c, o in zip(asked, outcomes, strict=True)]
    searcher.tell(trials)
    failed = sum(trial.costs(BOTH) is None for trial in trials)
    for _ in range(TRIES - 1 if failed else 0):
        again = searcher.ask(1000)
        assert len(again) == failed
        searcher.tell([Trial(candidate, CRASH) for candidate in again])
    return asked


CRASH = Failed("run", "crash")


def test_a_child_that_fails_is_bred_again_before_the_next_generation() -> None:
    space = Recorder()
    searcher = Nsga2(space, BOTH, 0, population=10, crossover=1.0)
    first = _generation(searcher, [_values(1.0 + i, 20.0 - i) for i in range(10)])
    second = searcher.ask(1000)
    searcher.tell([Trial(c, _values(0.5, 0.5) if i < 4 else CRASH) for i, c in enumerate(second)])
    space.parents.clear()
    again = searcher.ask(1000)
    assert len(again) == 6
    assert set(space.parents) <= set(first), "those of the same generation"
    searcher.tell([Trial(candidate, _values(0.5, 0.5)) for candidate in again])
    space.parents.clear()
    assert len(searcher.ask(1000)) == 10
    assert set(space.parents) & {*second[:4], *again}


@pytest.mark.parametrize("fate", [CRASH, Measured({"time_s": 0.5}), _values(0.5, float("nan"))])
def test_what_lacks_an_objective_is_no_parent(fate: Outcome) -> None:
    space = Recorder()
    searcher = Nsga2(space, BOTH, 0, population=40, crossover=1.0)
    measured = [_values(1.0 + i, 20.0 - i) for i in range(20)]
    first = _generation(searcher, [outcome for one in measured for outcome in (one, fate)])
    searcher.ask(40)
    assert set(space.parents) <= set(first[::2])
    assert len(set(space.parents)) > 10


def test_what_a_space_knows_to_be_good_comes_first() -> None:
    """But the start does not, which is measured anyway."""
    known = [ROUGH.at((0, 3, 3, 0, 0, 0)), ROUGH.at((0, 5, 5, 0, 0, 0))]

    class Seeded(Tradeoff):
        def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> list[Candidate]:
            del context
            return [self.start(), *known]

    space = Seeded(0.5)
    for population in (2, 10):
        asked = Nsga2(space, BOTH, 0, population=population).ask(1000)
        assert asked[:2] == known
        assert len(asked) == len(set(asked)) == population


def test_what_does_not_fit_is_half_of_later_generations() -> None:
    known = [ROUGH.at((3 * i, i, 9 - i, i, 9 - i, i)) for i in range(1, 10)]

    class Seeded(Tradeoff):
        def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> list[Candidate]:
            del context
            return known

    space = Seeded(0.5)
    trials = drive(Nsga2(space, BOTH, 0, population=4), space.outcome, 20)
    found = [[trial.candidate for trial in trials[first : first + 4]] for first in range(0, 20, 4)]
    assert [each[:2] for each in found[:3]] == [known[:2], known[4:6], known[6:8]]
    assert found[0] == known[:4]
    assert [len(set(each) & set(known)) for each in found] == [4, 2, 2, 1, 0]


def test_parents_compete_with_their_children() -> None:
    """Of each generation one dominates all that are worse."""
    space = Recorder()
    searcher = Nsga2(space, BOTH, 0, population=10, crossover=1.0)
    first = _generation(searcher, [_values(3.0 + i, 13.0 - i) for i in range(5)] + [_values(30.0, 30.0)] * 5)
    second = _generation(searcher, [_values(2.5 + i, 12.5 - i) for i in range(5)] + [_values(40.0, 40.0)] * 5)
    space.parents.clear()
    for _ in range(4):
        _generation(searcher, [CRASH] * 10)
    assert set(space.parents) <= {*first[:5], *second[:5]}
    assert set(space.parents) & set(first[:5])
    assert set(space.parents) & set(second[:5])


@pytest.mark.parametrize("bound", [2.0, 0.0])
def test_what_is_twice_as_bad_as_the_unchanged_program_gives_way(bound: float) -> None:
    """The others are quick, and answer at random: without a bound they are on the front too."""
    space = Recorder()
    searcher = Nsga2(space, BOTH, 0, population=16, crossover=1.0, bound=bound)
    searcher.tell([Trial(space.start(), _values(10.0, 10.0))])
    useful = [_values(9.0 - i / 10, 14.0 + i / 10) for i in range(16)]
    useless = [_values(0.9 - i / 100, 81.0 + i) for i in range(10)]
    first = _generation(searcher, [*useless, *useful[:6]])
    second = _generation(searcher, [*useful[6:], *[CRASH] * 6])
    space.parents.clear()
    for _ in range(3):
        _generation(searcher, [CRASH] * 16)
    assert (set(space.parents) <= {*first[10:], *second[:10]}) == (bound > 1)


def test_beyond_the_bound_the_nearest_to_it_wins() -> None:
    space = Recorder()
    searcher = Nsga2(space, BOTH, 0, population=4, crossover=1.0)
    searcher.tell([Trial(space.start(), _values(1.0, 1.0))])
    first = _generation(searcher, [_values(1.0 - i / 20, 9.0 - i / 2) for i in range(4)])
    second = _generation(searcher, [_values(1.0 - i / 20, 9.0 - i / 2) for i in range(4, 8)])
    space.parents.clear()
    for _ in range(8):
        _generation(searcher, [CRASH] * 4)
    assert set(space.parents) <= set(second)
    assert not set(space.parents) & set(first)


def test_without_parents_a_generation_is_sampled() -> None:
    space = Recorder()
    searcher = Nsga2(space, BOTH, 0, population=20)
    for _ in range(3):
        assert len(_generation(searcher, [CRASH] * 20)) == 20
    _generation(searcher, [_values(1.0, 1.0)] + [CRASH] * 19)
    _generation(searcher, [CRASH] * 20)
    assert not space.parents, "one is no couple"


def _firsts(outcomes: Mapping[int, Outcome], runs: int = 400) -> list[float]:
    """Return how often each of a generation is the first parent of the next one's first child."""
    drawn: Counter[int] = Counter()
    for seed in range(runs):
        space = Recorder()
        searcher = Nsga2(space, BOTH, seed, population=len(outcomes), crossover=1.0)
        first = _generation(searcher, list(outcomes.values()))
        searcher.ask(1)
        drawn[first.index(space.parents[0])] += 1
    return [drawn[index] / runs for index in outcomes]


def test_of_two_the_dominant_one_is_the_parent() -> None:
    """Of four in a row, pairs drawn alike are won in the shares 3, 2, 1 and 0 of 6."""
    chances = _firsts({index: _values(1.0 + index, 1.0 + index) for index in range(4)})
    assert chances[3] == 0
    assert chances == pytest.approx([3 / 6, 2 / 6, 1 / 6, 0], abs=5 * (0.25 / 400) ** 0.5)


def test_of_two_on_one_front_the_less_crowded_one_is_the_parent() -> None:
    """The two ends meet in 1 of 6 pairs, and chance decides; the crowded middle loses to all."""
    chances = _firsts(dict(enumerate(_values(x, 10.0 - x) for x in (0.0, 4.0, 5.0, 10.0))))
    assert chances == pytest.approx([2.5 / 6, 0, 1 / 6, 2.5 / 6], abs=5 * (0.25 / 400) ** 0.5)


def test_two_parents_are_two() -> None:
    space = Recorder()
    searcher = Nsga2(space, BOTH, 0, population=12, crossover=1.0)
    _generation(searcher, [_values(1.0, 1.0), _values(2.0, 2.0)] + [CRASH] * 10)
    searcher.ask(12)
    assert len(space.parents) == 12
    assert all(a != b for a, b in zip(space.parents[::2], space.parents[1::2], strict=True))


def test_children_are_crossed_and_changed_as_often_as_asked() -> None:
    """A child that equals no other is changed only by the mutation's chance."""
    space = Recorder()
    changed: list[bool] = []
    for seed in range(30):
        searcher = Nsga2(space, BOTH, seed, population=20, crossover=0.5, mutation=0.0)
        first = _generation(searcher, [_values(1.0 * i, 20.0 - i) for i in range(20)])
        knobs = [set(values) for values in zip(*map(space.position, first), strict=True)]
        positions = map(space.position, searcher.ask(20))
        changed += [not all(v in knob for v, knob in zip(p, knobs, strict=True)) for p in positions]
    couples = len(space.parents) / 2
    assert couples == pytest.approx(150, abs=5 * (300 * 0.25) ** 0.5)
    assert 0.3 < sum(changed) / len(changed) < 0.8, "only those that are not crossed are doubles"


COSTS = st.integers(1, 3).flatmap(
    lambda n: st.lists(st.tuples(*[st.integers(0, 5).map(float)] * n), max_size=24)
)


@given(COSTS, st.integers(1, 30))
def test_the_first_fronts_are_selected_and_of_the_last_the_least_crowded(
    costs: list[tuple[float, ...]], most: int
) -> None:
    known: dict[tuple[float, ...], tuple[int, set[float]]] = {}
    for rank, front in enumerate(nondominated_sort(costs)):
        vectors = [costs[index] for index in front]
        for vector, crowding in zip(vectors, crowding_distances(vectors), strict=True):
            known.setdefault(vector, (rank, set()))[1].add(crowding)
    everything = ranked([Individual(Candidate(), each) for each in costs], len(costs))
    selected = ranked([Individual(Candidate(), each) for each in costs], most)
    assert sorted(each.costs for each in everything) == sorted(costs)
    assert selected == everything[:most]
    assert all(each.crowding in known[each.costs][1] for each in everything)
    order = [(known[each.costs][0], -each.crowding) for each in everything]
    assert order == sorted(order)


def test_crowding_is_the_mean_gap_between_the_neighbors() -> None:
    """Each gap as a share of the front's range; the ends are not crowded at all."""
    costs = [(0.0, 10.0), (1.0, 6.0), (3.0, 5.0), (10.0, 0.0), (20.0, 20.0)]
    crowding = {each.costs: each.crowding for each in ranked([Individual(Candidate(), c) for c in costs], 4)}
    infinite = float("inf")
    assert list(crowding) == [costs[0], costs[3], costs[2], costs[1]]
    assert crowding == dict(zip(costs, [infinite, (0.3 + 0.5) / 2, (0.9 + 0.6) / 2, infinite], strict=False))
