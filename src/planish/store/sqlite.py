"""Opening an SQLite file as the store."""

import errno
import os
import sqlite3
import time
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from planish.core import StoreError
from planish.store.failures import explained
from planish.store.locks import FileLocks
from planish.store.store_session import StoreSession
from planish.store.wal import check_log

# A text that is damaged is read all the same, so that its row can be named: the checksum tells.
_TEXT = partial(str, encoding="utf-8", errors="surrogateescape")


def open_sqlite(path: Path, *, read_only: bool, timeout: float) -> StoreSession:
    """Open a file; for writing, it and its folder are made where they are missing.

    Args:
        path: absolute.
        read_only: only read; a read-only folder will do.
        timeout: seconds to wait for another process's lock.

    Raises:
        StoreError: the file cannot be opened.
    """
    label = str(path)
    # The locks of runs and the log are beside the file itself, whatever links lead to it.
    path = Path(os.path.realpath(path))
    if path.is_dir():
        raise StoreError(f"the store {label} is a folder", f"Name a file: {path / 'planish.db'}.")
    with explained(label):
        check_log(path.with_name(f"{path.name}-wal"), label)
        connection = _for_reading(path, timeout) if read_only else _for_writing(path, timeout)
    return StoreSession(connection, FileLocks(path), label, read_only)


def _for_writing(path: Path, timeout: float) -> Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    for place in [path.parent, *([path] if path.exists() else [])]:
        if not os.access(place, os.W_OK):
            raise OSError(errno.EROFS, "Not writable", str(place))
    # NORMAL syncs at checkpoints only: a power cut may take the last commits, a killed process none.
    return _connect(f"{path.as_uri()}?mode=rwc", timeout, ["journal_mode=WAL", "synchronous=NORMAL"])


def _for_reading(path: Path, timeout: float) -> Connection:
    if not path.exists():
        raise StoreError(
            f"there is no store {path} yet", "Tune something first, or name another with --store."
        )
    try:
        return _connect(f"{path.as_uri()}?mode=ro", timeout, ["query_only=ON"])
    except OperationalError:
        wal = path.with_name(f"{path.name}-wal")
        if os.access(path.parent, os.W_OK) or (wal.exists() and wal.stat().st_size):
            raise
    # Without a log there is nothing to share with a writer, and nothing need be written to share it.
    return _connect(f"{path.as_uri()}?mode=ro&immutable=1", timeout, ["query_only=ON"])


def _connect(uri: str, timeout: float, pragmas: list[str]) -> Connection:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        connection.text_factory = _TEXT
        try:
            for statement in [*(f"PRAGMA {pragma}" for pragma in pragmas), "SELECT 1 FROM sqlite_master"]:
                _execute(connection, statement, timeout)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def begin(connection: Connection) -> None:
        # Not by SQLAlchemy, which would add a fifth to the time that storing a trial takes.
        driver: Any = connection.connection.driver_connection
        driver.execute(connection.info["begin"])

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    event.listen(engine, "begin", begin)
    return engine.connect()


def _execute(connection: sqlite3.Connection, statement: str, timeout: float) -> None:
    """Execute a statement; SQLite itself does not wait where processes change a file to WAL at once."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute(statement).close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
