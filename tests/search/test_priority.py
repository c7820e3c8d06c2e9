"""Priority Sampling, beside algorithm 1 of the thesis written down as it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planish.core import PlanishError
from planish.search.decoding import RANKINGS, PrefixTree, prioritised, priority_samples
from search.words import TREE, Table, Words, word

LETTERS = "XYZ"
END = "."


def words(table: Table, branches: int | None = None, by: str = "last") -> list[str]:
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


@settings(deadline=None, max_examples=60)
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
    nodes = prioritised(tree, samples=samples, branches=branches, by=by, width=width)
    found = [word(node.candidate) for node in nodes]
    assert found == algorithm_1(table, samples, branches, by)
    assert len(set(found)) == len(found)


def test_by_hand() -> None:
    """Greedily XX; of what was left, Y of the root (0.4), XY (0.3), X (0.2), and of YX (0.1) its end last."""
    assert words(Table(TREE)) == ["XX", "YY", "XY", "X", "YXZ", "YX"]


def test_branches_are_ranked_by_more_than_their_own_step() -> None:
    skewed = {"": {"X": 0.9, "Y": 0.1}, "X": {"X": 0.5, "Y": 0.5}, "Y": {"X": 0.45, "Y": 0.55}}
    assert words(Table(skewed)) == ["XX", "XY", "YY", "YX"]
    unlike = {"": {"X": 0.6, "Y": 0.4}, "X": {"X": 0.55, "Y": 0.45}}
    assert words(Table(unlike)) == ["XX", "XY", "Y"]
    assert words(Table(unlike), by="whole") == ["XX", "Y", "XY"], "0.4 and 0.27"
    assert words(Table(unlike), by="mean") == ["XX", "XY", "Y"], "0.4, and the root of 0.27, 0.52"


def test_branches_are_limited() -> None:
    assert words(Table(TREE), branches=1) == ["XX"]
    assert words(Table(TREE), branches=2) == ["XX", "YY", "XY", "YXZ", "YX"]


@pytest.mark.parametrize("samples", [1, 2, 4])
def test_as_many_inferences_as_the_tree_has_nodes(samples: int) -> None:
    table = Table(TREE)
    tree = PrefixTree(table, Words())
    found = [word(node.candidate) for node in prioritised(tree, samples=samples)]
    beginnings = {each[:length] for each in found for length in range(len(each) + 1)}
    assert sorted(table.asked) == sorted(beginnings), "a prefix was asked for twice, or in vain"
    assert tree.inferences == len(beginnings)


def test_branches_that_are_completed_together_need_fewer_questions() -> None:
    alone, together = (PrefixTree(Table(TREE), Words()) for _ in range(2))
    assert len(list(prioritised(alone))) == len(list(prioritised(together, width=3))) == 6
    assert alone.calls == alone.inferences == 8
    assert together.inferences == 8
    assert together.calls < 8


def test_the_first_few_are_given_before_the_rest_is_asked_for() -> None:
    table = Table(TREE)
    next(islice(priority_samples(table, Words()), 1))
    assert table.asked == ["", "X", "XX"]


def test_an_unknown_ranking_is_refused() -> None:
    with pytest.raises(PlanishError, match="not ranked by 'worst'"):
        words(Table(TREE), by="worst")


@pytest.mark.parametrize("row", [{}, {"X": math.nan}])
def test_a_policy_that_says_nothing_is_refused(row: Mapping[str, float]) -> None:
    with pytest.raises(PlanishError, match="gives no probabilities after"):
        words(Table({"": row}))
