"""Candidates as a store returns them: text and hash first, steps when they are asked for."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import pytest

from planish.core import Candidate, ProgramError, Step, candidate_from_json, stored_candidate


@dataclass(frozen=True)
class Turn(Step):
    by: int
    about: tuple[str, ...] = ("x",)


KNOWN = {"Turn": Turn}
WHOLE = Candidate((Turn(1), Turn(2, ("y", "z"))))


def stored(text: str, seen: set[str] | None = None) -> Candidate:
    return stored_candidate(text, WHOLE.hash, KNOWN, set() if seen is None else seen)


def test_a_stored_candidate_is_as_it_was() -> None:
    assert stored(WHOLE.text) == WHOLE
    assert stored(WHOLE.text) == WHOLE
    assert hash(stored(WHOLE.text)) == hash(WHOLE)
    assert stored(WHOLE.text).steps == WHOLE.steps
    assert (stored(WHOLE.text).text, stored(WHOLE.text).hash) == (WHOLE.text, WHOLE.hash)
    assert str(stored(WHOLE.text)) == str(WHOLE)
    assert stored("[]") == Candidate()


@pytest.mark.parametrize("asked", [False, True])
def test_a_stored_candidate_can_be_copied(asked: bool) -> None:
    candidate = stored(WHOLE.text)
    assert not asked or candidate.steps
    for twin in (pickle.loads(pickle.dumps(candidate)), copy.copy(candidate), copy.deepcopy(candidate)):
        assert twin == WHOLE
        assert twin.hash == WHOLE.hash


def test_a_step_that_has_got_an_option_since_has_another_text() -> None:
    short = '[["Turn",{"by":1}]]'
    assert stored(short) == Candidate((Turn(1),))
    assert stored(short).text == Candidate((Turn(1),)).text != short
    assert stored(short).hash == Candidate((Turn(1),)).hash


@pytest.mark.parametrize("text", ['[["Jump",{"by":1}]]', '[["Turn",{"by":1,"about":[],"over":2}]]'])
def test_what_the_level_has_no_longer_is_reported_at_once(text: str) -> None:
    with pytest.raises(ProgramError):
        stored(text)


def test_what_was_seen_of_other_candidates_changes_nothing() -> None:
    odd = Candidate((Turn(1, ("}],[",)), Turn(2, ('}],["Turn', '"}],["')), Turn(1)))
    seen: set[str] = set()
    for candidate in [WHOLE, odd, Candidate(), Candidate((Turn(1),)), odd, WHOLE, Candidate()] * 2:
        found = stored(candidate.text, seen)
        assert (found.steps, found.text) == (candidate.steps, candidate.text)


@pytest.mark.parametrize("text", ["", "[[", "}]]", "x{0}", "{0}x", "[{0}]", "[{0},{0}]", "{0},{0}"])
def test_a_text_that_is_no_list_of_steps_is_refused_whatever_was_seen(text: str) -> None:
    seen: set[str] = set()
    assert stored(WHOLE.text, seen) == WHOLE
    with pytest.raises((ValueError, TypeError)):
        stored(text.replace("{0}", WHOLE.text), seen)


def test_no_other_attribute_is_made_up() -> None:
    for candidate in (stored(WHOLE.text), candidate_from_json([], KNOWN)):
        assert not hasattr(candidate, "stepz")
