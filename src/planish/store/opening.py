"""Opening of a store: its location, its connection (SQLite or PostgreSQL), its schema.

A killed process leaves SQLite's write-ahead log behind, and the next process that opens the store replays it.
SQLite takes a frame whose checksum is wrong for the log's end, since a crash may tear the last one. A damaged
byte in the middle would silently cut off all that was committed after it, so the log is checked before SQLite
reads it. Its format is in https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from re import fullmatch
from struct import Struct
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.pool import NullPool

from planish.core import StoreError
from planish.core.arguments import check_number, check_path, check_type
from planish.core.errors import redact
from planish.core.files import StrPath
from planish.store.locks import AdvisoryLocks, FileLocks
from planish.store.schema import SCHEMA, damaged, metadata, schema_version
from planish.store.session import PATIENCE_S, StoreSession, explained, persist
from planish.store.store import Store

_FORMS = "Name a file, sqlite:///FILE, or postgresql://USER@HOST/DATABASE."
_ESCAPES = "In a user or password, write @ as %40, / as %2F, : as %3A, ? as %3F and % as %25."
_FILE = "Write ./FILE where it is the name of a file."

# What a mistyped URL begins with; a file that is named so can be given as ./FILE.
_URL_LIKE = r"\s*(?:[a-z][a-z0-9+.-]*:/|postgres\w*(?:\+\w+)?:|sqlite\w*:|[^\s/]*=)"
_EXPLICIT = ("/", "./", "../", "~")
# Of a query, only these name the server, and only where they cannot have swallowed something else.
_SHOWN = ("host", "port")
_PLAIN = r"[\w./:,-]*"
_NAME = r"[^/:@=&;?\s]*"
_PORTS = range(1, 65536)


def locate(location: StrPath | None) -> Path | URL:
    """Return the location of the store.

    Args:
        location: a file or a URL; None for the environment's PLANISH_STORE, else the user's data folder.

    Returns:
        The absolute path of an SQLite file, or the URL of a PostgreSQL database.

    Raises:
        StoreError: it names no database that can be a store. The text is not repeated: it may hold a
            password.
    """
    location = location or os.environ.get("PLANISH_STORE")
    if not location:
        from platformdirs import user_data_path

        return user_data_path("planish", appauthor=False) / "planish.db"
    if isinstance(location, os.PathLike):
        return Path(location).expanduser().absolute()
    if "://" in location:
        return _of_url(location)
    # What resembles a URL or a connection string may hold a password.
    stray = "@" in location and not location.startswith(_EXPLICIT)
    if stray or redact(location) != location or re.match(_URL_LIKE, location, re.IGNORECASE):
        raise StoreError("the store's name is neither a file's nor a URL", f"{_FORMS} {_FILE}")
    return Path(location).expanduser().absolute()


def label(url: URL) -> str:
    """Return a database's URL as it is shown to people: without anything that may be a secret.

    The user is shown beside a password alone: otherwise it may be a password whose user was forgotten.
    """
    query = {name: value for name, value in url.query.items() if _is_shown(name, value)}
    user = url.username if url.password else None
    return URL.create("postgresql", user, None, url.host, url.port, url.database, query).render_as_string()


def secrets(url: URL) -> Sequence[str]:
    """Return the parts of a database's URL that its label leaves out, and that nothing else may repeat."""
    values = [str(value) for name, value in url.query.items() if not _is_shown(name, value)]
    shown = label(url)
    return [part for part in (url.password or url.username, *values) if part and part not in shown]


def _of_url(text: str) -> Path | URL:
    url = _parsed(text)
    match url.get_backend_name():
        case "sqlite" if url.database:
            if url.host or url.username or url.password or url.query:
                raise _malformed()
            return Path(url.database).expanduser().absolute()
        case "postgresql" | "postgres":
            return url.set(drivername="postgresql+psycopg")
        case _:
            raise StoreError("the store's URL is of a kind of database that cannot be one", _FORMS)


