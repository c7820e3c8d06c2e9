"""What a run was taught of other programs belongs to it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; what older runs were taught is not known."""
    op.add_column("runs", sa.Column("taught", sa.Text))
