"""The first schema: tasks, runs, trials and results."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    _make_tasks()
    _make_runs()
    _make_trials()
    _make_results()


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=False)


def _make_tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("key", sa.Text, primary_key=True),
        _text("level"),
        _text("level_version"),
        _text("program"),
        _text("target"),
        _text("objectives"),
        _text("objective"),
        _text("subject"),
        _number("created"),
    )
    op.create_index("tasks_by_subject", "tasks", ["subject"])


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("task_key", sa.Text, sa.ForeignKey("tasks.key"), nullable=False),
        _text("searcher"),
        _text("space"),
        sa.Column("seed", sa.BigInteger, nullable=False),
        _text("options"),
        _text("versions"),
        _text("host"),
        _number("started"),
        sa.Column("ended", sa.Double),
        _text("status"),
        _text("seconds"),
    )
    op.create_index("runs_by_task", "runs", ["task_key"])


def _make_trials() -> None:
    op.create_table(
        "trials",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        _text("task_key"),
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("index", sa.Integer, nullable=False),
        _text("candidate_hash"),
        _text("candidate"),
        _text("outcome"),
        _text("seconds"),
        sa.Column("seed", sa.BigInteger, nullable=False),
        _text("host"),
        _number("time"),
        sa.Column("cached", sa.Boolean, nullable=False),
        sa.UniqueConstraint("run_id", "index", name="one_trial_per_index"),
    )
    op.create_index("trials_by_candidate", "trials", ["task_key", "candidate_hash"])


def _make_results() -> None:
    op.create_table(
        "results",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("rank", sa.Integer, primary_key=True),
        _text("task_key"),
        _text("candidate"),
        _number("ratio"),
        _text("data"),
    )
    op.create_index("results_by_task", "results", ["task_key"])
