"""Logins at servers: encrypted tokens, one row a server. Never changed again."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "logins",
        sa.Column("server", sa.Text, primary_key=True),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("valid_until", sa.BigInteger),
        sa.Column("renewable", sa.Boolean, nullable=False),
        sa.Column("refused", sa.Text, nullable=False),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("changed_by", sa.Text, sa.ForeignKey("principals.id"), nullable=False),
        sa.Column("changed_ns", sa.BigInteger, nullable=False),
    )
