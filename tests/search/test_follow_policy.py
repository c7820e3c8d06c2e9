"""Searchers that follow a policy, on a policy that is a table."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from planish.core import Candidate, PolicyState
from planish.search.decoding import priority_samples
from planish.search.policies import TimedPolicy, followed, hoped, improved, new_programs
from search.words import TREE, Table, Words, word


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


class Judge(Table):
    """Holds long words for good, and of them those that begin late in the alphabet."""

    def worth(self, states: Sequence[PolicyState]) -> Sequence[float]:
        words = [word(state.candidate) for state in states]
        return [len(each) + ord(each[0]) / 100 for each in words]


def test_of_several_ways_the_most_hopeful_end_counts() -> None:
    assert [word(c) for c in hoped(Judge(TREE), Words())] == ["YXZ"]
    assert [word(c) for c in hoped(Judge(TREE), Words(), ways=3)] == ["YY"]
    assert [word(c) for c in hoped(Judge(TREE), Words(), ways=1)] == ["XX"]


def test_a_policy_that_cannot_judge_ends_where_its_most_probable_steps_lead() -> None:
    assert [word(c) for c in hoped(Table(TREE), Words())] == ["XX"]


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


class Anagrams(Words):
    """What a word makes has its letters; in which order they came counts for what can follow."""

    def identity(self, candidate: Candidate) -> str:
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
