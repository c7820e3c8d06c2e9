"""Store of tasks, runs, trials and results, as it is written."""

import platform
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from sqlalchemy import (
    Connection,
    Insert,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)

from planish.core import Candidate, StoreError, Task, Trial
from planish.store.locks import LEASE_S, acquire, renew
from planish.store.reader import Parcel, Reader
from planish.store.schema import (
    COVERED,
    ResultRow,
    damaged_trials,
    leases,
    result_row,
    results,
    runs,
    sealed,
    task_row,
    tasks,
    to_json,
    total,
    trial_row,
    trials,
)
from planish.store.session import (
    HeldError,
    LostConnectionError,
    PreparedStatement,
    StoreSession,
    uninterrupted,
)

_ADD = PreparedStatement(insert(trials), [*COVERED["trials"], "checksum"])
_SEED_END = 2**63

_Row = Mapping[str, Any]
_Change = tuple[_Row, Callable[[Connection], object]]
"""Changes of a run's row, and what changes other tables with it."""


class Store(Reader):
    """Store for reading and writing. All methods raise StoreError where the store cannot be written.

    What a method has written is stored when it returns, and outlives the process; what fails is
    not written at all. A run is written by one process; runs beside each other do not hinder each
    other. Threads may share a store; processes may not.

    Attributes:
        lease_s: how long a lease of a candidate lasts, in seconds.
    """

    lease_s: float = LEASE_S

    def __init__(self, session: StoreSession, reopen: Callable[[], Reader] | None = None) -> None:
        super().__init__(session, reopen)
        self._held: dict[str, _Row] = {}

    def begin_run(
        self,
        task: Task,
        *,
        searcher: str,
        space: str,
        seed: int,
        options: Mapping[str, Any] | None = None,
        versions: Mapping[str, str] | None = None,
        warm_start: Sequence[Any] = (),
        started: float | None = None,
    ) -> str:
        """Begin a run, and lock it for writing until it is finished or the store is closed.

        Args:
            task: what is tuned; stored where it is new.
            searcher: as on the command line.
            space: the name of the level's space.
            seed: from 0 to 2**63 - 1.
            options: what else decides the run, as JSON.
            versions: name to version of the software that runs it.
            warm_start: candidates that did well on other programs, as JSON.
            started: when it began to look into the store, in seconds since the epoch; None for now.

        Returns:
            The run's id.

        Raises:
            StoreError: the seed is out of range.
        """
        if not 0 <= seed < _SEED_END:
            raise StoreError(f"the seed {seed} cannot be stored", "Give one from 0 to 2**63 - 1.")
        row = {
            "task_key": task.key,
            "searcher": searcher,
            "space": space,
            "seed": seed,
            "options": to_json(dict(options or {})),
            "versions": to_json(dict(versions or {})),
            "host": platform.node(),
            "started": time.time() if started is None else started,
            "ended": None,
            "status": "running",
            "seconds": "{}",
            "warm_start": to_json(list(warm_start)),
            "importance": None,
            "stored": 0,
            "trials_sum": 0,
            "results_sum": 0,
        }
        own = secrets.token_hex(4)  # the same in every attempt, so that no two runs are begun

        def write(connection: Connection, again: bool) -> _Row:
            connection.execute(_insert_new(connection, tasks), task_row(task))
            return self._insert_run(connection, row, own, again)

        with uninterrupted():
            begun = self._session.write(write)
            self._held[begun["id"]] = begun
        return begun["id"]

    def resume_run(self, run_id: str) -> None:
        """Lock a finished or interrupted run for writing again.

        Args:
            run_id: the whole id.

        Raises:
            StoreError: there is no such run, or another process writes to it.
        """
        run_id = self.run(run_id).id

        def write(connection: Connection, again: bool) -> _Row:
            self._take(run_id, again)
            row = self._run_row(connection, run_id)
            new = sealed("runs", {**row, "status": "running", "ended": None})
            _rewrite(connection, new, ("status", "ended"))
            return new

        with uninterrupted():  # what is held here is what is stored
            self._held[run_id] = self._session.write(write)

    def add_trials(self, run_id: str, trials: Sequence[Trial]) -> None:
        """Add trials to a run, all or none.

        Args:
            run_id: a run begun or resumed here.
            trials: with indices that the run has not stored yet.

        Raises:
            StoreError: the run is not held here, or an index is stored already.
        """
        if not trials:
            return

        def change(held: _Row) -> _Change:
            added = [trial_row(trial, run_id, held["task_key"]) for trial in trials]
            sums = held["trials_sum"] + total(each["checksum"] for each in added)
            changes = {"stored": held["stored"] + len(added), "trials_sum": sums}
            return changes, lambda connection: _ADD.execute(connection, added)

        self._change(run_id, change)

    def drop_damaged_trials(self, run_id: str) -> int:
        """Delete the damaged trials of a run, so that they are measured again.

        Args:
            run_id: a run begun or resumed here.

        Returns:
            How many there were.

        Raises:
            StoreError: trials are lost, so that it is not known which are damaged.
        """
        rows = [row for part in self._each(run_id) for row in damaged_trials(part)]
        if not rows:
            return 0

        def change(held: _Row) -> _Change:
            # The sum of what was stored is still right: it counts what each row's checksum is.
            sums = held["trials_sum"] - total(row[-1] for row in rows)
            gone = delete(trials).where(trials.c.id.in_([row[0] for row in rows]))
            changes = {"stored": held["stored"] - len(rows), "trials_sum": sums}
            return changes, lambda connection: connection.execute(gone)

        self._change(run_id, change)
        return len(rows)

    @property
    def is_shared(self) -> bool:
        """Return whether other runs, of any task, may be writing to this store; takes microseconds."""
        return self._session.locks.may_be_shared()

    def lease(self, run_id: str, candidates: Sequence[Candidate], most: int) -> list[Candidate]:
        """Lease candidates to be measured, so that no other run for the same task measures them meanwhile.

        A lease ends with the run's next one, with its end, however that comes, and after two minutes at last
        if it is not renewed.

        Args:
            run_id: a run begun or resumed here.
            candidates: what is to be measured, the most wanted first.
            most: how many may be leased.

        Returns:
            Those that are leased; another run is measuring the others just now.

        Raises:
            StoreError: the run is not held here.
        """
        hashes = [candidate.hash for candidate in candidates]

        def write(connection: Connection, again: bool) -> list[str]:
            held = self._own(run_id, again)
            locks, task_key = self._session.locks, held["task_key"]
            return acquire(connection, locks, run_id, task_key, hashes, most, self.lease_s)

        mine = set(self._session.write(write))
        return [candidate for candidate in candidates if candidate.hash in mine]

    def renew_leases(self, run_id: str) -> None:
        """Extend the leases of a run."""
        self._session.write(lambda connection, _: renew(connection, run_id, self.lease_s))

    def save_importance(self, run_id: str, importance: Sequence[tuple[str, float]]) -> None:
        """Store the importance of features for the best candidate; it replaces an earlier one.

        Raises:
            StoreError: the run is not held here.
        """
        self._change(run_id, lambda _: ({"importance": to_json(importance)}, lambda _: None))

    def save_result(self, run_id: str, finalists: Sequence[ResultRow]) -> None:
        """Store the result of a run; it replaces an earlier one.

        Args:
            run_id: a run begun or resumed here.
            finalists: the best first, or a Pareto front in the order to be shown.

        Raises:
            StoreError: the run is not held here.
        """

        def change(held: _Row) -> _Change:
            rows = [result_row(f, run_id, rank, held["task_key"]) for rank, f in enumerate(finalists)]

            def replace(connection: Connection) -> None:
                connection.execute(delete(results).where(results.c.run_id == run_id))
                if rows:
                    connection.execute(insert(results), rows)

            return {"results_sum": total(each["checksum"] for each in rows)}, replace

        self._change(run_id, change)

    def finish_run(
        self,
        run_id: str,
        status: Literal["finished", "stopped", "failed"] = "finished",
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        """End a run, and release its lock.

        Args:
            run_id: a run begun or resumed here.
            status: "stopped" when the user ended it, "failed" when it has no result.
            seconds: stage name to seconds, over the whole run.

        Raises:
            StoreError: the run is not held here.
        """
        end = {"status": status, "ended": time.time(), "seconds": to_json(dict(seconds or {}))}
        released = delete(leases).where(leases.c.run_id == run_id)
        with uninterrupted():
            self._change(run_id, lambda _: (end, lambda connection: connection.execute(released)))
            del self._held[run_id]
        self._release(run_id)

    def delete_run(self, run_id: str) -> str:
        """Delete a run with its trials and its result; it may be damaged.

        Args:
            run_id: the id, or a unique beginning of it.

        Returns:
            The whole id.

        Raises:
            StoreError: there is no such run, or it is being written to.
        """
        whole = self.find_id(run_id)
        if whole in self._held:  # its lock is ours, and would let us
            raise HeldError(f"run {whole} is being written here", "Finish it first.")

        def write(connection: Connection, again: bool) -> None:
            del again  # what is gone already is deleted once more without harm
            self._take_free(whole)
            _delete(connection, whole)

        self._session.write(write)
        self._release(whole)
        return whole

    def take_run(self, source: Reader, run_id: str) -> bool:
        """Copy a run of another store, with its trials and its result.

        Args:
            source: the other store.
            run_id: the whole id.

        Returns:
            Whether this store did not have it, or less of it.

        Raises:
            StoreError: the run is damaged there, another process writes to it here, or another
                run has its id.
        """
        parcel = source.parcel(run_id)

        def write(connection: Connection, again: bool) -> bool:
            del again
            query = select(runs).where(runs.c.id == run_id)
            if not self._is_further(parcel.run, connection.execute(query).mappings().first()):
                return False
            self._take_free(run_id)
            _delete(connection, run_id)
            _insert(connection, parcel)
            return True

        if taken := self._session.write(write):
            self._release(run_id)
        return taken

    def _is_further(self, new: Mapping[Any, Any], old: Mapping[Any, Any] | None) -> bool:
        """Return whether a run of another store is further on than the copy in this one, if there is one."""
        if old is None:
            return True
        if any(old[name] != new[name] for name in ("task_key", "started", "host")):
            raise StoreError(
                f"another run has the id {new['id']} in {self._session.label}", "Delete one of them."
            )
        return old["checksum"] != new["checksum"] and _reached(new) > _reached(old)

    def _change(self, run_id: str, change: Callable[[_Row], _Change]) -> None:
        """Change a run that is locked here, all or nothing, and once even if the connection is lost."""

        def write(connection: Connection, again: bool) -> _Row:
            held = self._own(run_id, again)
            changes, change_others = change(held)
            new = sealed("runs", {**held, **changes})
            if not (again and self._was_stored(connection, held, new)):
                change_others(connection)
                _rewrite(connection, new, tuple(changes))
            return new

        with uninterrupted():  # what is held here is what is stored
            self._held[run_id] = self._session.write(write)

    def _take_free(self, run_id: str) -> None:
        if not self._session.locks.acquire(run_id):
            raise HeldError(f"another process is writing to run {run_id}", "Let it end first.")

    def _release(self, run_id: str) -> None:
        self._session.read(lambda _: self._session.locks.release(run_id))

    def _take(self, run_id: str, again: bool) -> None:
        for other in self._held if again else ():  # the lost connection held these locks
            self._session.locks.acquire(other)
        if not self._session.locks.acquire(run_id):
            # It may be the lost connection that holds the lock: a server notices late that a client is gone.
            kind = LostConnectionError if again else HeldError
            what = f"another process is writing to run {run_id}"
            raise kind(what, "Let it end, or begin another run.")

    def _own(self, run_id: str, again: bool) -> _Row:
        """Return the row of a run that is locked here, as it was last written."""
        if run_id not in self._held:
            raise StoreError(f"run {run_id} is not open for writing here", "Resume it first.")
        self._take(run_id, again)
        return self._held[run_id]

    def _was_stored(self, connection: Connection, held: _Row, new: _Row) -> bool:
        """Return whether a change was stored before the connection was lost: each changes the run's row."""
        found = self._run_row(connection, held["id"])["checksum"]
        if found not in (held["checksum"], new["checksum"]):
            raise StoreError(f"another process has continued run {held['id']}", "Run the command again.")
        return found == new["checksum"]

    def _insert_run(self, connection: Connection, row: _Row, own: str, again: bool) -> _Row:
        """Insert a run's row under a free id, and lock the run."""
        run_id = own
        while True:
            new = sealed("runs", {"id": run_id, **row})
            added = connection.execute(_insert_new(connection, runs), new).rowcount
            if added or (again and self._run_row(connection, run_id)["started"] == row["started"]):
                self._take(run_id, again)
                return new
            run_id = secrets.token_hex(4)


def _rewrite(connection: Connection, row: _Row, changed: tuple[str, ...]) -> None:
    """Write the columns of a run's row that have changed."""
    _update_of((*changed, "checksum")).execute(connection, [{**row, "run": row["id"]}])


@cache
def _update_of(columns: tuple[str, ...]) -> PreparedStatement:
    return PreparedStatement(update(runs).where(runs.c.id == bindparam("run")), columns)


def _reached(run: Mapping[Any, Any]) -> tuple[int, bool, float]:
    """Return the sort key of a run's progress: number of trials, whether it has a result, time of its end."""
    return run["stored"], bool(run["results_sum"]), run["ended"] or 0.0


def _insert_new(connection: Connection, table: Table) -> Insert:
    """Return the statement that inserts rows and skips those whose key exists."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as insert_with_conflicts
    else:
        from sqlalchemy.dialects.postgresql import insert as insert_with_conflicts
    return insert_with_conflicts(table).on_conflict_do_nothing()


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
            connection.execute(_insert_new(connection, table) if table is tasks else insert(table), named)
