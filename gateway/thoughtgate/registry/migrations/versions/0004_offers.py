"""What servers list beside tools: one row a server. Never changed again."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "offers",
        sa.Column("server", sa.Text, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("seen_ns", sa.BigInteger, nullable=False),
    )
