"""Candidates as a store gives them back: text and hash first, steps when they are asked for."""

from __future__ import annotations

import copy
import json
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


def stored(text: str) -> Candidate:
    return stored_candidate(json.loads(text), text, WHOLE.hash, KNOWN)


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
def test_what_the_level_has_no_longer_is_told_at_once(text: str) -> None:
    with pytest.raises(ProgramError):
        stored(text)


def test_no_other_attribute_is_made_up() -> None:
    for candidate in (stored(WHOLE.text), candidate_from_json([], KNOWN)):
        assert not hasattr(candidate, "stepz")
