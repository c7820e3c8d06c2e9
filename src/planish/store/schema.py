"""Tables of the store, and the number of their schema."""

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

SCHEMA = 4
"""Raised whenever a table below changes. A store of any other number is refused."""

metadata = MetaData()

schema_version = Table("planish_version", metadata, Column("version_num", Text, primary_key=True))

# `subject` names level, level version, program and target; `objective` is the leading one's name.
tasks = Table(
    "tasks",
    metadata,
    Column("key", Text, primary_key=True),
    Column("level", Text, nullable=False),
    Column("level_version", Text, nullable=False),
    Column("program", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("objectives", Text, nullable=False),
    Column("objective", Text, nullable=False),
    Column("subject", Text, nullable=False),
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
    Column("searcher", Text, nullable=False),
    Column("space", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("options", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("started", Double, nullable=False),
    Column("ended", Double),
    Column("status", Text, nullable=False),
    Column("seconds", Text, nullable=False),
    Column("taught", Text),
    Column("stored", BigInteger, nullable=False, server_default="0"),
    Column("trials_sum", BigInteger, nullable=False, server_default="0"),
    Column("results_sum", BigInteger, nullable=False, server_default="0"),
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
    Column("candidate_hash", Text, nullable=False),
    Column("candidate", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("seconds", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("host", Text, nullable=False),
    Column("time", Double, nullable=False),
    Column("cached", Boolean, nullable=False),
    Column("checksum", BigInteger),
    UniqueConstraint("run_id", "index", name="one_trial_per_index"),
    Index("trials_by_candidate", "task_key", "candidate_hash"),
)

results = Table(
    "results",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("rank", Integer, primary_key=True),
    Column("task_key", Text, nullable=False),
    Column("candidate", Text, nullable=False),
    Column("ratio", Double, nullable=False),
    Column("data", Text, nullable=False),
    Column("checksum", BigInteger),
    Index("results_by_task", "task_key"),
)

# What a run measures just now, until its lock ends, or a time in seconds since the epoch.
claims = Table(
    "claims",
    metadata,
    Column("task_key", Text, primary_key=True),
    Column("candidate_hash", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("until", Double, nullable=False),
    Index("claims_by_run", "run_id"),
)