def _parsed(text: str) -> URL:
    try:
        url = make_url(text)
        text.encode()
    except (ArgumentError, ValueError):
        # Without its cause, which repeats parts of the URL.
        raise _malformed() from None
    front, at, rest = text.partition("@")
    # Of "?password=p@ss", the front is not a user's, and the rest not a host's.
    if (at and "?" in front) or "@" in rest or not _is_sound(url):
        raise _malformed()
    return url


def _is_sound(url: URL) -> bool:
    """Return whether no part of a URL can belong to an unescaped password."""
    file = url.get_backend_name() == "sqlite"
    # "sqlite:///me:password@host/planish" is not a file's: it was to be a server's.
    if file and re.match(r"[^/]*:[^/]*@", url.database or ""):
        return False
    named = file or all(
        re.fullmatch(_NAME, name) for name in ((url.host or "").replace(":", ""), url.database or "")
    )
    once = all(isinstance(value, str) for value in url.query.values())
    port = url.port is None or url.port in _PORTS
    return named and once and port and url.password != "" and "\0" not in (url.database or "")


def _malformed() -> StoreError:
    return StoreError("the store's URL is malformed", f"{_FORMS} {_ESCAPES}")


def _is_shown(name: str, value: object) -> bool:
    return name in _SHOWN and isinstance(value, str) and re.fullmatch(_PLAIN, value) is not None


_HEADER = Struct(">8I")  # magic, version, page size, checkpoints, two salts, two sums
_FRAME = Struct(">6I")  # page, pages after a commit (else 0), two salts, two sums
_MAGIC, _BIG = 0x377F0682, 0x377F0683
_PAUSE_S = 0.05

_Sums = tuple[int, int]


@dataclass(frozen=True)
class _Log:
    """A log's contents, and what its header says of them."""

    content: bytes
    order: str
    salts: _Sums
    sums: _Sums
    page: int

    def frames(self) -> Iterator[tuple[int, bool, bool, _Sums]]:
        """Yield of each frame its start, whether it is of this log, whether it commits, and its sums."""
        for start in range(
            _HEADER.size, len(self.content) - _FRAME.size - self.page + 1, _FRAME.size + self.page
        ):
            _, commits, *salts, one, other = _FRAME.unpack_from(self.content, start)
            yield start, tuple(salts) == self.salts, commits > 0, (one, other)

    def summed(self, start: int, before: _Sums) -> _Sums:
        """Return the sums that a frame should have, from those of the one before."""
        sums = _summed(self.content[start : start + 8], self.order, before)
        data = start + _FRAME.size
        return _summed(self.content[data : data + self.page], self.order, sums)


def check_log(log: Path, label: str) -> None:
    """See that a log that was left behind ends where its writer ended it, or in a frame that is torn.

    Args:
        log: the file; it may be missing.
        label: the store, as it is named to people.

    Raises:
        StoreError: something in the midst is damaged, and what was committed after it would be lost.
    """
    content = _read(log)
    while (what := _damage(content)) is not None:
        time.sleep(_PAUSE_S)  # a process that writes just now has written on by then
        before, content = content, _read(log)
        if content == before:
            raise damaged(label, f"{what} of its log {log.name}")


def _read(log: Path) -> bytes:
    try:
        return log.read_bytes()
    except FileNotFoundError:
        return b""


def _damage(content: bytes) -> str | None:
    """Name what is damaged; None where nothing is, or nothing would be lost."""
    if len(content) <= _HEADER.size + _FRAME.size:
        return None
    magic, _, page, _, salt, other_salt, *sums = _HEADER.unpack_from(content)
    order = ">" if magic == _BIG else "<"
    if magic not in (_MAGIC, _BIG) or list(_summed(content[:24], order, (0, 0))) != sums:
        return "the header"
    log = _Log(content, order, (salt, other_salt), (sums[0], sums[1]), page)
    return _cut(log)


