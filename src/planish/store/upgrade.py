"""The schema's version: checked on every opening, brought up to date where the store may be written."""

from pathlib import Path
from re import fullmatch

from sqlalchemy import Column, Connection, MetaData, String, Table, inspect, text

from planish.core import StoreError
from planish.store.checksums import damaged
from planish.store.schema import SCHEMA, VERSION_TABLE, metadata
from planish.store.store_session import StoreSession

MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATING = 0x706C616F  # a lock beside those of the runs


def ensure_schema(session: StoreSession, *, read_only: bool) -> None:
    """See that the store has this version's schema; a new or old one is given it, all or nothing.

    Raises:
        StoreError: the schema is newer, or old and not to be written, or the database is not planish's.
    """
    version = session.read(lambda connection: _version(connection, session.label))
    if version == SCHEMA:
        session.read(lambda connection: _check_runs(connection, session.label))
        return
    if read_only:
        what = "is empty" if version is None else f"has the old schema {version}; this planish reads {SCHEMA}"
        raise StoreError(f"the store {session.label} {what}", "Tune with it once: that brings it up to date.")

    def bring_up_to_date(connection: Connection, again: bool) -> None:
        del again
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
        # Another process may have done it meanwhile.
        found = _version(connection, session.label)
        if found is None:
            create(connection)
        elif found != SCHEMA:
            migrate(connection)

    session.write(bring_up_to_date)


def _check_runs(connection: Connection, label: str) -> None:
    """See that no run is lost: its trials and results are checked by its row, and this checks the rows."""
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("PRAGMA integrity_check('runs')").scalar()
        if found != "ok":
            raise damaged(label, f"table runs: {found}")


def _version(connection: Connection, label: str) -> str | None:
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE not in tables:
        if tables:
            hint = "Give planish a file or a database of its own."
            raise StoreError(f"the database {label} holds other tables: {', '.join(tables[:3])}", hint)
        return None
    version = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if version is None and len(tables) == 1:
        return None
    if not isinstance(version, str) or not fullmatch("[0-9]{4}", version):
        raise damaged(label, f"the schema in table {VERSION_TABLE} is {version!r}")
    if version < SCHEMA and not any(MIGRATIONS.glob(f"versions/{version}_*.py")):
        raise damaged(label, f"the schema in table {VERSION_TABLE} is {version}, which never was")
    if version > SCHEMA:
        what = f"the store {label} has the schema {version}, newer than {SCHEMA}, the newest known here"
        raise StoreError(what, "Upgrade planish: pip install --upgrade planish.")
    return version


def create(connection: Connection) -> None:
    """Give an empty database the newest schema at once, just as the migrations make it."""
    metadata.create_all(connection)
    versions = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))
    versions.create(connection, checkfirst=True)
    connection.execute(versions.insert(), {"version_num": SCHEMA})


def migrate(connection: Connection) -> None:
    """Bring a database up to date, from its own schema on."""
    # Alembic takes longer to import than all else that opening does.
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS))
    command.upgrade(config, "head")
