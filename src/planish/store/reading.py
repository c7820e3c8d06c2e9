"""What can be asked of a store."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Self

from sqlalchemy import Select, func, select

from planish.core import Candidate, StoreError, Task, Trial, did_you_mean
from planish.store.records import Finalist, Run, StoredTask
from planish.store.rows import (
    FINALIST_COLUMNS,
    TRIAL_COLUMNS,
    Record,
    Steps,
    finalists_from_rows,
    run_from_row,
    subject,
    task_from_row,
    trials_from_rows,
)
from planish.store.schema import results, runs, tasks, trials
from planish.store.session import Session

_Query = Select[*tuple[Any, ...]]
_CHUNK = 500  # well below what a database takes in one statement

_COUNT = select(func.count()).where(trials.c.run_id == runs.c.id).scalar_subquery().label("trials")
_RUNS = select(runs, _COUNT).order_by(runs.c.started.desc(), runs.c.id)
_TRIALS = select(*TRIAL_COLUMNS)
_FINALISTS = select(*FINALIST_COLUMNS)
_KNOWN = select(trials.c.id, trials.c.candidate_hash, *TRIAL_COLUMNS)


class Reader:
    """The store as reports see it. All methods raise StoreError where the store cannot be read.

    Threads may share one; processes may not.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; harmless when called twice. A run not finished is interrupted."""
        self._session.close()

    def task(self, key: str) -> StoredTask:
        """Look a task up.

        Raises:
            StoreError: no task has this key.
        """
        with self._session.reading() as connection:
            row = connection.execute(select(tasks).where(tasks.c.key == key)).mappings().first()
        if row is None:
            raise StoreError(f"no task {key} in the store {self._session.label}")
        return task_from_row(row)

    def run(self, run_id: str) -> Run:
        """Look a run up.

        Args:
            run_id: the id, or a unique beginning of it.

        Raises:
            StoreError: no run, or more than one, has an id that begins so.
        """
        begins = runs.c.id.startswith(run_id.lower(), autoescape=True)
        found = self._runs(_RUNS.where(begins), limit=5) if run_id else []
        if len(found) == 1:
            return found[0]
        if found:
            which = f"Which: {', '.join(run.id for run in found)}?"
            raise StoreError(f"several runs have ids that begin with '{run_id}'", which)
        hint = did_you_mean(run_id, [run.id for run in self.runs(limit=100)])
        raise StoreError(f"no run '{run_id}' in the store {self._session.label}", hint)

    def runs(self, task_key: str | None = None, limit: int | None = None) -> list[Run]:
        """List runs, the newest first.

        Args:
            task_key: only this task's.
            limit: at most so many.
        """
        return self._runs(_RUNS if task_key is None else _RUNS.where(runs.c.task_key == task_key), limit)

    def trials(self, task_key: str, steps: Steps) -> list[Trial]:
        """List all that was measured for a task, by whatever run, in the order of storing.

        Args:
            task_key: the task.
            steps: step name to class, as the level lists them.

        Raises:
            ProgramError: the level does not have a step.
        """
        query = _TRIALS.where(trials.c.task_key == task_key, ~trials.c.cached).order_by(trials.c.id)
        return trials_from_rows(self._rows(query), steps)

    def run_trials(self, run_id: str, steps: Steps) -> list[Trial]:
        """List a run's trials by index, those with outcomes taken from the store too.

        Args:
            run_id: the whole id.
            steps: step name to class, as the level lists them.

        Raises:
            ProgramError: the level does not have a step.
        """
        query = _TRIALS.where(trials.c.run_id == run_id).order_by(trials.c.index)
        return trials_from_rows(self._rows(query), steps)

    def known(self, task_key: str, candidates: Iterable[Candidate]) -> dict[str, Trial]:
        """Tell what is known of candidates for a task.

        Returns:
            Candidate hash to the trial that measured it last; nothing for a candidate never measured.
        """
        wanted = {candidate.hash: candidate for candidate in candidates}
        steps = {type(step).__name__: type(step) for c in wanted.values() for step in c.steps}
        rows: list[Record] = []
        hashes = iter(wanted)
        while chunk := list(islice(hashes, _CHUNK)):
            where = trials.c.task_key == task_key, trials.c.candidate_hash.in_(chunk), ~trials.c.cached
            rows += self._rows(_KNOWN.where(*where))
        newest = {row[1]: row[2:] for row in sorted(rows, key=lambda row: row[0])}
        return dict(zip(newest, trials_from_rows(newest.values(), steps), strict=True))

    def finalists(self, run_id: str, steps: Steps) -> list[Finalist]:
        """List a run's result, the best first; empty before its end.

        Args:
            run_id: the whole id.
            steps: step name to class, as the level lists them.
        """
        query = _FINALISTS.where(results.c.run_id == run_id).order_by(results.c.rank)
        return finalists_from_rows(self._rows(query), steps)

    def best_result(self, task: Task, steps: Steps) -> Finalist | None:
        """Find the best result of all runs for a program on a target.

        Runs with other objectives count too where the leading one is the same.

        Args:
            task: the program, the target and the leading objective.
            steps: step name to class, as the level lists them.

        Returns:
            The finalist with the greatest ratio, the newest of equals; None if there is none.
        """
        same = tasks.c.subject == subject(task), tasks.c.objective == task.objectives[0].name
        whole = results.join(tasks, results.c.task_key == tasks.c.key).join(
            runs, results.c.run_id == runs.c.id
        )
        query = _FINALISTS.select_from(whole).where(*same)
        best = query.order_by(results.c.ratio.desc(), runs.c.started.desc()).limit(1)
        return next(iter(finalists_from_rows(self._rows(best), steps)), None)

    def _runs(self, query: _Query, limit: int | None) -> list[Run]:
        with self._session.reading() as connection:
            rows = connection.execute(query.limit(limit)).mappings().all()
            written = self._session.locks.held(row["id"] for row in rows if row["status"] == "running")
        return [run_from_row(row, row["id"] in written) for row in rows]

    def _rows(self, query: _Query) -> list[Record]:
        with self._session.reading() as connection:
            return [tuple(row) for row in connection.execute(query)]
