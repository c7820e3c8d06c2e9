"""Opening of stores: locations, schemas, and what keeps a store from being used."""

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import URL, Column, MetaData, Table, Text

from planish.core import StoreError, Trial
from planish.store import Store, open_store, opening
from planish.store.opening import locate
from planish.store.schema import SCHEMA
from planish.testing.stores import STEPS, begin, make_task, make_trial
from store.mounts import fill, grow, small_disk, small_files, write_protected
from store.servers import administer


@pytest.mark.parametrize(
    ("path", "found"),
    [("a/b.db", Path.cwd() / "a/b.db"), ("/a/b.db", Path("/a/b.db")), ("~/b.db", Path.home() / "b.db")],
)
def test_a_file_is_named_by_its_path_or_a_url(path: str, found: Path) -> None:
    assert [locate(path), locate(Path(path)), locate(f"sqlite:///{path}")] == [found] * 3


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2"])
def test_postgres_is_spoken_to_by_psycopg(scheme: str) -> None:
    url = locate(f"{scheme}://smith:iron@forge:1234/planish")
    assert url == URL.create("postgresql+psycopg", "smith", "iron", "forge", 1234, "planish")


@pytest.mark.parametrize("location", ["mysql://forge/planish", "sqlite://", "http://x", "://x"])
def test_other_urls_name_no_store(location: str) -> None:
    with pytest.raises(StoreError) as caught:
        locate(location)
    assert "postgresql://USER@HOST/DATABASE" in caught.value.hint


def test_a_malformed_url_is_an_error_that_keeps_the_password() -> None:
    with pytest.raises(StoreError, match="malformed") as caught:
        locate("postgresql://smith:iron@forge:port/planish")
    assert "iron" not in str(caught.value)


def test_without_a_location_the_environment_names_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("PLANISH_STORE", raising=False)
    open_store().close()
    assert (tmp_path / "planish" / "planish.db").is_file()
    monkeypatch.setenv("PLANISH_STORE", str(tmp_path / "other.db"))
    assert locate(None) == tmp_path / "other.db"
    assert locate("given.db") == Path.cwd() / "given.db"


def _execute(location: str, statement: str) -> None:
    target = locate(location)
    if not isinstance(target, Path):
        administer(target, statement)
        return
    connection = sqlite3.connect(target, isolation_level=None)
    connection.execute(statement)
    connection.close()


def test_a_store_that_cannot_be_created_is_left_empty(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(opening, "schema_version", Table("missing", MetaData(), Column("version_num", Text)))
        with pytest.raises(StoreError):
            open_store(location)
    with pytest.raises(StoreError, match="is empty"):
        open_store(location, read_only=True)
    with open_store(location) as store:
        begin(store)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("version", "hint"), [(SCHEMA + 1, "pip install --upgrade"), (SCHEMA - 1, "name another with store=")]
)
def test_a_store_of_another_schema_is_refused_and_left_alone(
    tmp_path: Path, version: int, hint: str, read_only: bool
) -> None:
    location = tmp_path / "planish.db"
    open_store(location).close()
    _execute(str(location), f"UPDATE planish_version SET version_num = '{version}'")
    before = location.read_bytes()
    with pytest.raises(
        StoreError, match=f"has the schema {version}, and this planish reads and writes {SCHEMA}"
    ) as caught:
        open_store(location, read_only=read_only)
    assert hint in caught.value.hint
    assert "\n" not in f"{caught.value}{caught.value.hint}"
    assert location.read_bytes() == before


def test_a_database_of_something_else_is_refused(location: str) -> None:
    _execute(location, "CREATE TABLE recipes (name TEXT)")
    for read_only in (True, False):
        with pytest.raises(StoreError, match="holds other tables: recipes"):
            open_store(location, read_only=read_only)


def test_an_empty_database_cannot_be_read(postgres: str) -> None:
    with pytest.raises(StoreError, match="is empty"):
        open_store(postgres, read_only=True)


def test_opening_imports_only_what_it_needs(tmp_path: Path) -> None:
    program = (
        "import sys; from planish.store import open_store; open_store(sys.argv[1]).close(); "
        "assert not {'psycopg', 'sqlalchemy.dialects.postgresql', 'numpy'} & set(sys.modules)"
    )
    begun = subprocess.run([sys.executable, "-c", program, str(tmp_path / "planish.db")], check=False)
    assert begun.returncode == 0


HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    connection.execute(statement)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a store with ten trials."""
    path = tmp_path / "kept" / "planish.db"
    with open_store(path) as store:
        store.add_trials(begin(store), [make_trial(i) for i in range(10)])
    return path


def _kept(path: Path, *, read_only: bool = True) -> int:
    with open_store(path, read_only=read_only) as store:
        kept = store.trials(make_task().key, STEPS)
    assert kept == [make_trial(i) for i in range(len(kept))]
    return len(kept)


@contextmanager
def _held(path: Path, *statements: str) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, str(path), *statements]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            holder.kill()


def test_a_locked_store_is_an_error_and_works_when_it_is_let_go(path: Path) -> None:
    with open_store(path, timeout=0.1) as store:
        with _held(path, "BEGIN EXCLUSIVE"):
            assert len(store.trials(make_task().key, STEPS)) == 10
            with pytest.raises(StoreError, match="is locked by another process"):
                begin(store)
        begin(store)


def test_a_store_held_for_one_process_alone_cannot_be_opened(path: Path) -> None:
    exclusive = "PRAGMA locking_mode=EXCLUSIVE", "BEGIN EXCLUSIVE"
    with _held(path, *exclusive):
        for read_only in (True, False):
            with pytest.raises(StoreError, match="is locked by another process"):
                open_store(path, read_only=read_only, timeout=0.1)
    assert _kept(path) == 10


def test_a_lock_is_waited_for(path: Path) -> None:
    with open_store(path, timeout=60) as store, _held(path, "BEGIN IMMEDIATE") as holder:
        let_go = threading.Timer(0.2, holder.communicate)
        let_go.start()
        begin(store)
        let_go.join()
        assert holder.returncode == 0


def test_a_folder_that_cannot_be_written_can_be_read(path: Path) -> None:
    with write_protected(path.parent):
        assert _kept(path) == 10
        with pytest.raises(StoreError, match="is read-only") as caught:
            open_store(path)
        assert "store=" in caught.value.hint
    assert _kept(path, read_only=False) == 10


def test_a_log_in_a_folder_that_cannot_be_written_is_never_passed_over(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "planish.db"
    copy.parent.mkdir()
    with open_store(path) as store:
        store.add_trials(begin(store), [make_trial(10)])
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    with write_protected(copy.parent), pytest.raises(StoreError, match="cannot be opened"):
        open_store(copy, read_only=True)
    assert _kept(copy, read_only=False) == 11


def _large(index: int) -> Trial:
    return make_trial(index, steps=20)


def _fill(store: Store, run_id: str) -> int:
    """Add trials until the disk is full; return the number of those stored."""
    stored, error = fill(lambda index: store.add_trials(run_id, [_large(index)]))
    assert "disk" in str(error)
    assert "stored before is safe" in error.hint
    assert len(store.run_trials(run_id, STEPS)) == stored > 0
    return stored


def _added(path: Path, run_id: str) -> int:
    with open_store(path, read_only=True) as store:
        kept = store.run_trials(run_id, STEPS)
    assert kept == [_large(i) for i in range(len(kept))]
    return len(kept)


def test_a_full_disk_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "small" / "planish.db"
    with small_disk(path.parent, 600):
        with open_store(path) as store:
            run_id = begin(store)
            stored = _fill(store, run_id)
            grow(path.parent)
            store.add_trials(run_id, [_large(stored)])
        assert _added(path, run_id) == stored + 1


def test_a_limit_on_files_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "planish.db"
    with open_store(path) as store:
        run_id = begin(store)
        with small_files(600):
            stored = _fill(store, run_id)
        store.add_trials(run_id, [_large(stored)])
    assert _added(path, run_id) == stored + 1


def test_a_disk_too_small_for_a_store_is_an_error(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 40), pytest.raises(StoreError, match="disk"):
        open_store(tmp_path / "small" / "planish.db")


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("content", [b"a text, long enough\n" * 80, bytes(range(256)) * 40])
def test_a_file_that_is_no_database_is_an_error_and_stays_as_it_is(
    tmp_path: Path, content: bytes, read_only: bool
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is not an SQLite database"):
        open_store(path, read_only=read_only)
    assert path.read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_damaged_store_is_an_error(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    with pytest.raises(StoreError, match="is damaged"):
        _kept(path)


def test_a_store_cut_short_is_an_error(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:8192])
    with pytest.raises(StoreError, match="is damaged"):
        _kept(path)


def test_a_row_changed_by_others_is_an_error(path: Path) -> None:
    with _held(path, "UPDATE trials SET outcome = '{}' WHERE \"index\" = 4"):
        pass
    with pytest.raises(StoreError, match="is damaged: row 5 of table trials"):
        _kept(path)


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder") as caught:
        open_store(tmp_path)
    assert str(tmp_path / "planish.db") in caught.value.hint


@pytest.mark.parametrize("folder", ["kept/planish.db", "kept/planish.db/deeper", "/proc/planish"])
def test_a_folder_that_cannot_be_made_is_an_error(path: Path, folder: str) -> None:
    with pytest.raises(StoreError, match="its folder cannot be"):
        open_store(path.parent.parent / folder / "planish.db")


def test_folders_that_are_missing_are_made(tmp_path: Path) -> None:
    open_store(tmp_path / "some where" / "50% #1?" / "planish.db").close()
    assert (tmp_path / "some where" / "50% #1?" / "planish.db").is_file()


def test_there_is_nothing_to_read_where_nothing_was_stored(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        open_store(tmp_path / "planish.db", read_only=True)
    assert list(tmp_path.iterdir()) == []
