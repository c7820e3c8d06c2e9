"""Runs are deleted, and copied from one store to another."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from planish.core import StoreError
from planish.store import ResultRow, Store, open_store
from planish.testing.stores import STEPS, begin, make_candidate, make_task, make_trial


def run(store: Store, trials: int = 3, name: str = "flat") -> str:
    """Store a finished run."""
    run_id = begin(store, make_task(name))
    store.add_trials(run_id, [make_trial(index) for index in range(trials)])
    store.save_result(run_id, [ResultRow(make_candidate(0), 2.0, {"interval": [1.5, 2.5]})])
    store.finish_run(run_id)
    return run_id


def content(store: Store, run_id: str) -> object:
    found = store.run(run_id)
    task = replace(store.task(found.task_key), created=0.0)  # each store has its own
    return found, task, store.run_trials(run_id, STEPS), store.result_rows(run_id, STEPS)


def test_a_deleted_run_leaves_nothing(location: str) -> None:
    with open_store(location) as store:
        kept, gone, alone = run(store), run(store), run(store, name="another")
        before = content(store, kept)
        assert [store.delete_run(gone[:7]), store.delete_run(alone)] == [gone, alone]
        assert [found.id for found in store.runs()] == [kept]
        assert content(store, kept) == before
        assert len(store.trials(make_task().key, STEPS)) == 3
        with pytest.raises(StoreError, match="no task"):
            store.task(make_task("another").key)
        with pytest.raises(StoreError, match=f"no run '{gone}'"):
            store.delete_run(gone)


def test_a_run_that_is_written_is_not_deleted(location: str) -> None:
    with open_store(location) as store, open_store(location) as other:
        run_id = begin(store)
        with pytest.raises(StoreError, match="another process is writing"):
            other.delete_run(run_id)
        store.add_trials(run_id, [make_trial(0)])
        store.finish_run(run_id)
        other.delete_run(run_id)
        assert store.runs() == []


def test_a_run_that_is_written_here_is_not_deleted(location: str) -> None:
    with open_store(location) as store:
        run_id = begin(store)
        with pytest.raises(StoreError, match="is being written here"):
            store.delete_run(run_id)
        store.add_trials(run_id, [make_trial(0)])
        assert store.run_trials(run_id, STEPS) == [make_trial(0)]


def test_what_a_deleted_run_had_leased_is_free(location: str) -> None:
    with open_store(location) as store:
        store.lease(begin(store), [make_candidate(0)], 1)
    with open_store(location) as store:  # as after a kill: the run has not ended
        run_id = store.runs()[0].id
        store.delete_run(run_id)
    with open_store(location) as store:
        assert store.lease(begin(store), [make_candidate(0)], 1) == [make_candidate(0)]


def test_a_run_is_the_same_in_another_store(location: str, tmp_path: Path) -> None:
    with open_store(tmp_path / "other.db") as source, open_store(location) as target:
        own = run(target, 2)
        first, second = run(source), run(source, 5)
        assert [target.take_run(source, each) for each in (first, second, first)] == [True, True, False]
        for run_id in (first, second):
            assert content(target, run_id) == content(source, run_id)
        assert len(target.trials(make_task().key, STEPS)) == 10
        assert {found.id for found in target.runs()} == {own, first, second}


def test_of_two_states_of_a_run_the_further_one_stays(location: str, tmp_path: Path) -> None:
    with open_store(location) as store, open_store(tmp_path / "copy.db") as copy:
        run_id = run(store)
        assert copy.take_run(store, run_id)
        copy.resume_run(run_id)
        copy.add_trials(run_id, [make_trial(3)])
        copy.finish_run(run_id)
        assert not copy.take_run(store, run_id)
        assert store.take_run(copy, run_id)
        assert content(store, run_id) == content(copy, run_id)
        assert len(store.run_trials(run_id, STEPS)) == 4


@pytest.mark.parametrize("ends", [False, True])
def test_the_result_of_a_run_is_not_replaced_by_a_state_before_it(
    location: str, tmp_path: Path, ends: bool
) -> None:
    with open_store(location) as store, open_store(tmp_path / "copy.db") as copy:
        run_id = begin(store)
        store.add_trials(run_id, [make_trial(0)])
        copy.take_run(store, run_id)  # as of a file that was copied while the run went on
        store.save_result(run_id, [ResultRow(make_candidate(0), 2.0, {})])
        if ends:
            store.finish_run(run_id)
        known = content(store, run_id)
        assert not store.take_run(copy, run_id)
        assert content(store, run_id) == known
        assert copy.take_run(store, run_id)
        assert copy.result_rows(run_id, STEPS) == store.result_rows(run_id, STEPS) != []


def test_a_run_that_goes_on_here_is_not_replaced(location: str, tmp_path: Path) -> None:
    with (
        open_store(location) as store,
        open_store(location) as other,
        open_store(tmp_path / "copy.db") as copy,
    ):
        run_id = run(store)
        copy.take_run(store, run_id)
        copy.resume_run(run_id)
        copy.add_trials(run_id, [make_trial(3)])
        store.resume_run(run_id)
        with pytest.raises(StoreError, match="another process is writing"):
            other.take_run(copy, run_id)


@pytest.mark.parametrize("damage", ["UPDATE trials SET host = 'x'", "DELETE FROM trials WHERE id = 2"])
def test_a_damaged_run_is_not_copied_and_can_be_deleted(tmp_path: Path, damage: str) -> None:
    with open_store(tmp_path / "a.db") as store:
        run_id = run(store)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute(damage)
    connection.close()
    with open_store(tmp_path / "a.db") as store, open_store(tmp_path / "b.db") as target:
        with pytest.raises(StoreError, match=f"planish runs delete {run_id}"):
            target.take_run(store, run_id)
        assert target.runs() == []
        store.delete_run(run_id)
        assert store.runs() == []
