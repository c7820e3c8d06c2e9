"""Runs tell each other what they are measuring just now."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "claims",
        sa.Column("task_key", sa.Text, primary_key=True),
        sa.Column("candidate_hash", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
    op.create_index("claims_by_run", "claims", ["run_id"])
