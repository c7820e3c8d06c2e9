"""Whatever keeps an SQLite store from being used is one clear error, and nothing stored is lost."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from planish.core import StoreError, Trial
from planish.store import Store, open_store
from planish.testing.stored import STEPS, make_task, make_trial
from planish.testing.stores import begin
from store.mounts import fill, grow, small_disk, small_files, write_protected

HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    connection.execute(statement)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a store with ten trials."""
    place = tmp_path / "kept" / "planish.db"
    with open_store(place) as store:
        store.add_trials(begin(store), [make_trial(i) for i in range(10)])
    return place


def _kept(place: Path, *, read_only: bool = True) -> int:
    with open_store(place, read_only=read_only) as store:
        kept = store.trials(make_task().key, STEPS)
    assert kept == [make_trial(i) for i in range(len(kept))]
    return len(kept)


@contextmanager
def _held(place: Path, *statements: str) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, str(place), *statements]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            holder.kill()


def test_a_locked_store_is_an_error_and_works_when_it_is_let_go(place: Path) -> None:
    with open_store(place, timeout=0.1) as store:
        with _held(place, "BEGIN EXCLUSIVE"):
            assert len(store.trials(make_task().key, STEPS)) == 10
            with pytest.raises(StoreError, match="is locked by another process"):
                begin(store)
        begin(store)


def test_a_store_held_for_one_process_alone_cannot_be_opened(place: Path) -> None:
    exclusive = "PRAGMA locking_mode=EXCLUSIVE", "BEGIN EXCLUSIVE"
    with _held(place, *exclusive):
        for read_only in (True, False):
            with pytest.raises(StoreError, match="is locked by another process"):
                open_store(place, read_only=read_only, timeout=0.1)
    assert _kept(place) == 10


def test_a_lock_is_waited_for(place: Path) -> None:
    with open_store(place, timeout=60) as store, _held(place, "BEGIN IMMEDIATE") as holder:
        let_go = threading.Timer(0.2, holder.communicate)
        let_go.start()
        begin(store)
        let_go.join()
        assert holder.returncode == 0


def test_a_folder_that_cannot_be_written_can_be_read(place: Path) -> None:
    with write_protected(place.parent):
        assert _kept(place) == 10
        with pytest.raises(StoreError, match="is read-only") as caught:
            open_store(place)
        assert "--store" in caught.value.hint
    assert _kept(place, read_only=False) == 10


def test_a_log_in_a_folder_that_cannot_be_written_is_never_passed_over(place: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "planish.db"
    copy.parent.mkdir()
    with open_store(place) as store:
        store.add_trials(begin(store), [make_trial(10)])
        for suffix in ("", "-wal"):
            shutil.copy(f"{place}{suffix}", f"{copy}{suffix}")
    with write_protected(copy.parent), pytest.raises(StoreError, match="cannot be opened"):
        open_store(copy, read_only=True)
    assert _kept(copy, read_only=False) == 11


def _large(index: int) -> Trial:
    return make_trial(index, steps=20)


def _fill(store: Store, run_id: str) -> int:
    """Add trials until the disk is full; gives the number of those stored."""
    stored, error = fill(lambda index: store.add_trials(run_id, [_large(index)]))
    assert "disk" in str(error)
    assert "stored before is safe" in error.hint
    assert len(store.run_trials(run_id, STEPS)) == stored > 0
    return stored


def _added(place: Path, run_id: str) -> int:
    with open_store(place, read_only=True) as store:
        kept = store.run_trials(run_id, STEPS)
    assert kept == [_large(i) for i in range(len(kept))]
    return len(kept)


def test_a_full_disk_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    place = tmp_path / "small" / "planish.db"
    with small_disk(place.parent, 600):
        with open_store(place) as store:
            run_id = begin(store)
            stored = _fill(store, run_id)
            grow(place.parent)
            store.add_trials(run_id, [_large(stored)])
        assert _added(place, run_id) == stored + 1


def test_a_limit_on_files_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    place = tmp_path / "planish.db"
    with open_store(place) as store:
        run_id = begin(store)
        with small_files(600):
            stored = _fill(store, run_id)
        store.add_trials(run_id, [_large(stored)])
    assert _added(place, run_id) == stored + 1


def test_a_disk_too_small_for_a_store_is_an_error(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 40), pytest.raises(StoreError, match="disk"):
        open_store(tmp_path / "small" / "planish.db")


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("content", [b"a text, long enough\n" * 80, bytes(range(256)) * 40])
def test_a_file_that_is_no_database_is_an_error_and_stays_as_it_is(
    tmp_path: Path, content: bytes, read_only: bool
) -> None:
    place = tmp_path / "notes.txt"
    place.write_bytes(content)
    with pytest.raises(StoreError, match="is no SQLite database"):
        open_store(place, read_only=read_only)
    assert place.read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_damaged_store_is_an_error(place: Path) -> None:
    whole = place.read_bytes()
    place.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    with pytest.raises(StoreError, match="is damaged"):
        _kept(place)


def test_a_store_cut_short_is_an_error(place: Path) -> None:
    place.write_bytes(place.read_bytes()[:8192])
    with pytest.raises(StoreError, match="is damaged"):
        _kept(place)


def test_a_row_changed_by_others_is_an_error(place: Path) -> None:
    with _held(place, "UPDATE trials SET outcome = '{}' WHERE \"index\" = 4"):
        pass
    with pytest.raises(StoreError, match="is damaged: row 5 of table trials"):
        _kept(place)


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder") as caught:
        open_store(tmp_path)
    assert str(tmp_path / "planish.db") in caught.value.hint


@pytest.mark.parametrize("folder", ["kept/planish.db", "kept/planish.db/deeper", "/proc/planish"])
def test_a_folder_that_cannot_be_made_is_an_error(place: Path, folder: str) -> None:
    with pytest.raises(StoreError, match="its folder cannot be"):
        open_store(place.parent.parent / folder / "planish.db")


def test_folders_that_are_missing_are_made(tmp_path: Path) -> None:
    open_store(tmp_path / "some where" / "50% #1?" / "planish.db").close()
    assert (tmp_path / "some where" / "50% #1?" / "planish.db").is_file()


def test_there_is_nothing_to_read_where_nothing_was_stored(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        open_store(tmp_path / "planish.db", read_only=True)
    assert list(tmp_path.iterdir()) == []
