"""What can be written to a store."""

import platform
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sqlalchemy import Connection, Insert, Table, Update, delete, insert, update

from planish.core import StoreError, Task, Trial
from planish.store.reading import Reader
from planish.store.records import Finalist
from planish.store.rows import task_row, to_json, trial_row
from planish.store.schema import results, runs, tasks, trials
from planish.store.session import Session

_ADD = insert(trials)
_SEED_END = 2**63


class Store(Reader):
    """The store as a run sees it. All methods raise StoreError where the store cannot be written.

    What a method has written is stored when it returns, and outlives the process; what fails is
    not written at all. A run is written by one process; runs beside each other do not hinder each
    other. Threads may share a store; processes may not.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._task_keys: dict[str, str] = {}

    def begin_run(
        self,
        task: Task,
        *,
        searcher: str,
        space: str,
        seed: int,
        options: Mapping[str, Any] | None = None,
        versions: Mapping[str, str] | None = None,
        taught: Sequence[Any] | None = None,
    ) -> str:
        """Begin a run, and hold it for writing until it is finished or the store is closed.

        Args:
            task: what is tuned; stored where it is new.
            searcher: as on the command line.
            space: the name of the level's space.
            seed: from 0 to 2**63 - 1.
            options: what else decides the run, as JSON.
            versions: name to version of the software that runs it.
            taught: what other programs have taught it, as JSON; None where its level does not learn.

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
            "started": time.time(),
            "status": "running",
            "seconds": "{}",
            "taught": None if taught is None else to_json(list(taught)),
        }
        with self._session.writing() as connection:
            connection.execute(_insert_new(connection, tasks), task_row(task))
            run_id = _insert_run(connection, row)
            self._hold(run_id, task.key)
        return run_id

    def resume_run(self, run_id: str) -> None:
        """Hold a run for writing again, whether it was finished or interrupted.

        Args:
            run_id: the whole id.

        Raises:
            StoreError: there is no such run, or another process writes to it.
        """
        task_key = self.run(run_id).task_key
        with self._session.writing() as connection:
            self._hold(run_id, task_key)
            connection.execute(_run(run_id).values(status="running", ended=None))

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
        with self._session.writing() as connection:
            task_key = self._own(run_id)
            connection.execute(_ADD, [trial_row(trial, run_id, task_key) for trial in trials])

    def save_result(self, run_id: str, finalists: Sequence[Finalist]) -> None:
        """Store what a run found, in place of what was stored before.

        Args:
            run_id: a run begun or resumed here.
            finalists: the best first, or a Pareto front in the order to be shown.

        Raises:
            StoreError: the run is not held here.
        """
        with self._session.writing() as connection:
            task_key = self._own(run_id)
            connection.execute(delete(results).where(results.c.run_id == run_id))
            rows = [_finalist_row(f, run_id, rank, task_key) for rank, f in enumerate(finalists)]
            if rows:
                connection.execute(insert(results), rows)

    def finish_run(
        self,
        run_id: str,
        status: Literal["finished", "stopped", "failed"] = "finished",
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        """End a run, and let it go.

        Args:
            run_id: a run begun or resumed here.
            status: "stopped" when the user ended it, "failed" when it has no result.
            seconds: stage name to seconds, over the whole run.

        Raises:
            StoreError: the run is not held here.
        """
        end = {"status": status, "ended": time.time(), "seconds": to_json(dict(seconds or {}))}
        with self._session.writing() as connection:
            self._own(run_id)
            connection.execute(_run(run_id).values(**end))
        del self._task_keys[run_id]
        with self._session.reading():
            self._session.locks.release(run_id)

    def _hold(self, run_id: str, task_key: str) -> None:
        if not self._session.locks.take(run_id):
            what = f"another process is writing to run {run_id}"
            raise StoreError(what, "Let it end, or begin another run.")
        self._task_keys[run_id] = task_key

    def _own(self, run_id: str) -> str:
        if run_id not in self._task_keys:
            raise StoreError(f"run {run_id} is not open for writing here", "Resume it first.")
        task_key = self._task_keys[run_id]
        self._hold(run_id, task_key)
        return task_key


def _insert_new(connection: Connection, table: Table) -> Insert:
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as insert_with_conflicts
    else:
        from sqlalchemy.dialects.postgresql import insert as insert_with_conflicts
    return insert_with_conflicts(table).on_conflict_do_nothing()


def _insert_run(connection: Connection, row: Mapping[str, Any]) -> str:
    while True:
        run_id = secrets.token_hex(4)
        if connection.execute(_insert_new(connection, runs), {"id": run_id, **row}).rowcount:
            return run_id


def _run(run_id: str) -> Update:
    return update(runs).where(runs.c.id == run_id)


def _finalist_row(finalist: Finalist, run_id: str, rank: int, task_key: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "rank": rank,
        "task_key": task_key,
        "candidate": finalist.candidate.text,
        "ratio": finalist.ratio,
        "data": to_json(dict(finalist.data)),
    }
