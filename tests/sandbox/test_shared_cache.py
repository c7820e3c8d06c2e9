"""Caches that a process shares with its workers: copies here are of one folder."""

import pickle
from pathlib import Path

from planish.measure import SharedBaselineTime
from planish.sandbox.scratch import is_shared, shared_folder
from planish.sandbox.shared_cache import from_elsewhere, shared_cache


def test_a_copy_on_this_machine_is_of_the_same_folder_and_does_not_end_it() -> None:
    cache = shared_cache(1000, evicts=False)
    cache.put("a", b"1")
    copy = pickle.loads(pickle.dumps(cache))
    assert copy == cache
    assert copy.get("a") == b"1"
    del copy
    assert cache.get("a") == b"1"


def test_a_copy_from_another_machine_has_a_folder_of_its_own_which_ends_with_it() -> None:
    cache = shared_cache(1000, evicts=False)
    cache.put("a", b"1")
    with from_elsewhere():
        copy = pickle.loads(pickle.dumps(cache))
    assert (copy.capacity, copy.evicts, copy.get("a")) == (1000, False, None)
    assert copy.folder != cache.folder
    assert is_shared(copy.folder)
    assert pickle.loads(pickle.dumps(copy)) == copy  # as its workers have it
    folder: Path = copy.folder
    del copy
    assert not folder.exists()


def test_what_is_shared_is_beneath_one_folder(tmp_path: Path) -> None:
    assert is_shared(shared_folder())
    assert not is_shared(tmp_path)
    assert not is_shared(shared_folder().parent)


def test_the_time_of_a_baseline_is_known_on_another_machine_if_it_was_when_it_was_sent() -> None:
    sent = SharedBaselineTime()
    early = pickle.dumps(sent)
    sent.set(2.0)
    late = pickle.dumps(sent)
    with from_elsewhere():
        before, after = pickle.loads(early), pickle.loads(late)
    assert (before.known, before.seconds(3.0), before.seconds(4.0)) == (None, 3.0, 3.0)
    assert (after.known, after.seconds(3.0)) == (2.0, 2.0)
    sent.set(5.0)
    assert after.known == 2.0
