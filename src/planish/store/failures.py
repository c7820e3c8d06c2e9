"""What databases and file systems report, as one clear `StoreError`."""

import errno
import sqlite3
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from planish.core import StoreError
from planish.core.redaction import hide

_ELSEWHERE = "or name another store with --store or PLANISH_STORE"
_SAFE = "what was stored before is safe"

_Cause = tuple[str, str]


class LostConnectionError(StoreError):
    """The server is not there now, and may be soon."""


class HeldError(StoreError):
    """Another process is writing to a run."""


_LOCKED: _Cause = ("is locked by another process", "Let that process end, then run the command again.")
_READ_ONLY: _Cause = ("is read-only", f"Make the file and its folder writable, {_ELSEWHERE}.")
_FULL: _Cause = ("cannot grow: the disk is full", f"Free some space and run the command again; {_SAFE}.")
_CANNOT_OPEN: _Cause = ("cannot be opened", f"See who may use the file and its folder, {_ELSEWHERE}.")
_NO_FOLDER: _Cause = ("cannot be made: its folder cannot be", f"Make the folder, {_ELSEWHERE}.")
_TWICE: _Cause = ("holds that already", "A run holds one trial for each index.")
_DENIED: _Cause = ("does not let this user in", "Look at the user and the password in the URL.")
_MISSING: _Cause = ("does not exist", "Make it: createdb NAME.")
_UNREACHABLE: _Cause = (
    "cannot be reached",
    "See that the server runs, and that host, port and name in the URL are right.",
)
_LOST: _Cause = ("was lost in the midst", f"When the server is back, run the command again; {_SAFE}.")
_NOT_READY: _Cause = ("is starting up or shutting down", f"Run the command again in a while; {_SAFE}.")
_DAMAGED: _Cause = (
    "is damaged",
    f"Save what can be read with `sqlite3 FILE .recover`, go back to a copy, {_ELSEWHERE}.",
)

_PASSING = (_LOST, _NOT_READY)
"""What is waited for: the server was there, though it may have cut the connection while it was opened."""

_SQLITE: Mapping[int, _Cause] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: ("cannot be read or written", f"Look at the disk, its space and quota; {_SAFE}."),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: ("is no SQLite database", f"Move it away, {_ELSEWHERE}."),
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
    # An extended code tells more; its lowest byte is the plain one.
    return _SQLITE.get(code) or _SQLITE.get(code & 0xFF) or (_DAMAGED if unsound else None)


def _postgres_cause(error: BaseException) -> _Cause | None:
    state: str | None = getattr(error, "sqlstate", None)
    if state is not None:
        # From the exact condition to its class, since only some are told apart.
        return _POSTGRES.get(state) or _POSTGRES.get(state[:3]) or _POSTGRES.get(state[:2])
    if any(text in str(error) for text in _CUTS):
        return _LOST
    refusal = str(error).rpartition("FATAL:")[2]
    return next((cause for text, cause in _REFUSALS.items() if text in refusal), _UNREACHABLE)
