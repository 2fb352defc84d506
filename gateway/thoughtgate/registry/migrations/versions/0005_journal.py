"""Runs and their journal: what happened in them, event by event. Never changed again."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the runs and their events."""
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("domain", sa.Text, nullable=False),
        sa.Column("parent", sa.Text, nullable=False),
        sa.Column("forked_from", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("head", sa.BigInteger, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("lease_ns", sa.BigInteger, nullable=False),
        sa.Column("created_ns", sa.BigInteger, nullable=False),
        sa.Column("ended_ns", sa.BigInteger),
    )
    op.create_index("runs_principal", "runs", ["principal", "id"])
    op.create_index("runs_open", "runs", ["id"], sqlite_where=sa.text("status = 'open'"))
    op.create_index(
        "runs_ended", "runs", ["ended_ns"], sqlite_where=sa.text("ended_ns IS NOT NULL")
    )
    op.create_index("runs_forked", "runs", ["parent"], sqlite_where=sa.text("forked_from > 0"))
    op.create_table(
        "journal",
        sa.Column("run", sa.Integer, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("effect", sa.Text, nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
