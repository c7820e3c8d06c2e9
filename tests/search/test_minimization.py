"""Delta debugging, and searches that minimize what they find."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, Measured, Trial, best_trial
from planish.search import Rounds, RoundSearcher
from planish.search.minimization import Portfolio, RandomMinimize, ddmin, minimize, shrink
from planish.search.random_search import Random
from planish.search.rounds import Archive
from planish.testing.searchers import drive
from planish.testing.synthetic import Lattice, Set
from search.spaces import TIME, Focusable, Words, holds, spell, word


def _minimize(count: int, will_do: Callable[[set[int]], bool]) -> tuple[tuple[int, ...], int]:
    """Answer until the end; gives what is left, and how often was asked."""
    asking, asked = ddmin(count), 0
    answers: list[bool] | None = None
    try:
        while True:
            batch = next(asking) if answers is None else asking.send(answers)
            answers = [will_do(set(indices)) for indices in batch]
            asked += len(batch)
    except StopIteration as end:
        return end.value, asked


@given(st.integers(0, 12), st.sets(st.integers(0, 11)))
def test_what_is_needed_is_left_and_no_more(count: int, wanted: set[int]) -> None:
    needed = {index for index in wanted if index < count}
    left, _ = _minimize(count, needed.issubset)
    assert set(left) == needed
    assert list(left) == sorted(left)


@given(st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=1, max_size=4))
def test_no_place_can_be_left_out_alone_whatever_is_needed(ways: list[set[int]]) -> None:
    def will_do(indices: set[int]) -> bool:
        return any(way <= indices for way in ways) and len(indices) != 4

    left, _ = _minimize(8, will_do)
    assert left == tuple(range(8)) or will_do(set(left))
    assert not any(will_do(set(left) - {index}) for index in left)


def test_one_of_many_is_found_by_few_questions() -> None:
    left, asked = _minimize(64, lambda indices: 17 in indices)
    assert left == (17,)
    assert asked < 30


def test_idle_steps_are_left_out_together() -> None:
    _, asked = _minimize(16, lambda indices: {0, 5, 10, 15} <= indices)
    assert asked < 45


class Asked:
    """Needs knob 1; keeps what it was asked."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []

    def __call__(self, candidates: Sequence[Candidate]) -> list[bool]:
        self.candidates += candidates
        return [any(isinstance(s, Set) and s.knob == 1 for s in c.steps) for c in candidates]


class Selecting(Lattice):
    """Takes steps out at once; knob 2 needs knob 0."""

    def selected(self, candidate: Candidate, indices: Sequence[int]) -> Candidate | None:
        steps = tuple(candidate.steps[index] for index in indices)
        knobs = {step.knob for step in steps if isinstance(step, Set)}
        return Candidate(steps) if 2 not in knobs or 0 in knobs else None


def test_candidates_lose_what_is_idle() -> None:
    for space in (Lattice((6, 4, 4)), Selecting((6, 4, 4))):
        asked = Asked()
        assert shrink(space, space.at((2, 3, 1)), asked) == space.at((0, 3, 0))
        assert len(set(asked.candidates)) == len(asked.candidates)
        assert shrink(space, space.start(), asked) == space.start()


def test_a_search_that_is_ended_gives_the_shortest_so_far() -> None:
    space = Selecting((6, 4, 4))
    whole, asked = space.at((2, 3, 1)), Asked()
    assert shrink(space, whole, lambda _: None) == whole
    lengths = [3]
    for most in range(1, 5):
        left = iter(range(most))
        kept = shrink(space, whole, lambda some, left=left: None if next(left, None) is None else asked(some))
        assert asked([kept]) == [True]
        lengths.append(len(kept.steps))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 1


def test_steps_alone_may_not_be_legal() -> None:
    space = Selecting((6, 4, 4))
    whole = space.at((2, 3, 1))
    assert space.selected(whole, (1, 2)) is None
    assert space.selected(whole, (0, 2)) == space.at((2, 0, 1))
    assert Lattice((6, 4, 4)).selected(whole, (1, 2)) == space.at((0, 3, 1))
    assert shrink(
        space, whole, lambda some: [any(s == Set(2, 1) for s in c.steps) for c in some]
    ) == space.at((2, 0, 1))


Kind = type[Portfolio] | type[RandomMinimize]
BOTH = pytest.mark.parametrize("kind", [Portfolio, RandomMinimize])


def _planted(text: str) -> float:
    """Ten less for each letter of "steel" that stands in order, and for a "q"; the least is 1."""
    return 61.0 - 10 * holds(text, "steel") - 10 * ("q" in text)


def _run(searcher: RoundSearcher, space: Words, budget: int) -> list[Trial]:
    return drive(searcher, space.outcome, budget)


def _words(trials: list[Trial]) -> list[str]:
    return [word(trial.candidate) for trial in trials]


