"""Connection to the store: transactions, their errors, and signals that wait for their end."""

# The functions of `signal` look for each handler in an enumeration: longer than a statement takes.
import _signal  # pyright: ignore[reportMissingImports]
import errno
import logging
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from types import FrameType
from typing import Any, TypeVar

from sqlalchemy import Connection, Insert, Update
from sqlalchemy.exc import DBAPIError, ResourceClosedError

from planish.core import STOPPING, StoreError
from planish.core.errors import hide
from planish.store.locks import RunLocks

_under_way = False


@contextmanager
def uninterrupted() -> Generator[None]:
    """Defer the first signal until the block has ended; a second one interrupts the block.

    A block within a block is part of it.

    Database libraries do not survive an exception at just any instruction.
    """
    global _under_way
    if _under_way or threading.current_thread() is not threading.main_thread():
        yield  # no exception can come: Python calls handlers in the main thread only
        return
    handlers = {number: handler for number in STOPPING if callable(handler := _signal.getsignal(number))}
    held: list[int] = []
    is_over = False

    def hold(number: int, frame: FrameType | None) -> None:
        # A signal while the handlers are put back may leave this as the handler of another: it passes on
        # all that follows.
        if held or is_over:
            handlers[signal.Signals(number)](number, frame)
        held.append(number)

    try:
        _under_way = True
        for number in handlers:
            _signal.signal(number, hold)
        yield
    finally:
        _under_way, is_over = False, True
        for number, handler in handlers.items():
            _signal.signal(number, handler)
        if held:
            # After the handlers are back: now the user's wish is done as it would have been.
            signal.raise_signal(held[0])


_ELSEWHERE = "or name another store with store= or PLANISH_STORE"
_SAFE = "what was stored before is safe"

_Cause = tuple[str, str]


class LostConnectionError(StoreError):
    """The server is unreachable, perhaps for a short time."""


class HeldError(StoreError):
    """Another process is writing to a run."""


_LOCKED: _Cause = ("is locked by another process", "Let that process end, then run the command again.")
_READ_ONLY: _Cause = ("is read-only", f"Make the file and its folder writable, {_ELSEWHERE}.")
_FULL: _Cause = ("cannot grow: the disk is full", f"Free some space and run the command again; {_SAFE}.")
_CANNOT_OPEN: _Cause = (
    "cannot be opened",
    f"Check the permissions of the file and its folder, {_ELSEWHERE}.",
)
_NO_FOLDER: _Cause = ("cannot be made: its folder cannot be", f"Make the folder, {_ELSEWHERE}.")
_TWICE: _Cause = ("holds that already", "A run holds one trial for each index.")
_DENIED: _Cause = ("does not let this user in", "Look at the user and the password in the URL.")
_MISSING: _Cause = ("does not exist", "Make it: createdb NAME.")
_UNREACHABLE: _Cause = (
    "cannot be reached",
    "See that the server runs, and that host, port and name in the URL are right.",
)
_LOST: _Cause = ("was lost during the command", f"When the server is back, run the command again; {_SAFE}.")
_NOT_READY: _Cause = ("is starting up or shutting down", f"Run the command again in a while; {_SAFE}.")
_DAMAGED: _Cause = (
    "is damaged",
    f"Save what can be read with `sqlite3 FILE .recover`, go back to a copy, {_ELSEWHERE}.",
)

_PASSING = (_LOST, _NOT_READY)
"""Errors of a server that was there, though it may have ended the connection: it is waited for."""

_SQLITE: Mapping[int, _Cause] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: ("cannot be read or written", f"Look at the disk, its space and quota; {_SAFE}."),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: ("is not an SQLite database", f"Move it away, {_ELSEWHERE}."),
    sqlite3.SQLITE_CANTOPEN: _CANNOT_OPEN,
    sqlite3.SQLITE_CONSTRAINT_UNIQUE: _TWICE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: _TWICE,
}

# By SQLSTATE, or its class; https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRES: Mapping[str, _Cause] = {
    "08": _LOST,
    "23505": _TWICE,
    "25006": ("is read-only", f"Give a user and a server that may write, {_ELSEWHERE}."),
    "28": _DENIED,
    "3D": _MISSING,
    "3F": ("names no schema that this user may use", "Look at search_path, and at the user's rights."),
    "42501": (
        "lacks a right",
        "Let its owner grant it; the page 'Share a store' of the documentation lists what.",
    ),
    "53100": _FULL,
    "53300": ("has no connection to spare", "Let other programs end, or raise max_connections."),
    "55P03": _LOCKED,
    "57P03": _NOT_READY,
    "57P": _LOST,
}

