"""Decoding of policies: sampling, Priority Sampling, and searchers that follow a policy."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from planish.core import Candidate, PlanishError, PolicyState
from planish.search.decoding import (
    METHODS,
    RANKINGS,
    Decoding,
    PrefixTree,
    beam,
    decode,
    prioritized,
    priority_samples,
    reshaped,
)
from planish.search.factory import TimedPolicy
from planish.search.policies import best_rollout, greedy_rollout, new_programs, rollout_iteration
from search.table_policy import TREE, Table, Words, word

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


@settings(deadline=None, max_examples=examples(40))
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


def test_prefixes_are_asked_for_once_whichever_sample_continues() -> None:
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


LETTERS = "XYZ"
END = "."


def priority_words(table: Table, branches: int | None = None, by: str = "last") -> list[str]:
    return [word(c) for c in priority_samples(table, Words(), branches=branches, by=by)]


def trees() -> st.SearchStrategy[Mapping[str, Mapping[str, float]]]:
    """Tables of whole weights, so that many steps are as probable, for words of up to three letters."""
    beginnings = ["", *LETTERS, *(a + b for a in LETTERS for b in LETTERS)]
    weights = st.dictionaries(st.sampled_from(LETTERS + END), st.integers(1, 4), min_size=1)
    return st.fixed_dictionaries({each: weights.map(_shares) for each in beginnings})


def _shares(weights: Mapping[str, int]) -> Mapping[str, float]:
    return {letter: weight / sum(weights.values()) for letter, weight in sorted(weights.items())}


def algorithm_1(
    table: Mapping[str, Mapping[str, float]], samples: int, branches: int | None, by: str
) -> Sequence[str]:
    """The thesis's pseudocode: tokens, of which the end is one, a mask, and a queue of whole prefixes."""
    queue: list[tuple[float, str]] = []
    mask, found = "", list[str]()
    for _ in range(samples):
        generated = ""
        while not generated.endswith(END):
            if len(generated) < len(mask):
                generated += mask[len(generated)]
                continue
            row = table.get(generated, {END: 1.0})
            best = sorted(row.items(), key=lambda pair: -pair[1])[:branches]
            for token, _ in best[1:]:
                queue.append((_rank(table, generated + token, by), generated + token))
            generated += best[0][0]
        found.append(generated.removesuffix(END))
        if not queue:
            break
        first = max(queue, key=lambda pair: pair[0])  # of equal ones the oldest
        queue.remove(first)
        mask = first[1]
    return found


def _rank(table: Mapping[str, Mapping[str, float]], prefix: str, by: str) -> float:
    sure = [math.log(table.get(prefix[:at], {END: 1.0})[token]) for at, token in enumerate(prefix)]
    so_far = sum(sure[:-1])  # in the order in which a tree adds
    return {"last": sure[-1], "whole": so_far + sure[-1], "mean": (so_far + sure[-1]) / len(sure)}[by]


@settings(deadline=None, max_examples=examples(60))
@given(
    table=trees(),
    samples=st.integers(1, 50),
    branches=st.sampled_from([None, 1, 2, 3]),
    by=st.sampled_from([*RANKINGS]),
    width=st.sampled_from([1, 2, 5, 100]),
)
def test_samples_are_those_of_algorithm_1(
    table: Mapping[str, Mapping[str, float]], samples: int, branches: int | None, by: str, width: int
) -> None:
    """Whatever is completed together, and though the queue is short."""
    tree = PrefixTree(Table(table), Words())
    nodes = prioritized(tree, samples=samples, branches=branches, by=by, width=width)
    found = [word(node.candidate) for node in nodes]
    assert found == algorithm_1(table, samples, branches, by)
    assert len(set(found)) == len(found)


def test_by_hand() -> None:
    """Greedily XX; of what was left, Y of the root (0.4), XY (0.3), X (0.2), and of YX (0.1) its end last."""
    assert priority_words(Table(TREE)) == ["XX", "YY", "XY", "X", "YXZ", "YX"]


def test_branches_are_ranked_by_more_than_their_own_step() -> None:
    skewed = {"": {"X": 0.9, "Y": 0.1}, "X": {"X": 0.5, "Y": 0.5}, "Y": {"X": 0.45, "Y": 0.55}}
    assert priority_words(Table(skewed)) == ["XX", "XY", "YY", "YX"]
    unlike = {"": {"X": 0.6, "Y": 0.4}, "X": {"X": 0.55, "Y": 0.45}}
    assert priority_words(Table(unlike)) == ["XX", "XY", "Y"]
    assert priority_words(Table(unlike), by="whole") == ["XX", "Y", "XY"], "0.4 and 0.27"
    assert priority_words(Table(unlike), by="mean") == ["XX", "XY", "Y"], "0.4, and the root of 0.27, 0.52"


def test_branches_are_limited() -> None:
    assert priority_words(Table(TREE), branches=1) == ["XX"]
    assert priority_words(Table(TREE), branches=2) == ["XX", "YY", "XY", "YXZ", "YX"]


