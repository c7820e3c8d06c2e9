"""What a PostgreSQL server can refuse or break is one clear error."""

import os
import random
import secrets
import select
import shutil
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from planish.core import Failed, StoreError, Trial
from planish.store import ResultRow, open_store, session
from planish.testing.stored import STEPS, make_candidate, make_trial
from planish.testing.stores import begin
from store.mounts import fill, grow, small_disk
from store.servers import administer, as_text, new_database


def test_a_database_that_does_not_exist_is_an_error(server: URL) -> None:
    with pytest.raises(StoreError, match="does not exist") as caught:
        open_store(as_text(server.set(database="nowhere")))
    assert "createdb" in caught.value.hint


@pytest.mark.parametrize("port", [1, 65535])
def test_a_server_that_does_not_answer_is_an_error(port: int) -> None:
    with pytest.raises(StoreError, match="cannot be reached"):
        open_store(f"postgresql://smith:iron@127.0.0.1:{port}/planish")


def test_an_option_of_the_url_that_postgresql_does_not_know_is_an_error() -> None:
    with pytest.raises(StoreError, match="an option that PostgreSQL does not know") as caught:
        open_store("postgresql://smith:iron@127.0.0.1:1/planish?passwrd=iron")
    assert "what follows the ?" in caught.value.hint
    assert "=iron" not in str(caught.value)


@pytest.mark.parametrize("password", ["wrong", None])
def test_a_wrong_password_is_an_error_that_keeps_it(database: URL, password: str | None) -> None:
    administer(database, "DROP ROLE IF EXISTS locked", "CREATE ROLE locked LOGIN PASSWORD 'iron'")
    administer(database, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    url = database.set(username="locked")
    with pytest.raises(StoreError, match="lacks a right"):
        open_store(as_text(url.set(password="iron")))
    with pytest.raises(StoreError, match="does not let this user in") as caught:
        open_store(as_text(url.set(password=password)))
    assert "wrong" not in str(caught.value)


def test_an_unknown_user_is_an_error(database: URL) -> None:
    with pytest.raises(StoreError, match="does not let this user in"):
        open_store(as_text(database.set(username="stranger")))


def test_an_unknown_schema_is_an_error(server: URL) -> None:
    with pytest.raises(StoreError, match="names no schema"):
        open_store(as_text(server.update_query_dict({"options": "-c search_path=nowhere"})))


def test_a_missing_driver_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match="needs psycopg") as caught:
        open_store("postgresql://smith@forge/planish")
    assert "pip install 'planish[postgres]'" in caught.value.hint


def test_a_locked_table_is_an_error(postgres: str) -> None:
    with open_store(postgres, timeout=0.1) as store, open_store(postgres) as other:
        run_id = begin(store)
        with other._session.writing() as connection:  # pyright: ignore[reportPrivateUsage]
            connection.exec_driver_sql("LOCK TABLE trials IN EXCLUSIVE MODE")
            with pytest.raises(StoreError, match="is locked by another process"):
                store.add_trials(run_id, [make_trial(0)])
        store.add_trials(run_id, [make_trial(0)])
        assert store.run_trials(run_id, STEPS) == [make_trial(0)]


def _break_connections(server: URL, database: URL) -> None:
    administer(
        server,
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database.database}'",
    )


def test_a_broken_connection_is_made_again(server: URL, database: URL) -> None:
    place = as_text(database)
    with open_store(place) as store:
        _break_connections(server, database)
        run_id = begin(store)
        for index in range(4):
            _break_connections(server, database)
            store.add_trials(run_id, [make_trial(index)])
        with open_store(place) as other, pytest.raises(StoreError, match="another process"):
            other.resume_run(run_id)
        _break_connections(server, database)
        assert store.run_trials(run_id, STEPS) == [make_trial(index) for index in range(4)]
        _break_connections(server, database)
        store.finish_run(run_id)
        assert [run.status for run in store.runs()] == ["finished"]


@contextmanager
def _cutting(server: URL, folder: Path, cuts: list[int]) -> Generator[URL]:
    """Serve the server elsewhere; its first connections are cut after so many bytes of its answers."""
    name = f".s.PGSQL.{server.port or 5432}"
    left = list(cuts)

    def serve(client: socket.socket) -> None:
        most = left.pop(0) if left else sys.maxsize
        with client, socket.socket(socket.AF_UNIX) as behind:
            behind.connect(str(Path(str(server.query["host"])) / name))
            while most > 0:
                for ready in select.select([client, behind], [], [])[0]:
                    if not (data := ready.recv(1 << 16)):
                        return
                    other = behind if ready is client else client
                    other.sendall(data if ready is client else data[:most])
                    most -= 0 if ready is client else len(data)

    def listen() -> None:
        with suppress(OSError):  # it is closed in the end
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / name))
        listening.listen()
        threading.Thread(target=listen, daemon=True).start()
        yield server.update_query_dict({"host": str(folder)})
        listening.shutdown(socket.SHUT_RDWR)
    assert not left