# A refused connection has no SQLSTATE: the server's text is all there is. Other texts fall to _UNREACHABLE.
_REFUSALS: Mapping[str, _Cause] = {
    "the database system is ": _NOT_READY,
    "authentication failed": _DENIED,
    "no password supplied": _DENIED,
    "role ": _DENIED,
    "pg_hba.conf": _DENIED,
    "does not exist": _MISSING,
    "invalid connection option": (
        "has an option that PostgreSQL does not know",
        "Correct what follows the ? in the URL.",
    ),
}

# What libpq says of a connection that is cut, where the server had no time to say why.
_CUTS = (
    "server closed the connection unexpectedly",
    "connection has been closed unexpectedly",
    "could not receive data from server",
    "terminating connection",
)

# What SQLite says of damage that it has no code for.
_UNSOUND = ("no such table", "no such column", "Could not decode", "malformed", "no such index")

_FILES: Mapping[int, _Cause] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _CANNOT_OPEN,
    errno.EPERM: _CANNOT_OPEN,
    errno.ENOENT: _NO_FOLDER,
    errno.ENOTDIR: _NO_FOLDER,
    errno.EEXIST: _NO_FOLDER,
}


@contextmanager
def explained(label: str, *, connected: bool = False, hidden: Collection[str] = ()) -> Generator[None]:
    """Raise what the database or the file system reports as a `StoreError`.

    Args:
        label: the store, as it is named to people.
        connected: whether it was there before, so that a server that does not answer is a lost connection.
        hidden: secrets that the report may repeat; they are masked.
    """
    try:
        yield
    except DBAPIError as error:
        found = _explain(label, error.orig or error, error.connection_invalidated, connected, hidden)
        if not hidden:
            raise found from error
        # The cause has them too, and a traceback would show it.
        found.add_note(hide(str(error), hidden))
        raise found from None
    except ResourceClosedError as error:
        raise StoreError(f"the store {label} is closed", "Open it, and read from that.") from error
    except UnicodeDecodeError as error:  # of a name or a text, as SQLite gave it
        raise StoreError(f"the store {label} {_DAMAGED[0]} ({error})", _DAMAGED[1]) from error
    except (sqlite3.Error, OSError) as error:
        raise _explain(label, error, lost=False, connected=False) from error


def _explain(
    label: str, error: BaseException, lost: bool, connected: bool, hidden: Collection[str] = ()
) -> StoreError:
    if isinstance(error, sqlite3.Error):
        cause = _sqlite_cause(error)
    elif isinstance(error, OSError):
        cause = _FILES.get(error.errno or 0)
    else:
        cause = _LOST if lost else _postgres_cause(error)
    what, hint = cause or ("failed", "")
    text = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error)
    # The first line: the others repeat the statement and its parameters.
    detail = hide(" ".join(text.split("\n")[0].split()), hidden)
    # One that was never reached may not exist.
    passing = cause in _PASSING or (cause is _UNREACHABLE and (connected or lost))
    kind = LostConnectionError if passing else StoreError
    return kind(f"the store {label} {what} ({detail})", hint)


def _sqlite_cause(error: sqlite3.Error) -> _Cause | None:
    code: int = getattr(error, "sqlite_errorcode", 0)
    unsound = any(text in str(error) for text in _UNSOUND)
    # An extended code says more; its lowest byte is the plain one.
    return _SQLITE.get(code) or _SQLITE.get(code & 0xFF) or (_DAMAGED if unsound else None)


def _postgres_cause(error: BaseException) -> _Cause | None:
    state: str | None = getattr(error, "sqlstate", None)
    if state is not None:
        # From the exact condition to its class, since only some are distinguished.
        return _POSTGRES.get(state) or _POSTGRES.get(state[:3]) or _POSTGRES.get(state[:2])
    if any(text in str(error) for text in _CUTS):
        return _LOST
    refusal = str(error).rpartition("FATAL:")[2]
    return next((cause for text, cause in _REFUSALS.items() if text in refusal), _UNREACHABLE)


