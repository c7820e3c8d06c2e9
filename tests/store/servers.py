"""PostgreSQL servers of the tests: one of our own, which may be stopped and started again, and statements."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, create_engine
from sqlalchemy.pool import NullPool

ACCOUNT = "postgres"  # the server refuses to run as root
SETTINGS = "-c fsync=off -c listen_addresses='' -c max_connections=40 -c unix_socket_directories="
ACCESS = "local all locked scram-sha-256\nlocal all all trust\n"


@dataclass(frozen=True)
class Cluster:
    """A server's data, and its programs.

    Args:
        folder: where its data, log and socket are.
        programs: where initdb and pg_ctl are.
    """

    folder: Path
    programs: Path

    @property
    def url(self) -> URL:
        """Where it serves."""
        query = {"host": str(self.folder)}
        return URL.create("postgresql+psycopg", "planish", database="postgres", query=query)

    def start(self) -> None:
        """Start the server, and wait until it serves."""
        self._control("-l", "log", "-o", f"{SETTINGS}{self.folder}", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server.

        Args:
            mode: "smart" waits for its clients, "fast" sends them away, "immediate" is a crash.
        """
        self._control("-m", mode, "stop")

    def initialize(self) -> None:
        """Make the data."""
        self._run(self.programs / "initdb", "-D", "data", "-U", "planish", "-A", "trust", "--no-sync")
        (self.folder / "data/pg_hba.conf").write_text(ACCESS)

    def _control(self, *words: str) -> None:
        self._run(self.programs / "pg_ctl", "-D", "data", "-w", *words)

    def _run(self, *command: str | Path) -> None:
        account = pwd.getpwnam(ACCOUNT) if os.geteuid() == 0 else None
        ended = subprocess.run(
            command,
            cwd=self.folder,
            user=account and account.pw_uid,
            group=account and account.pw_gid,
            extra_groups=[] if account else None,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if ended.returncode:
            log = self.folder / "log"
            raise RuntimeError(f"{command[0]}: {ended.stderr}\n{log.read_text() if log.exists() else ''}")


@contextmanager
def new_cluster(programs: Path) -> Generator[Cluster]:
    """Make a server and start it; it is gone after."""
    folder = Path(tempfile.mkdtemp(prefix="planish-postgres-"))  # short, as a socket's path must be
    if os.geteuid() == 0:
        shutil.chown(folder, ACCOUNT, ACCOUNT)
    cluster = Cluster(folder, programs)
    try:
        cluster.initialize()
        cluster.start()
        yield cluster
        cluster.stop()
    finally:
        shutil.rmtree(folder)


def installed() -> Path | None:
    """Find the programs of a PostgreSQL server; None where it is not installed."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((p.parent for p in versions), key=lambda p: int(p.parent.name), default=None)


def administer(server: URL, *statements: str) -> list[Any]:
    """Execute statements outside any transaction; return the rows of the last, if it has any."""
    engine = create_engine(server, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    rows: list[Any] = []
    with engine.connect() as connection:
        for statement in statements:
            result = connection.exec_driver_sql(statement)
            rows = list(result) if result.returns_rows else []
    return rows


def make_schema(database: URL) -> URL:
    """Make a new, empty schema; return the URL that chooses it."""
    name = f"planish_{secrets.token_hex(6)}"
    administer(database, f"CREATE SCHEMA {name}")
    return database.update_query_dict({"options": f"-c search_path={name}"})


@contextmanager
def new_database(server: URL, clause: str = "") -> Generator[URL]:
    """Make a new, empty database, and drop it after."""
    name = f"planish_{secrets.token_hex(6)}"
    administer(server, f"CREATE DATABASE {name} TEMPLATE template0 {clause}")
    yield server.set(database=name)
    administer(server, f"DROP DATABASE {name} (FORCE)")


def as_text(url: URL) -> str:
    """Write the URL as a user does."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)
