"""PostgreSQL servers: refusals, restarts, lost connections, and rights of roles."""

from __future__ import annotations

import os
import random
import re
import secrets
import select
import shutil
import socket
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import ProgrammingError

from planish.core import Failed, StoreError, Trial
from planish.core.installation import install_command
from planish.store import ResultRow, open_store, session
from planish.store.session import LostConnectionError, persist
from planish.testing.stores import STEPS, begin, make_candidate, make_trial
from store.mounts import fill, grow, small_disk
from store.servers import administer, as_text, installed, new_cluster, new_database


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
    assert install_command("postgres") in caught.value.hint


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
    location = as_text(database)
    with open_store(location) as store:
        _break_connections(server, database)
        run_id = begin(store)
        for index in range(4):
            _break_connections(server, database)
            store.add_trials(run_id, [make_trial(index)])
        with open_store(location) as other, pytest.raises(StoreError, match="another process"):
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


def test_a_run_taken_over_after_a_broken_connection_is_refused(server: URL, database: URL) -> None:
    location = as_text(database)
    with open_store(location, patience=1.0) as store:
        run_id = begin(store)
        store.add_trials(run_id, [make_trial(0)])
        _break_connections(server, database)
        with open_store(location) as other:
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
    """The connection is lost just before a transaction ends, or just after, when it is unknown which."""
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
    """Return a database on a small disk, and the disk."""
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
    location, folder = small_database
    with open_store(location) as store:
        run_id = begin(store)
        stored, error = fill(lambda index: store.add_trials(run_id, [_large(index)]))
        assert "the disk is full" in str(error)
        assert store.run(run_id).trials == stored > 0
        grow(folder)
        store.add_trials(run_id, [_large(stored)])
        assert store.run_trials(run_id, STEPS) == [_large(i) for i in range(stored + 1)]


def test_a_run_outlives_its_server_s_restarts() -> None:
    programs = installed()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with new_cluster(programs) as cluster:
        with open_store(as_text(cluster.url)) as store:
            run_id, added, over = begin(store), list[int](), threading.Event()

            def write() -> None:
                while not over.is_set():
                    store.add_trials(run_id, [make_trial(len(added))])
                    added.append(len(added))

            writer = threading.Thread(target=write)
            writer.start()
            for mode in ("fast", "immediate", "fast"):
                before = len(added)
                cluster.stop(mode)
                cluster.start()
                deadline = time.monotonic() + 240
                while len(added) <= before + 1 and time.monotonic() < deadline:
                    time.sleep(0.02)
            over.set()
            writer.join()
            store.finish_run(run_id)
            assert len(added) > 3
            assert store.run_trials(run_id, STEPS) == [make_trial(index) for index in added]
        with open_store(as_text(cluster.url), read_only=True) as store:
            assert [run.status for run in store.runs()] == ["finished"]


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def server(clock: Clock, back: float) -> str:
    """Ask a server that is away for so many seconds."""
    begins = clock.time + back

    def ask(again: bool) -> str:
        del again
        if clock.time < begins:
            raise LostConnectionError("the server is away")
        return "here"

    return persist(ask, session.PATIENCE_S, clock.now, clock.sleep)


def test_a_long_wait_is_shown_once_and_so_is_its_end(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    assert server(clock, 30) == "here"
    begin, end = caplog.messages
    assert begin.startswith("The store does not answer; waiting, at most 11")
    assert end == "The store answers again; continuing"


def test_a_short_one_is_not_shown(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    assert server(clock, 0.3) == "here"
    assert caplog.messages == []


def test_who_stays_away_is_given_up(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    began = clock.time
    with pytest.raises(LostConnectionError):
        server(clock, 1e4)
    assert clock.time - began <= session.PATIENCE_S
    assert len(caplog.messages) == 1


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "team-store.md"
ROLES = ("owner", "writer", "reader")


def _grants(names: Mapping[str, str]) -> list[str]:
    """Return the statements of the page, with other names of roles."""
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for role, name in names.items():
        block = re.sub(rf"\b{role}\b", name, block)
    return [statement.strip() for statement in block.split(";") if statement.strip()]


@pytest.fixture
def shared(database: URL) -> Generator[Mapping[str, URL]]:
    """Return the URL of a store by role; its owner has made it, and granted what the page says."""
    names = {role: f"{role}_{secrets.token_hex(4)}" for role in ROLES}
    made = [f"CREATE ROLE {name} LOGIN" for name in names.values()]
    administer(database, *made, f"GRANT CREATE ON SCHEMA public TO {names['owner']}")
    urls = {role: database.set(username=name) for role, name in names.items()}
    with open_store(as_text(urls["owner"])) as store:
        store.finish_run(begin(store))
    administer(urls["owner"], *_grants(names))
    yield urls
    administer(database, f"DROP OWNED BY {', '.join(names.values())}")
    administer(database, f"DROP ROLE {', '.join(names.values())}")


def test_a_writer_may_do_all_that_a_search_does(shared: Mapping[str, URL]) -> None:
    with open_store(as_text(shared["writer"])) as store:
        run_id = begin(store)
        wanted = [make_candidate(0), make_candidate(1)]
        assert store.lease(run_id, wanted, 2) == wanted
        store.add_trials(run_id, [make_trial(0), make_trial(1)])
        store.save_result(run_id, [ResultRow(make_candidate(0), 2.0)])
        store.finish_run(run_id, seconds={"run": 1.0})
        assert store.run_trials(run_id, STEPS) == [make_trial(0), make_trial(1)]
        store.delete_run(run_id)


def test_a_reader_reads_and_writes_nothing(shared: Mapping[str, URL]) -> None:
    with open_store(as_text(shared["reader"]), read_only=True) as store:
        (run,) = store.runs()
        assert store.run_trials(run.id, STEPS) == []
    with (
        open_store(as_text(shared["reader"])) as store,
        pytest.raises(StoreError, match="lacks a right") as caught,
    ):
        begin(store)
    assert "Share a store" in caught.value.hint


@pytest.mark.parametrize("role", ["writer", "reader"])
@pytest.mark.parametrize(
    "statement", ["UPDATE planish_version SET version_num = '9999'", "DROP TABLE trials"]
)
def test_neither_may_change_the_tables(shared: Mapping[str, URL], role: str, statement: str) -> None:
    with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"):
        administer(shared[role], statement)
