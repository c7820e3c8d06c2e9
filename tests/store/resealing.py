"""Stores that a test has changed by hand, made whole again: as if planish had written them so."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Table, create_engine, select, update

from planish.store.schema import results, runs, sealed, tasks, total, trials


def reseal(location: Path) -> None:
    """Make all checksums of a store in SQLite anew."""
    engine = create_engine(f"sqlite:///{location}")
    with engine.begin() as connection:
        for table in (tasks, trials, results):
            _reseal(connection, table)
        for run in connection.execute(select(runs)).mappings().all():
            sums = {
                f"{table.name}_sum": total(
                    connection.execute(select(table.c.checksum).where(table.c.run_id == run["id"])).scalars()
                )
                for table in (trials, results)
            }
            row = sealed("runs", {**run, **sums})
            connection.execute(update(runs).where(runs.c.id == run["id"]).values(**row))
    engine.dispose()


def _reseal(connection: Connection, table: Table) -> None:
    keys = list(table.primary_key.columns)
    for row in connection.execute(select(table)).mappings().all():
        which = [key == row[key.name] for key in keys]
        number = sealed(table.name, dict(row))["checksum"]
        connection.execute(update(table).where(*which).values(checksum=number))