def _cut(log: _Log) -> str | None:
    """Name the frame that SQLite would take for the end, where a commit that is whole comes after it."""
    end, before = "", {log.sums}
    for number, (start, ours, commits, sums) in enumerate(log.frames(), 1):
        should_be = {log.summed(start, each) for each in before} if ours or not end else set[_Sums]()
        whole = ours and sums in should_be
        if end and whole and commits:
            return end
        before = {sums}
        if not whole and not end:
            end = f"frame {number}"
            before |= should_be  # it may be its sums that are damaged
    return None


def _summed(data: bytes, order: str, sums: _Sums) -> _Sums:
    one, other = sums
    words = iter(Struct(f"{order}{len(data) // 4}I").unpack(data))
    # Two words at a time, each sum taking in the other, as the file format has it.
    for even, odd in zip(words, words, strict=True):
        one = (one + even + other) & 0xFFFFFFFF
        other = (other + odd + one) & 0xFFFFFFFF
    return one, other


# A text that is damaged is read all the same, so that its row can be named: the checksum shows it.
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
    for each in [path.parent, *([path] if path.exists() else [])]:
        if not os.access(each, os.W_OK):
            raise OSError(errno.EROFS, "Not writable", str(each))
    # NORMAL syncs at checkpoints only: a power cut may take the last commits, a killed process none.
    return _connect(f"{path.as_uri()}?mode=rwc", timeout, ["journal_mode=WAL", "synchronous=NORMAL"])