def _least(trials: list[Trial]) -> float:
    best = best_trial(trials, TIME)
    assert best is not None
    assert isinstance(best.outcome, Measured)
    return best.outcome.values["time_s"]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("seed", range(3))
def test_portfolio_finds_a_planted_optimum(seed: int) -> None:
    """Six letters of 26 in a word of twelve; random search with as many trials does not."""
    space = Words(_planted)
    assert _least(_run(Portfolio(space, [TIME], seed), space, 2_000)) == 1
    assert _least(_run(Random(space, [TIME], seed), space, 2_000)) > 1


def test_seeds_come_first_and_are_built_upon() -> None:
    space = Words(_planted, ["sxtye", "zzz", "sxtye", "stz"])
    words = _words(_run(Portfolio(space, [TIME], 0), space, 1_000))
    assert words[:3] == ["sxtye", "zzz", "stz"]
    assert min(map(_planted, words)) == 1


@given(st.text("abcdef", min_size=1, max_size=10), st.sets(st.sampled_from("abcdef")))
def test_a_minimized_word_has_no_removable_letter(text: str, wanted: set[str]) -> None:
    """Each wanted letter stays once, and nothing else, at a price that is linear in the length."""
    space = Words(lambda each: 10.0 - len(wanted & set(each)))
    archive = Archive(space)
    trials = _run(RoundSearcher([TIME], _minimized(space, archive, text)), space, 1_000)
    assert sorted(word(archive.best()[0])) == sorted(wanted & set(text))
    assert len(trials) <= 1 + 2 * len(text)


def _minimized(space: Words, archive: Archive, text: str) -> Rounds:
    yield from archive.measure_new([spell(text)])
    yield from minimize(space, archive, spell(text))


def test_minimizing_takes_a_gain_and_passes_by_failures() -> None:
    """Without "x" the word is better, without "a" it fails, and so does the empty word."""
    space = Words(lambda each: None if "a" not in each else 2.0 if "x" in each else 1.0)
    archive = Archive(space)
    _run(RoundSearcher([TIME], _minimized(space, archive, "bxab")), space, 100)
    assert word(archive.best()[0]) == "a"
    assert archive.cost(spell("")) is None


def test_what_failed_is_not_minimized() -> None:
    space = Words(lambda _: None)
    archive = Archive(space)
    assert len(_run(RoundSearcher([TIME], _minimized(space, archive, "abc")), space, 100)) == 1
    assert not archive.best()


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_each_stage_ends_with_the_best_minimized(kind: Kind, seed: int) -> None:
    """A word costs by what it holds alone, so the best one is short as soon as a stage is over."""
    space = Words(lambda each: 10.0 - holds(each, "ab"), letters="abcdefgh")
    make = partial(Portfolio, stage=50) if kind is Portfolio else partial(RandomMinimize, samples=50)
    words = _words(_run(make(space, [TIME], seed), space, 80))
    assert "ab" in words[50:]


def test_random_minimize_samples_as_random_does_until_the_first_stage_ends() -> None:
    space = Words(_planted)
    ours = _run(RandomMinimize(space, [TIME], 3, samples=40), space, 100)
    theirs = _run(Random(space, [TIME], 3), space, 40)
    assert _words(ours)[:40] == _words(theirs)
    assert any(len(one) == len(other) - 1 for one in _words(ours)[40:41] for other in _words(ours)[:40])


def test_the_best_few_steer_the_draws() -> None:
    """A focused space is shown the best of each cost at the beginning of every stage but an empty one."""
    space = Focusable(_planted, ["ste", "sxxt", "zzzz", "yy"])
    _run(Portfolio(space, [TIME], 0, stage=10, few=2, explore=1.0), space, 15)
    assert space.shown == [["ste", "sxxt"]]


def test_of_equal_costs_the_shortest_is_kept() -> None:
    space = Words(lambda each: float(len(set(each))))
    archive = Archive(space, few=2)

    def search() -> Rounds:
        yield from archive.measure_new(map(spell, ["aaa", "abc", "bb", "cc", "aba", "abcd", "ba"]))

    _run(RoundSearcher([TIME], search()), space, 100)
    assert [word(each) for each in archive.best()] == ["bb", "ba"]


@BOTH
def test_where_most_fail_the_search_goes_on(kind: Kind) -> None:
    """Words without an "a" fail, and all of the first ones do."""
    space = Words(lambda each: 10.0 - holds(each, "ab") if "a" in each else None, ["zzz", "yyy"])
    trials = _run(kind(space, [TIME], 0), space, 600)
    assert len(trials) == 600
    assert _least(trials) == 8


@BOTH
def test_a_space_that_is_used_up_ends_the_search(kind: Kind) -> None:
    space = Words(lambda each: float(len(each)), longest=3, letters="ab")
    words = _words(_run(kind(space, [TIME], 0), space, 10_000))
    assert len(words) == len(set(words))
    assert {"a", "b", "ab", "bab", "bbb"} <= set(words)
