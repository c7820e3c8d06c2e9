"""Queries of a store."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    bindparam,
    case,
    func,
    select,
)

from planish.core import Candidate, StoreError, Task, Trial, did_you_mean
from planish.store.schema import (
    COVERED,
    STARTED_BY,
    Record,
    ResultRow,
    Run,
    Steps,
    StoredTask,
    check_run,
    checksum,
    damaged,
    results,
    results_from_rows,
    run_from_row,
    runs,
    subject,
    task_from_row,
    task_row,
    tasks,
    total,
    trials,
    trials_from_rows,
)
from planish.store.session import StoreSession

_Query = Select[*tuple[Any, ...]]
_RUN, _INDEX, _HASH = (trials.c.keys().index(name) for name in ("run_id", "index", "candidate_hash"))
_CHUNK = 500  # well below what a database takes in one statement

_NEWEST = (runs.c.started.desc(), runs.c.id)
_RUNS = select(runs).order_by(*_NEWEST)
_IDS = select(runs.c.id).order_by(*_NEWEST)
_LAST_TRIAL = select(func.max(trials.c.time)).where(trials.c.run_id == runs.c.id).scalar_subquery()
_BY_WORK = select(runs).order_by(
    # Options are JSON without spaces, in which a quotation mark within a text follows a backslash.
    case((runs.c.options.contains(f'"{STARTED_BY}":', autoescape=True), 1), else_=0),
    func.coalesce(runs.c.ended, _LAST_TRIAL, runs.c.started).desc(),
    runs.c.id,
)
_TRIALS, _RESULTS = select(trials), select(results)
# Made once: for a single candidate, to make a statement takes longer than to execute it.
_VALUES = bindparam("values", expanding=True)
_AT = _TRIALS.where(trials.c.run_id == bindparam("run"), trials.c.index.in_(_VALUES))
_KNOWN = _TRIALS.where(
    trials.c.task_key == bindparam("task"), ~trials.c.cached, trials.c.candidate_hash.in_(_VALUES)
)


class Parcel(NamedTuple):
    """All rows of a run.

    Args:
        task: the row of its task.
        run: its own row.
        trials: those of its trials, in the order of storing.
        results: those of its finalists.
    """

    task: RowMapping
    run: RowMapping
    trials: Sequence[RowMapping]
    results: Sequence[RowMapping]

    @property
    def rows(self) -> Sequence[tuple[Table, Sequence[RowMapping]]]:
        """The rows of each table, those first that others refer to."""
        return (tasks, [self.task]), (runs, [self.run]), (trials, self.trials), (results, self.results)


class Reader:
    """Read-only view of a store. Threads may share one; processes may not.

    All methods raise StoreError where the store cannot be read. Those that read candidates take `steps`, step
    name to class as the level lists them, and raise ProgramError where the level lacks a step.
    """

    def __init__(self, session: StoreSession, reopen: Callable[[], Reader] | None = None) -> None:
        self._session = session
        self._reopen = reopen

    @contextmanager
    def reading(self) -> Generator[Reader]:
        """Provide this store for reading in the block; one that was closed is opened again for it.

        Raises:
            StoreError: it cannot be opened again.
        """
        if self._reopen is None or not self._session.is_closed:
            yield self
            return
        with self._reopen() as again:
            yield again

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def label(self) -> str:
        """Return the name of the store for people: its file, or its URL without secrets."""
        return self._session.label

    def close(self) -> None:
        """Close the connection; harmless when called twice. A run not finished is interrupted."""
        self._session.close()

    def task(self, key: str) -> StoredTask:
        """Look a task up.

        Raises:
            StoreError: no task has this key.
        """
        query = select(tasks).where(tasks.c.key == key)
        row = self._session.read(lambda connection: connection.execute(query).mappings().first())
        if row is None:
            raise damaged(self._session.label, f"no task {key} in table tasks")
        return task_from_row(row, self._session.label)

    def run(self, run_id: str) -> Run:
        """Look a run up.

        Args:
            run_id: the id, or a unique beginning of it.

        Raises:
            StoreError: no run, or more than one, has an id that begins so.
        """
        found = self._runs(_RUNS.where(runs.c.id == run_id), limit=1)
        return found[0] if found else self._runs(_RUNS.where(runs.c.id == self.find_id(run_id)), limit=1)[0]

    def find_id(self, run_id: str) -> str:
        """Return the whole id of a run, damaged or not.

        Args:
            run_id: the id, or a unique beginning of it.

        Raises:
            StoreError: no run, or more than one, has an id that begins so.
        """
        begins = runs.c.id.startswith(run_id.lower(), autoescape=True)
        found = self._ids(_IDS.where(begins).limit(5)) if run_id else []
        if len(found) == 1:
            return found[0]
        if found:
            which = f"Which: {', '.join(found)}?"
            raise StoreError(f"several runs have ids that begin with '{run_id}'", which)
        hint = did_you_mean(run_id, self._ids(_IDS.limit(100)))
        raise StoreError(f"no run '{run_id}' in the store {self._session.label}", hint)

    def runs(self, task_key: str | None = None, limit: int | None = None) -> list[Run]:
        """List runs, the newest first.

        Args:
            task_key: only this task's.
            limit: most that are returned.
        """
        return self._runs(_RUNS if task_key is None else _RUNS.where(runs.c.task_key == task_key), limit)

    def changes(self) -> int | None:
        """Return a number that differs once another connection has changed the store; takes microseconds.

        None for a server, which has none.
        """

        def read(connection: Connection) -> int | None:
            if connection.dialect.name != "sqlite":
                return None
            return connection.exec_driver_sql("PRAGMA data_version").scalar_one()

        return self._session.read(read)

    def stamps(self) -> dict[str, tuple[int, bool]]:
        """Return the ids of all runs, the newest first, each with what differs after any change of the run.

        That is a number, which its trials and its result change too, and whether a process writes to it.
        """
        query = select(runs.c.id, runs.c.checksum, runs.c.status).order_by(*_NEWEST)

        def read(connection: Connection) -> dict[str, tuple[int, bool]]:
            rows = connection.execute(query).all()
            written = self._session.locks.held([row.id for row in rows if row.status == "running"])
            return {row.id: (row.checksum or 0, row.id in written) for row in rows}

        return self._session.read(read)

    def last_run(self) -> Run | None:
        """Return the run that was begun, resumed or ended last; None in an empty store.

        Runs that a product started by itself, such as `planish.einsum`, come after all that users started.
        """
        return next(iter(self._runs(_BY_WORK, 1)), None)

    def trials(self, task_key: str, steps: Steps) -> list[Trial]:
        """List the trials of a task, of all runs, in the order in which they were stored."""
        query = _TRIALS.where(trials.c.task_key == task_key).order_by(trials.c.id)
        rows = self._whole(query, runs.c.task_key == task_key)
        # Only now, since the sums of runs count those from the store too.
        return [trial for trial in trials_from_rows(rows, steps, self._session.label) if not trial.cached]

    def run_trials(self, run_id: str, steps: Steps) -> list[Trial]:
        """List a run's trials by index, those with outcomes taken from the store too; by its whole id."""
        query = _TRIALS.where(trials.c.run_id == run_id).order_by(trials.c.index)
        rows = self._whole(query, runs.c.id == run_id)
        return trials_from_rows(rows, steps, self._session.label)

    def each_trial(self, run_id: str, steps: Steps) -> Iterator[Trial]:
        """Read a run's trials by index, a few at a time; no process may write to the run meanwhile."""
        for rows in self._each(run_id):
            yield from trials_from_rows(rows, steps, self._session.label)

    def trials_after(self, run_id: str, row: int, steps: Steps) -> Iterator[tuple[list[Trial], int]]:
        """Read the trials of a run that were stored after another one, a few at a time, as they were stored.

        A process may write to the run meanwhile. That none is missing is not checked.

        Args:
            run_id: the whole id.
            row: what came with the last trials that are known; 0 for all.
            steps: step name to class.

        Yields:
            Trials, and what a later call takes to go on after them.
        """
        if row == 0:
            query = select(trials.c.id).where(trials.c.run_id == run_id)
            ids = sorted(self._session.read(lambda connection: connection.execute(query).scalars().all()))
            chunks = (ids[start : start + _CHUNK] for start in range(0, len(ids), _CHUNK))
            found = (self._rows(_TRIALS.where(trials.c.id.in_(chunk))) for chunk in chunks)
        else:
            found = self._following(run_id, row)
        for rows in found:
            ordered = sorted(rows, key=lambda each: each[0])
            yield trials_from_rows(ordered, steps, self._session.label), ordered[-1][0]

    def _following(self, run_id: str, row: int) -> Iterator[list[Record]]:
        """Yield the rows of a run after a known one, a few at a time.

        Few rows of any run come after those that are known: the index by run would take longer.
        """
        query = _TRIALS.where(trials.c.run_id.concat("") == run_id).order_by(trials.c.id).limit(_CHUNK)
        while rows := self._rows(query.where(trials.c.id > row)):
            yield rows
            row = rows[-1][0]
            if len(rows) < _CHUNK:
                return

    def trials_at(self, run_id: str, indices: Iterable[int], steps: Steps) -> list[Trial]:
        """List a run's trials of these indices; indices without a trial are skipped."""
        rows = self._rows_with(_AT, indices, run=run_id)
        return trials_from_rows(rows, steps, self._session.label)

    def known(self, task_key: str, candidates: Iterable[Candidate]) -> dict[str, Trial]:
        """Return the stored trials of candidates for a task.

        Returns:
            Candidate hash to the trial that measured it last; nothing for a candidate never measured.
        """
        wanted = {candidate.hash: candidate for candidate in candidates}
        steps = {type(step).__name__: type(step) for c in wanted.values() for step in c.steps}
        rows = self._rows_with(_KNOWN, wanted, task=task_key)
        newest = {row[_HASH]: row for row in sorted(rows, key=lambda row: row[0])}
        found = trials_from_rows(newest.values(), steps, self._session.label)
        return dict(zip(newest, found, strict=True))

    def result_rows(self, run_id: str, steps: Steps) -> list[ResultRow]:
        """List a run's result, the best first; empty before its end."""
        query = _RESULTS.where(results.c.run_id == run_id).order_by(results.c.rank)
        label = self._session.label

        def read(connection: Connection) -> list[Record]:
            rows = [tuple(row) for row in connection.execute(query)]
            run = connection.execute(select(runs).where(runs.c.id == run_id)).mappings().first()
            if run is not None and run["results_sum"] != total(row[-1] or 0 for row in rows):
                check_run(run, label)
                raise damaged(label, f"rows of run {run_id} in table results", run_id)
            return rows

        return results_from_rows(self._session.read(read), steps, label)

    def best_results(self, task: Task, steps: Steps) -> list[ResultRow]:
        """List the finalists of all runs for a program on a target, the greatest ratio first.

        Runs with other objectives count too where the leading one is the same.

        Of equal ones the newest is first.
        """
        same = tasks.c.subject == subject(task), tasks.c.objective == task.objectives[0].name
        whole = results.join(tasks, results.c.task_key == tasks.c.key).join(
            runs, results.c.run_id == runs.c.id
        )
        query = _RESULTS.select_from(whole).where(*same)
        best = query.order_by(results.c.ratio.desc(), runs.c.started.desc())
        return results_from_rows(self._rows(best), steps, self._session.label)

    def winners(self, task: Task, steps: Steps, before: float, most: int) -> list[tuple[str, ResultRow]]:
        """List finalists of runs for other programs that are better than their baselines, with the programs.

        They are of runs on the task's target with its leading objective, by the same version of the level.

        Args:
            task: whose program is left out.
            steps: step name to class.
            before: runs count that had ended then, in seconds since the epoch.
            most: how many are read at most: of the runs that ended last, and of each run the best.

        Returns:
            The text of each one's program, and the finalist.
        """
        own = task_row(task)
        alike = [tasks.c[name] == own[name] for name in ("level", "level_version", "target", "objective")]
        whole = results.join(tasks, results.c.task_key == tasks.c.key).join(
            runs, results.c.run_id == runs.c.id
        )
        query = select(tasks.c.program, *results.c).select_from(whole)
        other = tasks.c.program != own["program"], results.c.ratio > 1, runs.c.ended < before
        newest = query.where(*alike, *other).order_by(runs.c.ended.desc(), results.c.rank).limit(most)
        rows = self._rows(newest)
        found = results_from_rows((row[1:] for row in rows), steps, self._session.label)
        return [(row[0], finalist) for row, finalist in zip(rows, found, strict=True)]

    def parcel(self, run_id: str) -> Parcel:
        """Return all rows of a run, for another store.

        Args:
            run_id: the whole id.

        Raises:
            StoreError: one of them is damaged.
        """

        def read(connection: Connection) -> Parcel:
            def rows(column: Column[Any], value: str) -> Sequence[RowMapping]:
                table = column.table
                query = select(table).where(column == value).order_by(*table.primary_key)
                return connection.execute(query).mappings().all()

            (run,) = rows(runs.c.id, run_id)
            (task,) = rows(tasks.c.key, run["task_key"])
            return Parcel(task, run, rows(trials.c.run_id, run_id), rows(results.c.run_id, run_id))

        parcel, label = self._session.read(read), self._session.label
        for table, rows in parcel.rows:
            for row in rows:
                if row["checksum"] != checksum(row[name] for name in COVERED[table.name]):
                    raise damaged(label, f"a row of run {run_id} in table {table.name}", run_id)
        sums = (parcel.run["trials_sum"], parcel.run["results_sum"])
        if sums != tuple(total(row["checksum"] for row in rows) for rows in (parcel.trials, parcel.results)):
            raise damaged(label, f"rows of run {run_id} are missing", run_id)
        return parcel

    def _runs(self, query: _Query, limit: int | None) -> list[Run]:
        def read(connection: Connection) -> tuple[Sequence[RowMapping], set[str]]:
            rows = connection.execute(query.limit(limit)).mappings().all()
            running = [row["id"] for row in rows if row["status"] == "running"]
            return rows, self._session.locks.held(running)

        rows, written = self._session.read(read)
        return [run_from_row(row, row["id"] in written, self._session.label) for row in rows]

    def _ids(self, query: _Query) -> Sequence[str]:
        return self._session.read(lambda connection: connection.execute(query).scalars().all())

    def _rows(self, query: _Query, **values: object) -> list[Record]:
        return self._session.read(
            lambda connection: [tuple(row) for row in connection.execute(query, values)]
        )

    def _rows_with(self, query: _Query, values: Iterable[object], **others: object) -> list[Record]:
        """Return the rows of a query that takes `values`, of which there may be any number."""
        given = list(values)
        chunks = [given[start : start + _CHUNK] for start in range(0, len(given), _CHUNK)]

        def read(connection: Connection) -> list[Record]:
            found = (connection.execute(query, {"values": chunk, **others}) for chunk in chunks)
            return [tuple(row) for rows in found for row in rows]

        return self._session.read(read) if chunks else []

    def _whole(self, query: _Query, which: ColumnElement[bool]) -> list[Record]:
        """Return the rows of all trials of some runs; missing rows are detected by the runs' sums."""

        def read(connection: Connection) -> list[Record]:
            rows = [tuple(row) for row in connection.execute(query)]
            found: dict[str, list[int]] = {}
            for row in rows:
                found.setdefault(row[_RUN], []).append(row[-1] or 0)
            self._compare(connection, which, {run: (len(sums), total(sums)) for run, sums in found.items()})
            return rows

        return self._session.read(read)

    def _each(self, run_id: str) -> Iterator[list[Record]]:
        """Yield the rows of a run's trials by index, a few at a time; then check that none is missing."""
        query = _TRIALS.where(trials.c.run_id == run_id).order_by(trials.c.index).limit(_CHUNK)
        last, count, sums = -1, 0, 0
        # By index and not by OFFSET, for which all rows before it would be read again.
        while rows := self._rows(query.where(trials.c.index > last)):
            yield rows
            last, count = rows[-1][_INDEX], count + len(rows)
            sums += total(row[-1] or 0 for row in rows)
        found = {run_id: (count, sums)}
        self._session.read(lambda connection: self._compare(connection, runs.c.id == run_id, found))

    def _compare(
        self, connection: Connection, which: ColumnElement[bool], found: Mapping[str, tuple[int, int]]
    ) -> None:
        """Check the number of trials of runs, and the sums of their checksums."""
        label, left = self._session.label, dict(found)
        for run in connection.execute(select(runs).where(which)).mappings():
            count, sums = left.pop(run["id"], (0, 0))
            if (count, sums) != (run["stored"], run["trials_sum"]):
                check_run(run, label)
                what = f"{count} trials of run {run['id']} are there, and {run['stored']} were stored"
                raise damaged(label, what, run["id"])
        if left:
            raise damaged(label, f"no row {min(left)} in table runs")

    def _run_row(self, connection: Connection, run_id: str) -> RowMapping:
        row = connection.execute(select(runs).where(runs.c.id == run_id)).mappings().one()
        check_run(row, self._session.label)
        return row
