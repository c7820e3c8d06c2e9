"""Tables of the store, the number of their schema, and the records that are kept in their rows.

Each row has a checksum, by which a damaged one is found.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

from planish.core import (
    Candidate,
    Objective,
    Program,
    Step,
    StoreError,
    Target,
    Task,
    Trial,
    TrialPrediction,
    candidate_from_json,
    canonical_json,
    content_hash,
    gc_paused,
    outcome_from_json,
    outcome_to_json,
    stored_candidate,
)

_SEPARATOR = "\x1f"


def checksum(values: Iterable[object]) -> int:
    """Return the CRC-32 of a row's values, in the order of `COVERED`: it detects any 32 bits in a row."""
    # With a separator: else what moves from the end of a value to the beginning of the next would not show.
    return zlib.crc32(_SEPARATOR.join(map(str, values)).encode("utf-8", "surrogatepass"))


def sealed(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its checksum."""
    return {**row, "checksum": checksum(row[name] for name in COVERED[table])}


def total(checksums: Iterable[int]) -> int:
    """Return the sum of the checksums of rows; a missing row changes it."""
    return sum(checksums)


def damaged_trial(label: str, row: int, run_id: str) -> StoreError:
    """Make the error of a trial that is not as it was written."""
    hint = (
        f"Repeat the run's command, which measures it again, or delete the run: planish runs delete {run_id}."
    )
    return StoreError(f"the store {label} is damaged: row {row} of table trials", hint)


def damaged(label: str, what: str, run_id: str = "") -> StoreError:
    """Make the error of a store that is not as planish left it.

    Args:
        label: the store, as it is named to people.
        what: which row of which table, and what is the matter with it.
        run_id: the run that it belongs to; empty where it is of several.
    """
    rest = f"or give that run up: planish runs delete {run_id}" if run_id else "or name another with store="
    return StoreError(f"the store {label} is damaged: {what}", f"Go back to a copy of the store, {rest}.")


SCHEMA = 6
"""Raised whenever a table below changes. A store of any other number is refused."""

metadata = MetaData()

schema_version = Table("planish_version", metadata, Column("version_num", Text, primary_key=True))


def _filled(kind: type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


# `subject` names level, level version, program and target; `objective` is the leading one's name.
tasks = Table(
    "tasks",
    metadata,
    Column("key", Text, primary_key=True),
    *_filled(Text, "level", "level_version", "program", "target", "objectives", "objective", "subject"),
    Column("created", Double, nullable=False),
    Column("checksum", BigInteger),
    Index("tasks_by_subject", "subject"),
)

# `stored` counts the run's trials; the sums are of the checksums of its trials and of its results.
runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("task_key", Text, ForeignKey("tasks.key"), nullable=False),
    *_filled(Text, "searcher", "space"),
    Column("seed", BigInteger, nullable=False),
    *_filled(Text, "options", "versions", "host"),
    Column("started", Double, nullable=False),
    Column("ended", Double),
    *_filled(Text, "status", "seconds"),
    Column("warm_start", Text),
    Column("importance", Text),
    *_filled(BigInteger, "stored", "trials_sum", "results_sum"),
    Column("checksum", BigInteger),
    Index("runs_by_task", "task_key"),
)

# Candidates, outcomes and the like are JSON in text columns: one form in every database.
trials = Table(
    "trials",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("task_key", Text, nullable=False),
    Column("run_id", Text, ForeignKey("runs.id"), nullable=False),
    Column("index", Integer, nullable=False),
    *_filled(Text, "candidate_hash", "candidate", "outcome", "seconds"),
    Column("seed", BigInteger, nullable=False),
    Column("host", Text, nullable=False),
    Column("time", Double, nullable=False),
    Column("cached", Boolean, nullable=False),
    Column("prediction", Text),
    Column("client", Text, nullable=False),
    Column("checksum", BigInteger),
    UniqueConstraint("run_id", "index", name="one_trial_per_index"),
    Index("trials_by_candidate", "task_key", "candidate_hash"),
)

results = Table(
    "results",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("rank", Integer, primary_key=True),
    *_filled(Text, "task_key", "candidate"),
    Column("ratio", Double, nullable=False),
    Column("data", Text, nullable=False),
    Column("checksum", BigInteger),
    Index("results_by_task", "task_key"),
)

# What a run measures just now, until its lock ends, or a time in seconds since the epoch.
leases = Table(
    "leases",
    metadata,
    Column("task_key", Text, primary_key=True),
    Column("candidate_hash", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("until", Double, nullable=False),
    Index("leases_by_run", "run_id"),
)

COVERED: Mapping[str, Sequence[str]] = {
    table.name: [name for name in table.c.keys() if name != "checksum" and (table, name) != (trials, "id")]  # noqa: SIM118
    for table in (tasks, runs, trials, results)
}
"""Table to the columns of which a row's checksum is made."""


STARTED_BY = "started_by"
"""The option of a run that names the product that started it, such as `einsum`; users' own runs lack it."""

RunStatus = Literal["running", "finished", "stopped", "failed", "interrupted"]


@dataclass(frozen=True)
class Run:
    """One search for one task.

    Args:
        id: eight hexadecimal digits; a unique beginning of them names the run too.
        task_key: the key of its task.
        searcher: as on the command line.
        space: the name of the level's space.
        seed: all its randomness comes from it.
        options: what else decides the run (the searcher's options, the budget).
        versions: name to version of the software that ran it.
        host: the machine that it ran on.
        started: seconds since the epoch.
        ended: seconds since the epoch; None while it runs, and without end where it was killed.
        status: "interrupted" when it is not finished and no process writes to it.
        seconds: stage name to seconds, over the whole run; empty before the end.
        trials: how many trials are stored.
        warm_start: candidates that did well on other programs when it began, as JSON, the best first.
        importance: feature of a candidate to its importance for the best one, by the searcher's model.
    """

    id: str
    task_key: str
    searcher: str
    space: str
    seed: int
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    host: str
    started: float
    ended: float | None
    status: RunStatus
    seconds: Mapping[str, float]
    trials: int
    warm_start: Sequence[Any] = ()
    importance: Sequence[tuple[str, float]] = ()

    @property
    def own_options(self) -> Mapping[str, Any]:
        """Return the options without the product that started it."""
        return {name: value for name, value in self.options.items() if name != STARTED_BY}


@dataclass(frozen=True)
class StoredTask:
    """A task whose program is still a text.

    Args:
        key: the task's key.
        level: the name of its level.
        level_version: the level's version when it was stored.
        program: the program's canonical text, which the level's `read` reads.
        target: where it runs.
        objectives: what is to be improved; the first leads.
        created: when it was first stored, in seconds since the epoch.
    """

    key: str
    level: str
    level_version: str
    program: str
    target: Target
    objectives: tuple[Objective, ...]
    created: float

    def bind(self, program: Program) -> Task:
        """Return the task with the program that the level has read."""
        return Task(program, self.target, self.objectives, self.level_version)


@dataclass(frozen=True)
class ResultRow:
    """Row of a finalist: one of a run's best few, as measured again at the end.

    Args:
        candidate: what was measured.
        ratio: how many times better than the baseline, by the leading objective; 1 means no gain.
        data: all else that belongs to it, as JSON (see `planish.tuning.comparison_codec`).
        run_id: the run that found it; filled in by the store.
    """

    candidate: Candidate
    ratio: float
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    run_id: str = ""


# A value that is not finite is stored as it was measured, so this is not the canonical form.
to_json = json.JSONEncoder(separators=(",", ":")).encode

_OF_STORE = ("stored", "trials_sum", "results_sum", "checksum")  # columns of a run that are the store's own

# What JSON that planish did not write can lead to.
_UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
    OverflowError,
    StopIteration,
)

