"""Portfolio and random search with minimisation."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Measured, Trial, best_trial
from planish.search import Portfolio, Random, RandomMinimise, Rounds, RoundSearcher
from planish.search.minimisation import minimise
from planish.search.proposals import Archive
from planish.testing.driving import drive
from search.letters import Focusable, Words, holds, spell, word
from search.trail import TIME

Kind = type[Portfolio] | type[RandomMinimise]
BOTH = pytest.mark.parametrize("kind", [Portfolio, RandomMinimise])


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
def test_a_minimised_word_has_no_removable_letter(text: str, wanted: set[str]) -> None:
    """Each wanted letter stays once, and nothing else, at a price that is linear in the length."""
    space = Words(lambda each: 10.0 - len(wanted & set(each)))
    ledger = Archive(space)
    trials = _run(RoundSearcher([TIME], _minimised(space, ledger, text)), space, 1_000)
    assert sorted(word(ledger.best()[0])) == sorted(wanted & set(text))
    assert len(trials) <= 1 + 2 * len(text)


def _minimised(space: Words, ledger: Archive, text: str) -> Rounds:
    yield from ledger.measure_new([spell(text)])
    yield from minimise(space, ledger, spell(text))


def test_minimising_takes_a_gain_and_passes_by_failures() -> None:
    """Without "x" the word is better, without "a" it fails, and so does the empty word."""
    space = Words(lambda each: None if "a" not in each else 2.0 if "x" in each else 1.0)
    ledger = Archive(space)
    _run(RoundSearcher([TIME], _minimised(space, ledger, "bxab")), space, 100)
    assert word(ledger.best()[0]) == "a"
    assert ledger.cost(spell("")) is None


def test_what_failed_is_not_minimised() -> None:
    space = Words(lambda _: None)
    ledger = Archive(space)
    assert len(_run(RoundSearcher([TIME], _minimised(space, ledger, "abc")), space, 100)) == 1
    assert not ledger.best()


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_each_stage_ends_with_the_best_minimised(kind: Kind, seed: int) -> None:
    """A word costs by what it holds alone, so the best one is short as soon as a stage is over."""
    space = Words(lambda each: 10.0 - holds(each, "ab"), letters="abcdefgh")
    make = partial(Portfolio, stage=50) if kind is Portfolio else partial(RandomMinimise, samples=50)
    words = _words(_run(make(space, [TIME], seed), space, 80))
    assert "ab" in words[50:]


def test_random_minimise_samples_as_random_does_until_the_first_stage_ends() -> None:
    space = Words(_planted)
    ours = _run(RandomMinimise(space, [TIME], 3, samples=40), space, 100)
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
    ledger = Archive(space, few=2)

    def search() -> Rounds:
        yield from ledger.measure_new(map(spell, ["aaa", "abc", "bb", "cc", "aba", "abcd", "ba"]))

    _run(RoundSearcher([TIME], search()), space, 100)
    assert [word(each) for each in ledger.best()] == ["bb", "ba"]


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