class PreparedStatement:
    """Statement whose text is made once for each kind of database.

    SQLAlchemy takes several times as long as SQLite for a small statement, most of it to look for its text.

    Args:
        statement: without values.
        columns: that it writes; of texts, numbers and truth values, which drivers take as they are.
    """

    def __init__(self, statement: Insert | Update, columns: Sequence[str]) -> None:
        self._statement, self._columns = statement, columns
        self._texts: dict[str, tuple[str, Sequence[str] | None]] = {}

    def execute(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute the statement for each row, which has a value of each parameter by name."""
        dialect = connection.dialect
        if dialect.name not in self._texts:
            made: Any = self._statement.compile(dialect=dialect, column_keys=self._columns)
            self._texts[dialect.name] = str(made), made.positiontup
        text, names = self._texts[dialect.name]
        if names is None:
            connection.exec_driver_sql(text, [*rows] if len(rows) > 1 else rows[0])
        else:  # SQLite, whose driver is asked itself: its errors leave the connection as it is
            driver: Any = connection.connection.driver_connection
            driver.executemany(text, [tuple(map(row.__getitem__, names)) for row in rows])


PATIENCE_S = 120.0
"""Seconds for which a lost connection is retried: a restart of a server takes less."""
SHOWN_S = 1.0
"""Seconds after which a wait is shown to the user."""
_PAUSE_S = 0.05
_PAUSE_MOST_S = 2.0

_T = TypeVar("_T")
_log = logging.getLogger("planish")


def persist(
    attempt: Callable[[bool], _T],
    patience: float,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> _T:
    """Try until the server answers again; the pauses grow, and the wait is shown.

    Args:
        attempt: what is tried; its argument is whether it was tried before.
        patience: seconds at most.
        now: the monotonic clock.
        sleep: waits for seconds.

    Raises:
        StoreError: the connection stays lost, or what the attempt raises.
    """
    pause, lost, again, shown = _PAUSE_S, 0.0, False, False
    while True:
        try:
            found = attempt(again)
        except LostConnectionError:
            lost = lost or now()
            left = lost + patience - now()
            if pause > left:
                raise
            if not shown and now() - lost >= SHOWN_S:
                _log.warning("The store does not answer; waiting, at most %.0f s", left)
                shown = True
        else:
            if shown:
                _log.warning("The store answers again; continuing")
            return found
        sleep(pause)
        pause, again = min(2 * pause, _PAUSE_MOST_S), True


class StoreSession:
    """A connection that threads may share: one transaction at a time.

    Args:
        connection: opened, with nothing begun.
        locks: the locks of runs.
        label: the store, as it is named to people.
        read_only: refuse to write.
        patience: seconds for which a lost connection is retried.
    """

    def __init__(
        self,
        connection: Connection,
        locks: RunLocks,
        label: str,
        read_only: bool,
        patience: float = PATIENCE_S,
    ) -> None:
        self.locks = locks
        self.label = label
        self._connection = connection
        self._read_only = read_only
        self._patience = patience
        self._busy = RLock()

    def read(self, action: Callable[[Connection], _T]) -> _T:
        """Read in one transaction; a connection that is lost is made again.

        Raises:
            StoreError: the store cannot be read.
        """

        def attempt(_: bool) -> _T:
            with self.reading() as connection:
                return action(connection)

        return persist(attempt, self._patience)

    def write(self, action: Callable[[Connection, bool], _T]) -> _T:
        """Write in one transaction; a connection that is lost is made again.

        Args:
            action: writes; its argument is whether it was tried before: it may have been stored already.

        Raises:
            StoreError: the store cannot be written.
        """

        def attempt(again: bool) -> _T:
            with self.writing() as connection:
                return action(connection, again)

        return persist(attempt, self._patience)

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Read from one snapshot of the store throughout the block.

        Raises:
            StoreError: it cannot be read.
        """
        with self._transaction(writes=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """Write all or nothing; it is stored when the block has ended.

        Raises:
            StoreError: it cannot be written.
        """
        if self._read_only:
            raise StoreError(f"the store {self.label} was opened for reading only", "Open it for writing.")
        with self._transaction(writes=True) as connection:
            yield connection

    @property
    def is_closed(self) -> bool:
        """Return whether `close` was called."""
        return self._connection.closed

    def close(self) -> None:
        """Release all locks and close the connection; harmless when called twice."""
        with self._busy:
            self.locks.close()
            self._connection.close()

    @contextmanager
    def _transaction(self, *, writes: bool) -> Generator[Connection]:
        with uninterrupted(), self._busy, explained(self.label, connected=True):
            self._connection.info["writes"] = writes
            with self._connection.begin():
                yield self._connection