Steps = Mapping[str, type[Step]]
Record = tuple[Any, ...]


def subject(task: Task) -> str:
    """Return the key of a program on a target, whatever the objectives."""
    return content_hash(canonical_json([task.level, task.level_version, task.program.text, task.target.text]))


def task_row(task: Task) -> dict[str, Any]:
    """Return a task's row."""
    row = {
        "key": task.key,
        "level": task.level,
        "level_version": task.level_version,
        "program": task.program.text,
        "target": task.target.text,
        "objectives": to_json([[o.name, o.unit, o.direction, o.exact] for o in task.objectives]),
        "objective": task.objectives[0].name,
        "subject": subject(task),
        "created": time.time(),
    }
    return sealed("tasks", row)


def task_from_row(row: Mapping[Any, Any], label: str) -> StoredTask:
    """Read a task back; raises StoreError where the row is damaged."""
    what = f"row {row['key']} of table tasks"
    with _readable(label, what):
        _check(label, what, row.values())
        return StoredTask(
            key=row["key"],
            level=row["level"],
            level_version=row["level_version"],
            program=row["program"],
            target=Target.of_json(json.loads(row["target"])),
            objectives=tuple(Objective(*fields) for fields in json.loads(row["objectives"])),
            created=row["created"],
        )


def trial_row(trial: Trial, run_id: str, task_key: str) -> dict[str, Any]:
    """Return a trial's row."""
    row = {
        "task_key": task_key,
        "run_id": run_id,
        "index": trial.index,
        "candidate_hash": trial.candidate.hash,
        "candidate": trial.candidate.text,
        "outcome": to_json(outcome_to_json(trial.outcome)),
        "seconds": to_json(dict(trial.seconds)),
        "seed": trial.seed,
        "host": trial.host,
        "time": float(trial.time) + 0.0,  # SQLite has no -0.0
        "cached": bool(trial.cached),
        "prediction": None if trial.prediction is None else to_json(astuple(trial.prediction)),
        "client": trial.client,
    }
    return sealed("trials", row)


