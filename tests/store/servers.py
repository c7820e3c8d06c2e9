"""Statements to a PostgreSQL server, beside the store."""

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, create_engine
from sqlalchemy.pool import NullPool


def administer(server: URL, *statements: str) -> list[Any]:
    """Execute statements outside any transaction; gives the rows of the last, if it has any."""
    engine = create_engine(server, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    rows: list[Any] = []
    with engine.connect() as connection:
        for statement in statements:
            result = connection.exec_driver_sql(statement)
            rows = list(result) if result.returns_rows else []
    return rows


def make_schema(database: URL) -> URL:
    """Make a new, empty schema; gives the URL that chooses it."""
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
