"""Registered models and their keys, encrypted: one row a model. Never changed again."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "models",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("settings", sa.LargeBinary, nullable=False),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("changed_by", sa.Text, sa.ForeignKey("principals.id"), nullable=False),
        sa.Column("changed_ns", sa.BigInteger, nullable=False),
    )
