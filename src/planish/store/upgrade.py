"""The schema's version: checked on every opening, brought up to date where the store may be written."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from planish.core import StoreError
from planish.store.schema import SCHEMA, VERSION_TABLE
from planish.store.session import Session

MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATING = 0x706C616F  # a lock beside those of the runs


def ensure_schema(session: Session, *, read_only: bool) -> None:
    """See that the store has this version's schema; a new or old one is given it, all or nothing.

    Raises:
        StoreError: the schema is newer, or old and not to be written, or the database is not planish's.
    """
    with session.reading() as connection:
        version = _version(connection, session.label)
    if version == SCHEMA:
        return
    if read_only:
        what = "is empty" if version is None else f"has the old schema {version}; this planish reads {SCHEMA}"
        raise StoreError(f"the store {session.label} {what}", "Tune with it once: that brings it up to date.")
    with session.writing() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
        # Another process may have done it meanwhile.
        if _version(connection, session.label) != SCHEMA:
            _migrate(connection)


def _version(connection: Connection, label: str) -> str | None:
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE not in tables:
        if tables:
            hint = "Give planish a file or a database of its own."
            raise StoreError(f"the database {label} holds other tables: {', '.join(tables[:3])}", hint)
        return None
    version = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if version and version > SCHEMA:
        what = f"the store {label} has the schema {version}, newer than {SCHEMA}, the newest known here"
        raise StoreError(what, "Upgrade planish: pip install --upgrade planish.")
    return version


def _migrate(connection: Connection) -> None:
    # Alembic takes longer to import than all else that opening does.
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS))
    command.upgrade(config, "head")
