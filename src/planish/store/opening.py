"""Opening of a store of either kind: its place, its connection, its schema."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from re import fullmatch

from sqlalchemy import URL, Connection, inspect, select, text

from planish.core import StoreError
from planish.store.checksums import damaged
from planish.store.location import locate
from planish.store.schema import SCHEMA, metadata, schema_version
from planish.store.sqlite import open_sqlite
from planish.store.store import Store
from planish.store.store_session import StoreSession

_CREATING = 0x706C616F  # a lock of PostgreSQL's, beside those of the runs


def open_store(url: str | Path | None = None, *, read_only: bool = False, timeout: float = 10.0) -> Store:
    """Open the store, and create it where there is none.

    Args:
        url: a file, `sqlite:///FILE` or `postgresql://USER@HOST/DATABASE`; None for the environment's
            PLANISH_STORE, else `planish.db` in the user's data folder.
        read_only: refuse to write; the store must exist, with this version's schema.
        timeout: seconds to wait for another process's lock before giving up.

    Returns:
        The store; close it, or use it in a `with` statement.

    Raises:
        StoreError: it cannot be opened; the message says why and the hint what to do.
    """
    place = locate(url)
    if isinstance(place, URL):
        from planish.store.postgres import open_postgres

        session = open_postgres(place, read_only=read_only, timeout=timeout)
    else:
        session = open_sqlite(place, read_only=read_only, timeout=timeout)
    try:
        _ensure_schema(session, read_only=read_only)
    except BaseException:
        session.close()
        raise
    return Store(session)


@contextmanager
def store_at(store: Store | str | Path | None) -> Generator[Store]:
    """Give a store that is open as it is, and open any other for the block; raises as `open_store` does."""
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
    """Tell a store of this version from an empty database; anything else is an error."""
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
    raise StoreError(known, "It is of an older planish: move it away, or name another with --store.")


def _check_runs(connection: Connection, label: str) -> None:
    """Check that no run is lost: its trials and results are checked by its row, and this checks the rows."""
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("PRAGMA integrity_check('runs')").scalar()
        if found != "ok":
            raise damaged(label, f"table runs: {found}")