def _for_reading(path: Path, timeout: float) -> Connection:
    if not path.exists():
        raise StoreError(
            f"there is no store {path} yet", "Tune something first, or name another with store=."
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
        # SQLite waits for another writer only here: a lock wanted later would be refused at once.
        driver.execute("BEGIN IMMEDIATE" if connection.info["writes"] else "BEGIN")

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


# The server ends a connection, with the locks that it holds, soon after the other side is gone.
_KEEPALIVE = "-c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"


def open_postgres(url: URL, *, read_only: bool, timeout: float, patience: float) -> StoreSession:
    """Connect to a database that exists.

    Args:
        url: with the driver psycopg.
        read_only: only read.
        timeout: seconds to wait for the server, and for another session's lock.
        patience: seconds for which a lost connection is retried.

    Raises:
        StoreError: psycopg is missing, or the server cannot be reached, or it refuses. One that is starting
            up is waited for.
    """
    name, hidden = label(url), secrets(url)
    limits = f"-c lock_timeout={timeout * 1000:.0f} {_KEEPALIVE}"
    if read_only:
        limits += " -c default_transaction_read_only=on"
    try:
        engine = create_engine(_with(url, limits, max(2, round(timeout))), poolclass=NullPool)
    except ModuleNotFoundError as error:
        from planish.core.installation import install_command

        hint = f"Install it: {install_command('postgres')}."
        raise StoreError(f"the store {name} needs psycopg, which is missing here", hint) from error
    from psycopg import IsolationLevel

    def begin(connection: Connection) -> None:
        # A reader has one snapshot. The driver sends the level with BEGIN, and saves a message.
        driver: Any = connection.connection.driver_connection
        driver.isolation_level = None if connection.info["writes"] else IsolationLevel.REPEATABLE_READ

    event.listen(engine, "begin", begin)

    def connect(again: bool) -> Connection:
        with explained(name, connected=again, hidden=hidden):
            return engine.connect()

    connection = persist(connect, patience)
    return StoreSession(connection, AdvisoryLocks(connection), name, read_only, patience)


def _with(url: URL, limits: str, seconds: int) -> URL:
    """Add the defaults to a URL."""
    defaults = {"connect_timeout": str(seconds), "application_name": "planish"} | dict(url.query)
    options = f"{limits} {defaults.get('options', '')}"
    return url.update_query_dict({**defaults, "options": options.strip()})


_CREATING = 0x706C616F  # a lock of PostgreSQL's, beside those of the runs


def open_store(
    url: StrPath | None = None,
    *,
    read_only: bool = False,
    timeout: float = 10.0,
    patience: float = PATIENCE_S,
) -> Store:
    """Open the store, and create it where there is none.

    Args:
        url: a file, `sqlite:///FILE` or `postgresql://USER@HOST/DATABASE`; None for the environment's
            PLANISH_STORE, else `planish.db` in the user's data folder.
        read_only: refuse to write; the store must exist, with this version's schema.
        timeout: seconds to wait for another process's lock before giving up.
        patience: seconds for which the lost connection to a server is retried; 120 by default.

    Returns:
        The store; close it, or use it in a `with` statement.

    Raises:
        ArgumentError: an argument has a wrong type.
        StoreError: it cannot be opened; the message says why and the hint what to do.

    Examples:
        >>> import planish
        >>> with planish.open_store("planish.db") as store:
        ...     _ = planish.tune("C[m] += A[m,k]", size={"m": 8, "k": 8}, trials=2, store=store)
        ...     planish.runs(store)[0].level
        'loops'
    """
    check_path("url", url, optional=True)
    check_type("read_only", read_only, bool, "True or False")
    check_number("timeout", timeout)
    check_number("patience", patience)
    return _open(locate(url), read_only=read_only, timeout=timeout, patience=patience)


def _open(location: Path | URL, *, read_only: bool, timeout: float, patience: float) -> Store:
    if isinstance(location, URL):
        session = open_postgres(location, read_only=read_only, timeout=timeout, patience=patience)
    else:
        session = open_sqlite(location, read_only=read_only, timeout=timeout)
    try:
        _ensure_schema(session, read_only=read_only)
    except BaseException:
        session.close()
        raise
    return Store(session, partial(_open, location, read_only=True, timeout=timeout, patience=patience))


def has_default_store() -> bool:
    """Return whether the user's own store is there: the environment names one, or its file exists."""
    location = locate(None)
    return isinstance(location, URL) or "PLANISH_STORE" in os.environ or location.exists()


@contextmanager
def store_at(store: Store | StrPath | None) -> Generator[Store]:
    """Provide a store for the block: one that is open as it is, any other opened; raises as `open_store`."""
    if isinstance(store, Store):
        yield store
        return
    with open_store(store) as opened:
        yield opened


def _ensure_schema(session: StoreSession, *, read_only: bool) -> None:
    """Check that the store has this version's tables, and create them in an empty database, all or none.

    Raises:
        StoreError: the schema is another, the database is empty and may not be written, or is not planish's.
    """
    if session.read(lambda connection: _has_schema(connection, session.label)):
        session.read(lambda connection: _check_runs(connection, session.label))
        return
    if read_only:
        raise StoreError(f"the store {session.label} is empty", "Tune with it once.")

    def create(connection: Connection, again: bool) -> None:
        del again
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATING})
        # Another process may have created them meanwhile.
        if not _has_schema(connection, session.label):
            metadata.create_all(connection)
            connection.execute(schema_version.insert(), {"version_num": str(SCHEMA)})

    session.write(create)


def _has_schema(connection: Connection, label: str) -> bool:
    """Return True for a store of this version, False for an empty database; anything else is an error."""
    tables = inspect(connection).get_table_names()
    if not tables:
        return False
    if schema_version.name not in tables:
        hint = "Give planish a file or a database of its own."
        raise StoreError(f"the database {label} holds other tables: {', '.join(tables[:3])}", hint)
    version = connection.execute(select(schema_version.c.version_num)).scalar()
    if not isinstance(version, str) or not fullmatch("0{0,3}[1-9][0-9]{0,3}", version):
        raise damaged(label, f"the schema in table {schema_version.name} is {version!r}")
    if int(version) == SCHEMA:
        return True
    known = f"the store {label} has the schema {int(version)}, and this planish reads and writes {SCHEMA}"
    if int(version) > SCHEMA:
        raise StoreError(known, "Upgrade planish: pip install --upgrade planish.")
    raise StoreError(known, "It is of an older planish: move it away, or name another with store=.")


def _check_runs(connection: Connection, label: str) -> None:
    """Check that no run is lost: its trials and results are checked by its row, and this checks the rows."""
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("PRAGMA integrity_check('runs')").scalar()
        if found != "ok":
            raise damaged(label, f"table runs: {found}")
