"""Runs that leave a store, or move to another one: whole, as they were written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, Insert, RowMapping, Table, delete, func, insert, select

from planish.core import StoreError
from planish.store.schema import COVERED, checksum, damaged, leases, results, runs, tasks, total, trials
from planish.store.session import HeldError, StoreSession


def insert_new(connection: Connection, table: Table) -> Insert:
    """Return the statement that inserts rows and passes over those whose key is there."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as insert_with_conflicts
    else:
        from sqlalchemy.dialects.postgresql import insert as insert_with_conflicts
    return insert_with_conflicts(table).on_conflict_do_nothing()


_Row = RowMapping


class Parcel(NamedTuple):
    """All rows of a run.

    Args:
        task: the row of its task.
        run: its own row.
        trials: those of its trials, in the order of storing.
        results: those of its finalists.
    """

    task: _Row
    run: _Row
    trials: Sequence[_Row]
    results: Sequence[_Row]

    @property
    def rows(self) -> Sequence[tuple[Table, Sequence[_Row]]]:
        """The rows of each table, those first that others refer to."""
        return (tasks, [self.task]), (runs, [self.run]), (trials, self.trials), (results, self.results)


def drop(session: StoreSession, run_id: str) -> None:
    """Delete a run with its trials and its result, and its task where no other run has it.

    Args:
        session: of the store.
        run_id: the whole id. The run may be damaged.

    Raises:
        StoreError: another process writes to it.
    """

    def write(connection: Connection, again: bool) -> None:
        del again  # what is gone already is deleted once more without harm
        _hold(session, run_id)
        _delete(connection, run_id)

    session.write(write)
    session.read(lambda _: session.locks.release(run_id))


def pack(session: StoreSession, run_id: str) -> Parcel:
    """Read all rows of a run.

    Args:
        session: of the store.
        run_id: the whole id.

    Raises:
        StoreError: a row is damaged.
    """

    def read(connection: Connection) -> Parcel:
        def rows(table: Table, column: str, value: str) -> Sequence[RowMapping]:
            query = select(table).where(table.c[column] == value)
            ordered = query.order_by(trials.c.id) if table is trials else query
            return connection.execute(ordered).mappings().all()

        (run,) = rows(runs, "id", run_id)
        (task,) = rows(tasks, "key", run["task_key"])
        return Parcel(task, run, rows(trials, "run_id", run_id), rows(results, "run_id", run_id))

    parcel = session.read(read)
    _check(parcel, session.label)
    return parcel


def unpack(session: StoreSession, parcel: Parcel) -> bool:
    """Write all rows of a run; they replace an earlier state of the same run.

    Returns:
        Whether anything was written: a run that is there as it is, or has come further, stays.

    Raises:
        StoreError: another process writes to the run, or another run has its id.
    """
    new = parcel.run

    def write(connection: Connection, again: bool) -> bool:
        del again
        old = connection.execute(select(runs).where(runs.c.id == new["id"])).mappings().first()
        if old is not None:
            if any(old[name] != new[name] for name in ("task_key", "started", "host")):
                raise StoreError(
                    f"another run has the id {new['id']} in {session.label}", "Delete one of them."
                )
            if old["checksum"] == new["checksum"] or _reached(old) >= _reached(new):
                return False
        _hold(session, new["id"])
        _delete(connection, new["id"])
        _insert(connection, parcel)
        return True

    written = session.write(write)
    if written:
        session.read(lambda _: session.locks.release(new["id"]))
    return written


def _reached(run: _Row) -> tuple[int, bool, float]:
    """Return how far a run has come: of as many trials, by whether there is a result, then by its end."""
    return run["stored"], bool(run["results_sum"]), run["ended"] or 0.0


def _hold(session: StoreSession, run_id: str) -> None:
    if not session.locks.take(run_id):
        raise HeldError(f"another process is writing to run {run_id}", "Let it end first.")


def _delete(connection: Connection, run_id: str) -> None:
    key = connection.execute(select(runs.c.task_key).where(runs.c.id == run_id)).scalar()
    for table, column in ((leases, "run_id"), (results, "run_id"), (trials, "run_id"), (runs, "id")):
        connection.execute(delete(table).where(table.c[column] == run_id))
    others = select(func.count()).select_from(runs).where(runs.c.task_key == key)
    if not connection.execute(others).scalar():
        connection.execute(delete(tasks).where(tasks.c.key == key))


def _insert(connection: Connection, parcel: Parcel) -> None:
    for table, rows in parcel.rows:
        # The database numbers its own trials; a task may be there for other runs.
        named = [{name: row[name] for name in (*COVERED[table.name], "checksum")} for row in rows]
        if named:
            connection.execute(insert_new(connection, table) if table is tasks else insert(table), named)


def _check(parcel: Parcel, label: str) -> None:
    run_id = parcel.run["id"]
    for table, rows in parcel.rows:
        for row in rows:
            if row["checksum"] != checksum(row[name] for name in COVERED[table.name]):
                raise damaged(label, f"a row of run {run_id} in table {table.name}", run_id)
    sums = (parcel.run["trials_sum"], parcel.run["results_sum"])
    if sums != tuple(total(row["checksum"] for row in rows) for rows in (parcel.trials, parcel.results)):
        raise damaged(label, f"rows of run {run_id} are missing", run_id)