@pytest.mark.parametrize("samples", [1, 2, 4])
def test_as_many_inferences_as_the_tree_has_nodes(samples: int) -> None:
    table = Table(TREE)
    tree = PrefixTree(table, Words())
    found = [word(node.candidate) for node in prioritized(tree, samples=samples)]
    beginnings = {each[:length] for each in found for length in range(len(each) + 1)}
    assert sorted(table.asked) == sorted(beginnings), "a prefix was asked for twice, or in vain"
    assert tree.inferences == len(beginnings)


def test_branches_that_are_completed_together_need_fewer_questions() -> None:
    alone, together = (PrefixTree(Table(TREE), Words()) for _ in range(2))
    assert len(list(prioritized(alone))) == len(list(prioritized(together, width=3))) == 6
    assert alone.calls == alone.inferences == 8
    assert together.inferences == 8
    assert together.calls < 8


def test_the_first_few_are_given_before_the_rest_is_asked_for() -> None:
    table = Table(TREE)
    next(islice(priority_samples(table, Words()), 1))
    assert table.asked == ["", "X", "XX"]


def test_an_unknown_ranking_is_refused() -> None:
    with pytest.raises(PlanishError, match="not ranked by 'worst'"):
        priority_words(Table(TREE), by="worst")


@pytest.mark.parametrize("row", [{}, {"X": math.nan}])
def test_a_policy_that_says_nothing_is_refused(row: Mapping[str, float]) -> None:
    with pytest.raises(PlanishError, match="has no probabilities after"):
        priority_words(Table({"": row}))


def test_a_way_is_improved_until_leaving_it_gains_nothing() -> None:
    cost = {"": 9.0, "X": 8.0, "XX": 7.0, "XY": 6.0, "Y": 8.0, "YY": 5.0, "YX": 4.0}
    rounds, asked = rollout_iteration(Table(TREE), Words()), list[list[str]]()
    with contextlib.suppress(StopIteration):
        batch = list(next(rounds))
        while True:
            asked.append([word(candidate) for candidate in batch])
            batch = list(rounds.send({one.hash: cost.get(word(one)) for one in batch}))
    # The policy's own way; all ways off it; those off the way to the best one; there nothing is better.
    assert asked == [["", "X", "XX"], ["Y", "YY", "XY"], ["YX", "YXZ"], []]


def test_the_most_probable_steps_are_followed() -> None:
    assert [word(c) for c in greedy_rollout(Table(TREE), Words())] == ["XX"]
    assert [word(c) for c in greedy_rollout(Table(TREE), Words(), whole=True)] == ["", "X", "XX"]


class Judge(Table):
    """Holds long words for good, and of them those that begin late in the alphabet."""

    def value(self, states: Sequence[PolicyState]) -> Sequence[float]:
        words = [word(state.candidate) for state in states]
        return [len(each) + ord(each[0]) / 100 for each in words]


def test_of_several_ways_the_most_hopeful_end_counts() -> None:
    assert [word(c) for c in best_rollout(Judge(TREE), Words())] == ["YXZ"]
    assert [word(c) for c in best_rollout(Judge(TREE), Words(), ways=3)] == ["YY"]
    assert [word(c) for c in best_rollout(Judge(TREE), Words(), ways=1)] == ["XX"]


def test_a_policy_that_cannot_judge_ends_where_its_most_probable_steps_lead() -> None:
    assert [word(c) for c in best_rollout(Table(TREE), Words())] == ["XX"]


def test_no_step_leads_back() -> None:
    """A and B undo each other, and are probable for ever."""
    to_and_fro = {"": {"A": 0.9, "X": 0.1}, "A": {"B": 0.9, "X": 0.1}}
    assert [word(c) for c in greedy_rollout(Table(to_and_fro), Words())] == ["AX"]


def test_the_end_is_no_way_out_of_a_loop() -> None:
    """B leads back; of the end and X the one is more probable, but it may be unlikely all the same."""
    to_and_fro = {"": {"A": 0.9, "X": 0.1}, "A": {"B": 0.97, ".": 0.02, "X": 0.01}}
    assert [word(c) for c in greedy_rollout(Table(to_and_fro), Words())] == ["AX"]
    ending = {"": {"A": 0.9, "X": 0.1}, "A": {"B": 0.6, ".": 0.3, "X": 0.1}}
    assert [word(c) for c in greedy_rollout(Table(ending), Words())] == ["A"]


class Anagrams(Words):
    """What a word makes has its letters; in which order they came counts for what can follow."""

    def program_key(self, candidate: Candidate) -> str:
        return "".join(sorted(word(candidate)))


def test_a_program_is_sampled_once_whatever_can_follow_it() -> None:
    either = {"": {"X": 0.6, "Y": 0.4}, "X": {"Y": 1.0}, "Y": {"X": 0.9, "Y": 0.1}}
    samples = list(priority_samples(Table(either), Words()))
    assert [word(c) for c in new_programs(Anagrams(), samples)] == ["XY", "YY"]
    assert [word(c) for c in new_programs(Words(), samples)] == ["XY", "YX", "YY"]


def test_a_policy_that_is_timed_answers_alike() -> None:
    timed = TimedPolicy(Table(TREE))
    assert timed.seconds == 0
    assert [word(c) for c in priority_samples(timed, Words())] == [
        word(c) for c in priority_samples(Table(TREE), Words())
    ]
    assert timed.seconds > 0
