"""Which lists a grammar lets through, beside a check by counting."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from planish.models.writer import ListGrammar

GRAMMAR = ListGrammar(tokens=5, longest=4, once=(1, 3))
LISTS = st.lists(st.integers(0, 4), max_size=7)


def is_legal(tokens: Sequence[int]) -> bool:
    return 1 <= len(tokens) <= 4 and all(tokens.count(each) <= 1 for each in GRAMMAR.once)


def accepted(tokens: Sequence[int]) -> bool:
    state = 0
    for token in tokens:
        if not GRAMMAR.legal(state)[token]:
            return False
        state = GRAMMAR.after(state, token)
    return bool(GRAMMAR.legal(state)[GRAMMAR.end])


@given(LISTS)
def test_it_accepts_what_is_legal(tokens: Sequence[int]) -> None:
    assert accepted(tokens) == is_legal(tokens)


@given(LISTS)
def test_a_repaired_list_is_legal_and_a_legal_one_stays(tokens: Sequence[int]) -> None:
    found = GRAMMAR.repaired(tokens)
    assert is_legal(found) or not tokens
    if is_legal(tokens):
        assert found == tuple(tokens)


def test_what_may_not_stand_there_is_left_out() -> None:
    assert GRAMMAR.repaired([1, 0, 1, 3, 3, 2, 2]) == (1, 0, 3, 2)
    assert GRAMMAR.repaired([]) == ()
