"""Searchers that follow a policy, on a policy that is a table."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import pytest

from planish.core import Candidate, PolicyState, Space, Step
from planish.search.following import followed, improved, priority_samples
from planish.search.timed_policy import TimedPolicy


@dataclass(frozen=True)
class Take(Step):
    """A letter."""

    letter: str


@dataclass(frozen=True)
class At:
    """Where the table stands."""

    candidate: Candidate


class Words:
    """Words of letters; the state is the word, but A and B undo each other."""

    def start(self) -> Candidate:
        return Candidate()

    def state(self, candidate: Candidate) -> str:
        return word(candidate).replace("AB", "").replace("BA", "")


def word(candidate: Candidate) -> str:
    return "".join(step.letter for step in candidate.steps if isinstance(step, Take))


@dataclass
class Table:
    """Probabilities of the next letter by the word so far; "." is the end, and no entry is the end too."""

    table: Mapping[str, Mapping[str, float]]
    asked: list[str] = field(default_factory=list[str])

    def begin(self, space: Space) -> At:
        return At(space.start())

    def extend(self, state: PolicyState, step: Step) -> At:
        return At(state.candidate.then(step))

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        return [self._row(word(state.candidate)) for state in states]

    def _row(self, so_far: str) -> Mapping[Step | None, float]:
        self.asked.append(so_far)
        row = self.table.get(so_far, {".": 1.0})
        return {None if letter == "." else Take(letter): math.log(p) for letter, p in row.items()}


TREE = {
    "": {"X": 0.6, "Y": 0.4},
    "X": {"X": 0.5, "Y": 0.3, ".": 0.2},
    "Y": {"X": 0.1, "Y": 0.9},
    "YX": {"Z": 0.75, ".": 0.25},
}


def words(table: Table, branches: int | None = None, *, whole: bool = False) -> list[str]:
    return [word(c) for c in priority_samples(table, Words(), branches=branches, whole=whole)]


def test_a_way_is_improved_until_leaving_it_gains_nothing() -> None:
    cost = {"": 9.0, "X": 8.0, "XX": 7.0, "XY": 6.0, "Y": 8.0, "YY": 5.0, "YX": 4.0}
    rounds, asked = improved(Table(TREE), Words()), list[list[str]]()
    with contextlib.suppress(StopIteration):
        batch = list(next(rounds))
        while True:
            asked.append([word(candidate) for candidate in batch])
            batch = list(rounds.send({one.hash: cost.get(word(one)) for one in batch}))
    # The policy's own way; all ways off it; those off the way to the best one; there nothing is better.
    assert asked == [["", "X", "XX"], ["Y", "YY", "XY"], ["YX", "YXZ"], []]


def test_the_most_probable_steps_are_followed() -> None:
    assert [word(c) for c in followed(Table(TREE), Words())] == ["XX"]
    assert [word(c) for c in followed(Table(TREE), Words(), whole=True)] == ["", "X", "XX"]


def test_no_step_leads_back() -> None:
    """A and B undo each other, and are probable for ever."""
    to_and_fro = {"": {"A": 0.9, "X": 0.1}, "A": {"B": 0.9, "X": 0.1}}
    assert [word(c) for c in followed(Table(to_and_fro), Words())] == ["AX"]


def test_the_end_is_no_way_out_of_a_loop() -> None:
    """B leads back; of the end and X the one is more probable, but it may be unlikely all the same."""
    to_and_fro = {"": {"A": 0.9, "X": 0.1}, "A": {"B": 0.97, ".": 0.02, "X": 0.01}}
    assert [word(c) for c in followed(Table(to_and_fro), Words())] == ["AX"]
    ending = {"": {"A": 0.9, "X": 0.1}, "A": {"B": 0.6, ".": 0.3, "X": 0.1}}
    assert [word(c) for c in followed(Table(ending), Words())] == ["A"]


def test_samples_come_as_algorithm_1_has_them() -> None:
    """Greedily XX; of what was left, Y of the root (0.4), XY (0.3), X (0.2), and of YX (0.1) its end last."""
    assert words(Table(TREE)) == ["XX", "YY", "XY", "X", "YXZ", "YX"]


def test_by_the_whole_way_the_order_is_another() -> None:
    """Y.Y has 0.36, XX 0.30, XY 0.18, X 0.12: the first is greedy still."""
    assert words(Table(TREE), whole=True) == ["XX", "YY", "XY", "X", "YXZ", "YX"]
    skewed = {"": {"X": 0.9, "Y": 0.1}, "X": {"X": 0.5, "Y": 0.5}, "Y": {"X": 0.45, "Y": 0.55}}
    assert words(Table(skewed)) == ["XX", "XY", "YY", "YX"]
    unlike = {"": {"X": 0.6, "Y": 0.4}, "X": {"X": 0.55, "Y": 0.45}}
    assert words(Table(unlike)) == ["XX", "XY", "Y"]
    assert words(Table(unlike), whole=True) == ["XX", "Y", "XY"]


def test_branches_are_limited() -> None:
    assert words(Table(TREE), branches=1) == ["XX"]
    assert words(Table(TREE), branches=2) == ["XX", "YY", "XY", "YXZ", "YX"]


@pytest.mark.parametrize("samples", [1, 2, 4])
def test_as_many_inferences_as_the_tree_has_nodes(samples: int) -> None:
    table = Table(TREE)
    list(islice(priority_samples(table, Words()), samples))
    assert len(table.asked) == len(set(table.asked)), "a prefix was asked for twice"


def test_a_policy_that_is_timed_answers_alike() -> None:
    timed = TimedPolicy(Table(TREE))
    assert timed.seconds == 0
    assert [word(c) for c in priority_samples(timed, Words())] == words(Table(TREE))
    assert timed.seconds > 0
