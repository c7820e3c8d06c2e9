"""A policy that is made of lists."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from planish.core import Candidate, Objective, PlanishError, Searcher, Space, Step
from planish.levels.graph.passes import Selection, selection_of
from planish.levels.graph.space import PassVocabulary, SelectionSpace
from planish.models.named_policies import ESCAPE, SeedPolicy, policy_named
from planish.search.decoding import PrefixTree, prioritized, priority_samples
from planish.search.policies import PolicySamples, PrioritySampling
from planish.testing.searchers import SearcherConformance
from planish.testing.synthetic import Lattice
from search.table_policy import Take, word


class Alphabet(Space):
    """Words of any alphabet but Q; the same letter again changes nothing."""

    def start(self) -> Candidate:
        return Candidate()

    def state_key(self, candidate: Candidate) -> str:
        return word(candidate)

    def steps(self, candidate: Candidate) -> Sequence[Step]:  # noqa: ARG002
        return [Take(letter) for letter in "ABC"]

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        return candidate if candidate.steps[-1:] == (step,) else candidate.then(step)


def spelled(alphabet: str) -> Candidate:
    return Candidate(tuple(map(Take, alphabet)))


def listed(*words: str) -> SeedPolicy:
    return SeedPolicy([*map(spelled, words)])


def after(policy: SeedPolicy, taken: str) -> Mapping[str, float]:
    state = policy.begin(Alphabet())
    for letter in taken:
        state = policy.extend(state, Take(letter))
    (found,) = policy.log_probabilities([state])
    return {"." if step is None else step.letter: math.exp(p) for step, p in found.items()}  # type: ignore[attr-defined]


def test_a_step_weighs_what_the_lists_do_that_go_on_with_it() -> None:
    """AB weighs 2/3, and CAC 1/3; B follows A with 2/3 of what follows it anywhere, C with 1/3."""
    policy = listed("AB", "CAC")
    assert after(policy, "") == pytest.approx({"A": 2 / 3, "C": 1 / 3})
    whole = 2 / 3 + ESCAPE
    assert after(policy, "A") == pytest.approx(
        {"B": (2 / 3 + ESCAPE * 2 / 3) / whole, "C": ESCAPE / 3 / whole}
    )
    assert after(policy, "AC") == pytest.approx({"A": 0.5, ".": 0.5}), "no list begins so"
    assert after(policy, "CAC") == pytest.approx({".": 1}), "none is longer"


def test_samples_begin_with_the_lists_and_go_beyond_them() -> None:
    found = [word(each) for each in priority_samples(listed("AB", "CAC"), Alphabet())]
    assert found[:2] == ["AB", "CAC"]
    assert {"CAB", "ACA"} <= {*found}
    assert len({*found}) == len(found)


def test_what_changes_nothing_is_no_step() -> None:
    assert after(listed("AAB"), "A") == pytest.approx({"B": 1})
    assert after(listed("AA"), "A") == pytest.approx({".": 1})


def test_samples_are_as_probable_as_the_lists_make_them() -> None:
    tree = PrefixTree(listed("AB", "CAC"), Alphabet())
    found = {word(node.candidate): math.exp(node.log_probability) for node in prioritized(tree)}
    first = 2 / 3 * (2 / 3 + ESCAPE * 2 / 3) / (2 / 3 + ESCAPE)
    assert found["AB"] == pytest.approx(first), "AB ends there, since none is longer that begins so"
    assert found["CAC"] > 0
    assert "A" not in found, "no list ends after A"
    assert not any("X" in each for each in found), "none has an X"


def test_no_lists_make_no_policy() -> None:
    with pytest.raises(PlanishError, match="no lists to make a policy of"):
        listed()


def test_lists_of_graph_passes_are_composed() -> None:
    """Its steps have an order of their own; nothing is asked about which passes matter."""
    fold, fuse = "onnxoptimizer.eliminate_identity", "onnxscript.optimize"
    out = frozenset({"ConvAddFusion"})
    lists = [Selection((fold, fuse)), Selection((fuse,), out), Selection((fold,), out, offline=True)]

    def vocabulary() -> PassVocabulary:
        raise AssertionError("finding out which passes matter takes time")

    space = SelectionSpace(vocabulary, seeds=lambda _: lists)
    found = list(priority_samples(policy_named(space, "auto"), space))
    assert {each.candidate for each in lists} <= {*found}
    assert Selection((fold, fuse), out).candidate in found
    assert all(selection_of(each).candidate == each for each in found)


class TestPrioritySampling(SearcherConformance):
    """Of the lattice it knows two points, and what is between."""

    gap = math.inf

    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return PrioritySampling(space, objectives, seed)


class TestPolicySamples(SearcherConformance):
    gap = math.inf

    def searcher(self, space: Lattice, objectives: Sequence[Objective], seed: int) -> Searcher:
        return PolicySamples(space, objectives, seed, method="temperature")


@pytest.mark.parametrize("made", [PrioritySampling, PolicySamples])
def test_searchers_take_what_the_space_begins_with(made: type[PrioritySampling | PolicySamples]) -> None:
    """The lattice describes nothing to a network, but has seeds: that is what auto takes."""
    searcher = made(Lattice(), [Objective("time_s", "s")], 0)
    assert set(searcher.ask(1)) <= set(Lattice().seeds())
    with pytest.raises(PlanishError, match="describes no candidate"):
        made(Lattice(), [Objective("time_s", "s")], 0, policy="llvm")
