"""The audit log: one hash chain per writer. Never changed again."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the chains and their rows."""
    op.create_table(
        "audit_chains",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("started_ns", sa.BigInteger, nullable=False),
        sa.Column("head_ns", sa.BigInteger, nullable=False),
        sa.Column("head_seq", sa.BigInteger, nullable=False),
        sa.Column("head_hash", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("chain", sa.Integer, sa.ForeignKey("audit_chains.id"), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_audit_at_ns", "audit", ["at_ns"])
