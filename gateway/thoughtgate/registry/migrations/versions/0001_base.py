"""Servers, tools, domains, principals and verdicts. Never changed again."""

import secrets
import time

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

APPLICATION_ID = 0x74676174
"""`tgat` in the header of the file says that it is ours."""


def upgrade() -> None:
    """Create the tables, the install id and the local principal."""
    _create_meta_and_principals()
    _create_servers()
    _create_tools()
    _create_domains()


def _create_meta_and_principals() -> None:
    now = time.time_ns()
    meta = op.create_table(
        "meta",
        sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True),
        sa.Column("install_id", sa.Text, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("created_ns", sa.BigInteger, nullable=False),
    )
    principals = op.create_table(
        "principals",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_ns", sa.BigInteger, nullable=False),
    )
    install = {"id": 1, "install_id": secrets.token_hex(8), "revision": 1, "created_ns": now}
    op.bulk_insert(meta, [install])
    op.bulk_insert(principals, [{"id": "local", "name": "local user", "created_ns": now}])
    if op.get_bind().dialect.name == "sqlite":
        op.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _create_servers() -> None:
    op.create_table(
        "servers",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("trusted", sa.Boolean, nullable=False),
        sa.Column("transport", sa.LargeBinary, nullable=False),
        sa.Column("settings", sa.LargeBinary, nullable=False),
        sa.Column("added_by", sa.Text, sa.ForeignKey("principals.id"), nullable=False),
        sa.Column("added_ns", sa.BigInteger, nullable=False),
        sa.Column("changed_by", sa.Text, sa.ForeignKey("principals.id"), nullable=False),
        sa.Column("changed_ns", sa.BigInteger, nullable=False),
    )
    owner = sa.ForeignKey("servers.name", ondelete="CASCADE")
    op.create_table(
        "server_secrets",
        sa.Column("server", sa.Text, owner, primary_key=True),
        sa.Column("field", sa.Text, primary_key=True),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )


def _create_tools() -> None:
    op.create_table(
        "tools",
        sa.Column("server", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("definition", sa.LargeBinary, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("current", sa.Boolean, nullable=False),
        sa.Column("first_seen_ns", sa.BigInteger, nullable=False),
        sa.Column("last_seen_ns", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "tool_settings",
        sa.Column("server", sa.Text, primary_key=True),
        sa.Column("tool", sa.Text, primary_key=True),
        sa.Column("effect", sa.Text, nullable=False),
        sa.Column("changed_by", sa.Text, sa.ForeignKey("principals.id"), nullable=False),
        sa.Column("changed_ns", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "schema_verdicts",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("checker", sa.Text, primary_key=True),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )


def _create_domains() -> None:
    op.create_table(
        "domains",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "domain_revisions",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("revision", sa.BigInteger, primary_key=True),
        sa.Column("body", sa.LargeBinary),
        sa.Column("changed_by", sa.Text, sa.ForeignKey("principals.id"), nullable=False),
        sa.Column("changed_ns", sa.BigInteger, nullable=False),
    )
