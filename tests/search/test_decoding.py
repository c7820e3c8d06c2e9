"""Ways of sampling a policy, beside what can be counted by hand on a small tree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planish.core import Candidate, PlanishError
from planish.search.decoding import METHODS, Decoding, PrefixTree, beam, decode, reshaped
from search.words import TREE, Table, Words, word

LEAVES = {"XX": 0.3, "XY": 0.18, "X": 0.12, "YY": 0.36, "YXZ": 0.03, "YX": 0.01}
"""What `TREE` may end in, and how probable that is."""
DRAWS = 3000


def words(
    method: str, samples: int = 100, seed: int = 0, tree: PrefixTree | None = None, **more: float
) -> list[str]:
    tree = tree or PrefixTree(Table(TREE), Words())
    how = Decoding(method, samples, seed, **more)  # pyright: ignore[reportArgumentType]
    return [word(node.candidate) for node in decode(tree, how)]


def likely(counts: Mapping[str, int], chances: Mapping[str, float]) -> bool:
    """Whether no count is further than four deviations from what is expected of it."""
    total = sum(counts.values())
    return counts.keys() <= chances.keys() and all(
        abs(counts.get(each, 0) - total * p) <= 4 * math.sqrt(total * p * (1 - p)) + 1
        for each, p in chances.items()
    )


def test_the_leaves_are_those_of_the_tree() -> None:
    nodes = list(decode(PrefixTree(Table(TREE), Words()), Decoding("priority")))
    found = {word(node.candidate): math.exp(node.log_probability) for node in nodes}
    assert found == pytest.approx(LEAVES)


@pytest.mark.parametrize("method", [*METHODS])
def test_samples_are_whole_and_repeat(method: str) -> None:
    found = words(method, 3, seed=1)
    assert {*found} <= LEAVES.keys()
    assert len(found) == (1 if method == "greedy" else 3)
    assert words(method, 3, seed=1) == found


@pytest.mark.parametrize("method", ["beam", "stochastic-beam", "unique", "priority"])
def test_some_never_repeat_and_find_all(method: str) -> None:
    assert sorted(words(method)) == sorted(LEAVES)


def test_independent_draws_are_as_probable_as_the_policy_has_them() -> None:
    assert likely(Counter(words("temperature", DRAWS)), LEAVES)


def test_a_draw_is_the_same_among_how_many_ever() -> None:
    assert words("temperature", 20)[:7] == words("temperature", 7)
    assert words("nucleus", 20, seed=5)[:7] == words("nucleus", 7, seed=5)


def test_probabilities_are_sharpened_and_cut() -> None:
    sure = np.log([0.5, 0.3, 0.2])
    assert reshaped(sure) == pytest.approx([0.5, 0.3, 0.2])
    assert reshaped(sure, temperature=0.5) == pytest.approx(np.array([0.25, 0.09, 0.04]) / 0.38)
    assert reshaped(sure, temperature=0) == pytest.approx([1])
    assert reshaped(sure, top_k=2) == pytest.approx([0.625, 0.375])
    assert reshaped(sure, top_p=0.5) == pytest.approx([1])
    assert reshaped(sure, top_p=0.51) == pytest.approx([0.625, 0.375])
    assert reshaped(sure, top_p=1) == pytest.approx([0.5, 0.3, 0.2])
    assert reshaped(sure, top_k=2, top_p=0.6) == pytest.approx([1]), "of the two that are kept one has 0.625"


@settings(deadline=None, max_examples=40)
@given(samples=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_arithmetic_sampling_spreads_evenly(samples: int, seed: int) -> None:
    counts = Counter(words("arithmetic", samples, seed))
    for each, p in LEAVES.items():
        assert abs(counts[each] - samples * p) < 1 + 1e-9


def test_one_arithmetic_sample_is_an_ordinary_draw() -> None:
    tree = PrefixTree(Table(TREE), Words())
    assert likely(Counter(words("arithmetic", 1, seed, tree)[0] for seed in range(DRAWS)), LEAVES)


def test_a_beam_finds_what_greed_does_not() -> None:
    assert words("greedy") == ["XX"]
    assert words("beam", 1) == ["XX"]
    assert words("beam", 2) == ["YY", "XX"]
    assert words("beam") == sorted(LEAVES, key=lambda each: -LEAVES[each])


def test_groups_of_beams_avoid_each_other() -> None:
    """The second group's X costs as much as the first one's beam took it: then Y is better at 0.5."""
    lone, other = (
        [word(n.candidate) for n in beam(PrefixTree(Table(TREE), Words()), 2, groups=2, penalty=penalty)]
        for penalty in (0.0, 0.5)
    )
    assert lone == ["XX", "XX"]
    assert other == ["YY", "XX"]


def without_replacement(pair: tuple[str, str]) -> float:
    first, second = pair
    return LEAVES[first] * LEAVES[second] / (1 - LEAVES[first])


@pytest.mark.parametrize("method", ["stochastic-beam", "unique"])
def test_without_replacement_pairs_come_as_often_as_they_should(method: str) -> None:
    """Inclusion and order: the first is an ordinary draw, the second one of what is left."""
    tree = PrefixTree(Table(TREE), Words())
    pairs = Counter(" ".join(words(method, 2, seed, tree)) for seed in range(DRAWS))
    assert likely(pairs, {" ".join(pair): without_replacement(pair) for pair in permutations(LEAVES, 2)})


def test_unique_counts_of_figure_6_1() -> None:
    """Of as many samples as there are leaves, those that never repeat have all."""
    counts = {method: len({*words(method, 6, seed=3)}) for method in METHODS}
    assert counts["greedy"] == 1
    assert counts["priority"] == counts["unique"] == counts["stochastic-beam"] == counts["beam"] == 6
    assert counts["temperature"] < 6
    colder = {t: len({*words("temperature", 50, seed=3, temperature=t)}) for t in (0.1, 2.0)}
    assert colder[0.1] < colder[2.0]


def test_beginnings_are_asked_for_once_whoever_goes_on() -> None:
    table = Table(TREE)
    tree = PrefixTree(table, Words())
    for method in METHODS:
        words(method, 10, tree=tree)
    assert len(table.asked) == len({*table.asked}) == tree.inferences
    assert tree.calls < tree.inferences


def test_unknown_names_are_refused() -> None:
    with pytest.raises(PlanishError, match="called 'sorted'"):
        Decoding("sorted")
    with pytest.raises(PlanishError, match="ranked by 'worst'"):
        Decoding(by="worst")


def test_an_empty_candidate_may_be_a_sample() -> None:
    nodes = list(decode(PrefixTree(Table({"": {".": 1.0}}), Words()), Decoding("unique")))
    assert [node.candidate for node in nodes] == [Candidate()]
