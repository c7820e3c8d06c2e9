"""What a run claims is its own until it ends, however it ends."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from planish.core import Candidate
from planish.store import Store, locks, open_store
from planish.testing.stored import make_candidate, make_task, make_trial
from planish.testing.stores import begin


@pytest.fixture
def two(place: str) -> Generator[tuple[Store, Store]]:
    with open_store(place) as one, open_store(place) as other:
        yield one, other


def test_a_claim_is_of_one_run_until_it_ends(two: tuple[Store, Store]) -> None:
    one, other = two
    mine, theirs = begin(one), begin(other)
    five = [make_candidate(number) for number in range(5)]
    assert one.claim(mine, five, 3) == five[:3]
    assert other.claim(theirs, five, 5) == five[3:]
    assert one.claim(mine, five, 5) == five[:3]
    elsewhere = begin(other, make_task("round"))
    assert other.claim(elsewhere, five, 5) == five
    one.finish_run(mine)
    assert other.claim(theirs, five, 4) == five[:4]


def test_a_file_tells_whether_other_runs_are_under_way(two: tuple[Store, Store], place: str) -> None:
    one, other = two
    server = place.startswith("postgresql")  # it is for many
    begin(one)
    assert one.is_shared is server
    theirs = begin(other)
    assert one.is_shared
    other.finish_run(theirs)
    assert one.is_shared is server


def test_the_claims_of_a_killed_process_end_with_it(place: str) -> None:
    five: list[Candidate] = [make_candidate(number) for number in range(5)]
    with open_store(place) as store:
        run_id = begin(store)
        killed = open_store(place)
        assert killed.claim(begin(killed), five, 5) == five
        assert store.claim(run_id, five, 5) == []
        killed.close()
        assert store.claim(run_id, five, 5) == five


def test_a_claim_lasts_no_longer_than_its_lease(
    two: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    mine, theirs = begin(one), begin(other)
    monkeypatch.setattr(locks, "LEASE_S", -1.0)
    assert one.claim(mine, [make_candidate(0)], 1)
    assert other.claim(theirs, [make_candidate(0)], 1) == [make_candidate(0)]
    one.add_trials(mine, [make_trial(0)])


def test_a_claim_that_is_renewed_lasts(two: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = two
    mine, theirs = begin(one), begin(other)
    with monkeypatch.context() as patch:
        patch.setattr(locks, "LEASE_S", -1.0)
        one.claim(mine, [make_candidate(0), make_candidate(1)], 2)
    one.renew_claims(mine)
    assert other.claim(theirs, [make_candidate(0), make_candidate(1)], 2) == []
