"""A real PostgreSQL server: the one that PLANISH_TEST_POSTGRES names, else one started for the tests."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url

from store.servers import as_text, make_schema, new_database

ACCOUNT = "postgres"  # the server refuses to run as root
SETTINGS = "-c fsync=off -c listen_addresses='' -c max_connections=40 -c unix_socket_directories="
ACCESS = "local all locked scram-sha-256\nlocal all all trust\n"


@pytest.fixture(scope="session")
def server() -> Generator[URL]:
    """Give the URL of a PostgreSQL server where databases may be made."""
    if given := os.environ.get("PLANISH_TEST_POSTGRES"):
        yield make_url(given).set(drivername="postgresql+psycopg")
        return
    programs = _programs()
    if programs is None:
        reason = "PostgreSQL is not installed: apt-get install postgresql"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="planish-postgres-"))  # short, as a socket's path must be
    if os.geteuid() == 0:
        shutil.chown(folder, ACCOUNT, ACCOUNT)
    try:
        yield from _serve(folder, programs)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def postgres(server: URL) -> str:
    """Give the URL of a new, empty schema: a database of its own to a store, but made faster."""
    return as_text(make_schema(server))


@pytest.fixture
def database(server: URL) -> Generator[URL]:
    """Give the URL of a new, empty database on a server that is ours."""
    if os.environ.get("PLANISH_TEST_POSTGRES"):
        pytest.skip("the server is not ours")
    with new_database(server) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the place of a new store, of each kind in turn."""
    return str(tmp_path / "planish.db") if request.param == "sqlite" else request.getfixturevalue("postgres")


def _serve(folder: Path, programs: Path) -> Generator[URL]:
    _run(folder, programs / "initdb", "-D", "data", "-U", "planish", "-A", "trust", "--no-sync")
    (folder / "data/pg_hba.conf").write_text(ACCESS)
    control = [programs / "pg_ctl", "-D", "data", "-w"]
    _run(folder, *control, "-l", "log", "-o", f"{SETTINGS}{folder}", "start")
    try:
        yield URL.create("postgresql+psycopg", "planish", database="postgres", query={"host": str(folder)})
    finally:
        _run(folder, *control, "-m", "immediate", "stop")


def _programs() -> Path | None:
    if found := shutil.which("initdb"):
        return Path(found).parent
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((p.parent for p in versions), key=lambda p: int(p.parent.name), default=None)


def _run(folder: Path, *command: str | Path) -> None:
    account = pwd.getpwnam(ACCOUNT) if os.geteuid() == 0 else None
    ended = subprocess.run(
        command,
        cwd=folder,
        user=account and account.pw_uid,
        group=account and account.pw_gid,
        extra_groups=[] if account else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ended.returncode:
        log = folder / "log"
        raise RuntimeError(f"{command[0]}: {ended.stderr}\n{log.read_text() if log.exists() else ''}")
