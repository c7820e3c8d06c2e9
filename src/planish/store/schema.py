"""Tables of the store, the number of their schema, and the checksum of each row."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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

from planish.core import StoreError

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