@pytest.mark.parametrize("cuts", [[0, 1, 100], [400, 500, 600], [700, 1000, 1500]])
def test_a_connection_that_is_cut_while_it_is_opened_is_opened_again(
    database: URL, tmp_path: Path, cuts: list[int]
) -> None:
    with _cutting(database, tmp_path, cuts) as url, open_store(as_text(url)) as store:
        run_id = begin(store)
        store.add_trials(run_id, [make_trial(0)])
        assert store.run_trials(run_id, STEPS) == [make_trial(0)]


def test_a_run_taken_over_after_a_broken_connection_is_refused(
    server: URL, database: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PATIENCE_S", 1.0)
    place = as_text(database)
    with open_store(place) as store:
        run_id = begin(store)
        store.add_trials(run_id, [make_trial(0)])
        _break_connections(server, database)
        with open_store(place) as other:
            other.resume_run(run_id)
            with pytest.raises(StoreError, match="another process is writing"):
                store.add_trials(run_id, [make_trial(1)])
            other.add_trials(run_id, [make_trial(1)])
        _break_connections(server, database)
        with pytest.raises(StoreError, match="another process has continued"):
            store.add_trials(run_id, [make_trial(2)])
        assert store.run_trials(run_id, STEPS) == [make_trial(0), make_trial(1)]


@pytest.mark.parametrize("cut", ["before", "after"])
def test_what_is_cut_off_at_its_end_is_stored_once(
    server: URL, database: URL, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    """The connection is lost just before a transaction ends, or just after, when nobody can tell which."""
    with open_store(as_text(database)) as store:
        run_id = begin(store)
        real, left = PGDialect_psycopg.do_commit, [1]

        def do_commit(dialect: PGDialect_psycopg, connection: Any) -> None:
            if cut == "after" or not left:
                real(dialect, connection)
            if left:
                left.clear()
                _break_connections(server, database)
                connection.execute("SELECT 1")

        monkeypatch.setattr(PGDialect_psycopg, "do_commit", do_commit)
        store.add_trials(run_id, [make_trial(0), make_trial(1)])
        assert store.run_trials(run_id, STEPS) == [make_trial(0), make_trial(1)]
        left.append(1)
        store.save_result(run_id, [ResultRow(make_candidate(0), 2.0)])
        left.append(1)
        begin(store)
        left.append(1)
        store.finish_run(run_id, seconds={"run": 1.0})
        assert sorted(run.status for run in store.runs()) == ["finished", "running"]
        assert len(store.result_rows(run_id, STEPS)) == 1


def test_a_store_is_closed_quietly_after_its_server_has_gone(server: URL, database: URL) -> None:
    with open_store(as_text(database)) as store:
        begin(store)
        _break_connections(server, database)


@pytest.fixture
def small_database(server: URL) -> Generator[tuple[str, Path]]:
    """Give a database on a small disk, and the disk."""
    if os.environ.get("PLANISH_TEST_POSTGRES"):
        pytest.skip("the server's disk is not ours to fill")
    folder = Path(str(server.query["host"])) / "small"
    name = f"small_{secrets.token_hex(6)}"
    with small_disk(folder, 16_000):
        space = folder / "space"
        space.mkdir()
        shutil.chown(space, "postgres", "postgres")
        administer(server, f"CREATE TABLESPACE {name} LOCATION '{space}'")
        with new_database(server, f"TABLESPACE {name}") as url:
            yield as_text(url), folder
        administer(server, f"DROP TABLESPACE {name}")


def _large(index: int) -> Trial:
    noise = random.Random(index).randbytes(40_000).hex()  # nothing that the server could compress
    return Trial(make_candidate(index), Failed("run", "crash", noise), index)


def test_a_full_disk_loses_nothing_that_was_stored(small_database: tuple[str, Path]) -> None:
    place, folder = small_database
    with open_store(place) as store:
        run_id = begin(store)
        stored, error = fill(lambda index: store.add_trials(run_id, [_large(index)]))
        assert "the disk is full" in str(error)
        assert store.run(run_id).trials == stored > 0
        grow(folder)
        store.add_trials(run_id, [_large(stored)])
        assert store.run_trials(run_id, STEPS) == [_large(i) for i in range(stored + 1)]
