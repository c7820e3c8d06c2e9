"""Inserting what may be there already, in either database."""

from sqlalchemy import Connection, Insert, Table


def insert_new(connection: Connection, table: Table) -> Insert:
    """Give the statement that inserts rows and passes over those whose key is there."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as insert_with_conflicts
    else:
        from sqlalchemy.dialects.postgresql import insert as insert_with_conflicts
    return insert_with_conflicts(table).on_conflict_do_nothing()