def result_row(finalist: ResultRow, run_id: str, rank: int, task_key: str) -> dict[str, Any]:
    """Return a finalist's row."""
    row = {
        "run_id": run_id,
        "rank": rank,
        "task_key": task_key,
        "candidate": finalist.candidate.text,
        "ratio": float(finalist.ratio) + 0.0,
        "data": to_json(dict(finalist.data)),
    }
    return sealed("results", row)


def trials_from_rows(rows: Iterable[Record], steps: Steps, label: str) -> list[Trial]:
    """Read trials back from rows of the table.

    Raises:
        StoreError: a row is damaged.
        ProgramError: the level no longer has a step.
    """
    found: list[Trial] = []
    read, row, seen = json.loads, Record(), set[str]()
    try:
        with gc_paused():
            for row in rows:
                if row[-1] != checksum(row[1:-1]):
                    raise damaged_trial(label, row[0], row[2])
                (
                    *_,
                    index,
                    name,
                    candidate,
                    outcome,
                    seconds,
                    seed,
                    host,
                    ended,
                    cached,
                    predicted,
                    client,
                    _,
                ) = row
                became, spent, guess = read(f"[{outcome},{seconds},{predicted or 'null'}]")
                sequence, known = stored_candidate(candidate, name, steps, seen), outcome_from_json(became)
                prediction = None if guess is None else TrialPrediction(*guess)
                found.append(
                    Trial(sequence, known, index, seed, spent, host, ended, cached, prediction, client)
                )
    except _UNREADABLE as error:
        raise _unreadable(label, f"row {row[0]} of table trials", error, row[2]) from error
    return found


def damaged_trials(rows: Iterable[Record]) -> list[Record]:
    """Return the damaged rows: those whose checksum does not match."""
    return [row for row in rows if row[-1] != checksum(row[1:-1])]


def results_from_rows(rows: Iterable[Record], steps: Steps, label: str) -> list[ResultRow]:
    """Read finalists back from rows of the table; raises as `trials_from_rows` does."""
    found: list[ResultRow] = []
    for row in rows:
        run_id, rank, _, candidate, ratio, data, _ = row
        what = f"row {run_id}, {rank} of table results"
        with _readable(label, what, run_id):
            _check(label, what, row, run_id)
            sequence = candidate_from_json(json.loads(candidate), steps)
            found.append(ResultRow(sequence, ratio, json.loads(data), run_id))
    return found


def check_run(row: Mapping[Any, Any], label: str) -> None:
    """Check the checksum of a run's row.

    Raises:
        StoreError: it is not.
    """
    _check(label, f"row {row['id']} of table runs", row.values(), str(row["id"]))


def run_from_row(row: Mapping[Any, Any], written: bool, label: str) -> Run:
    """Read a run back.

    Args:
        row: of the table.
        written: whether a process is writing to it.
        label: the store, as it is named to people.
    """
    check_run(row, label)
    with _readable(label, f"row {row['id']} of table runs", row["id"]):
        fields = {name: value for name, value in row.items() if name not in _OF_STORE}
        fields |= {name: json.loads(row[name]) for name in ("options", "versions", "seconds")}
        fields["warm_start"] = json.loads(row["warm_start"] or "[]")
        fields["importance"] = [(str(k), float(v)) for k, v in json.loads(row["importance"] or "[]")]
        if row["status"] == "running" and not written:
            fields["status"] = "interrupted"
        return Run(**fields, trials=row["stored"])


def _check(label: str, what: str, row: Iterable[object], run_id: str = "") -> None:
    *values, given = row
    if given != checksum(values):
        raise damaged(label, what, run_id)


@contextmanager
def _readable(label: str, what: str, run_id: str = "") -> Generator[None]:
    try:
        yield
    except _UNREADABLE as error:
        raise _unreadable(label, what, error, run_id) from error


def _unreadable(label: str, what: str, error: Exception, run_id: str) -> StoreError:
    return damaged(label, f"{what} cannot be read: {type(error).__name__}: {error}", run_id)
