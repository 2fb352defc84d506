"""The registry's tables as they stand after the newest migration.

Never the way they came to be: that is in `migrations`, and a test holds the two together.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True),
    Column("install_id", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("created_ns", BigInteger, nullable=False),
)
"""One row. `revision` grows with every change, so that other processes can poll it."""

principals = Table(
    "principals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("created_ns", BigInteger, nullable=False),
)

servers = Table(
    "servers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("enabled", Boolean, nullable=False),
    Column("trusted", Boolean, nullable=False),
    Column("transport", LargeBinary, nullable=False),
    Column("settings", LargeBinary, nullable=False),
    Column("added_by", Text, ForeignKey("principals.id"), nullable=False),
    Column("added_ns", BigInteger, nullable=False),
    Column("changed_by", Text, ForeignKey("principals.id"), nullable=False),
    Column("changed_ns", BigInteger, nullable=False),
)
"""`transport` and `settings` are JSON without any secret."""

server_secrets = Table(
    "server_secrets",
    metadata,
    Column("server", Text, ForeignKey("servers.name", ondelete="CASCADE"), primary_key=True),
    Column("field", Text, primary_key=True),
    Column("key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)
"""One encrypted value each; `field` is `env:NAME`, `header:NAME` or `url`."""

logins = Table(
    "logins",
    metadata,
    Column("server", Text, primary_key=True),
    Column("place", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("valid_until", BigInteger),
    Column("renewable", Boolean, nullable=False),
    Column("refused", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("changed_by", Text, ForeignKey("principals.id"), nullable=False),
    Column("changed_ns", BigInteger, nullable=False),
)
"""One encrypted login each; `place` is the digest of the URL that it is for, `valid_until` Unix
seconds. No foreign key: servers of a configuration file have no row."""

models = Table(
    "models",
    metadata,
    Column("name", Text, primary_key=True),
    Column("settings", LargeBinary, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("changed_by", Text, ForeignKey("principals.id"), nullable=False),
    Column("changed_ns", BigInteger, nullable=False),
)
"""`settings` are JSON without the key; `key_id` and `sealed` are empty where there is none."""

tools = Table(
    "tools",
    metadata,
    Column("server", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("definition", LargeBinary, nullable=False),
    Column("position", Integer, nullable=False),
    Column("current", Boolean, nullable=False),
    Column("first_seen_ns", BigInteger, nullable=False),
    Column("last_seen_ns", BigInteger, nullable=False),
)
"""Every definition ever seen. No foreign key: servers of a configuration file have no row."""

offers = Table(
    "offers",
    metadata,
    Column("server", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("seen_ns", BigInteger, nullable=False),
)
"""What a server listed last beside tools, as JSON. No foreign key, as above."""

tool_settings = Table(
    "tool_settings",
    metadata,
    Column("server", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("effect", Text, nullable=False),
    Column("changed_by", Text, ForeignKey("principals.id"), nullable=False),
    Column("changed_ns", BigInteger, nullable=False),
)

schema_verdicts = Table(
    "schema_verdicts",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("checker", Text, primary_key=True),
    Column("rule", Text, nullable=False),
    Column("reason", Text, nullable=False),
)
"""`rule` is empty for an admitted schema; `checker` names the rules that decided."""

domains = Table(
    "domains",
    metadata,
    Column("name", Text, primary_key=True),
    Column("revision", BigInteger, nullable=False),
)
"""The domains there are, each at its current revision."""

domain_revisions = Table(
    "domain_revisions",
    metadata,
    Column("name", Text, primary_key=True),
    Column("revision", BigInteger, primary_key=True),
    Column("body", LargeBinary),
    Column("changed_by", Text, ForeignKey("principals.id"), nullable=False),
    Column("changed_ns", BigInteger, nullable=False),
)
"""`body` is JSON; null says that the domain was removed."""

audit_chains = Table(
    "audit_chains",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", Text, nullable=False, unique=True),
    Column("started_ns", BigInteger, nullable=False),
    Column("head_ns", BigInteger, nullable=False),
    Column("head_seq", BigInteger, nullable=False),
    Column("head_hash", LargeBinary, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("chain", Integer, ForeignKey("audit_chains.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("at_ns", BigInteger, nullable=False, index=True),
    Column("hash", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""`hash` is SHA-256 over the hash before it and `body`."""

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", Text, nullable=False, unique=True),
    Column("engine", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("domain", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("forked_from", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("head", BigInteger, nullable=False),
    Column("owner", Text, nullable=False),
    Column("lease_ns", BigInteger, nullable=False),
    Column("created_ns", BigInteger, nullable=False),
    Column("ended_ns", BigInteger),
    Index("runs_principal", "principal", "id"),
    Index("runs_open", "id", sqlite_where=text("status = 'open'")),
    Index("runs_ended", "ended_ns", sqlite_where=text("ended_ns IS NOT NULL")),
    Index("runs_forked", "parent", sqlite_where=text("forked_from > 0")),
)
"""`head` is the last event's `seq`; who writes names it and its `epoch`, so that an old driver
fails. A driver holds the lease until `lease_ns`. `status` is a `RunStatus`, or `removed` while the
events are being deleted. No foreign key: a token of the configuration has no principal here."""

journal = Table(
    "journal",
    metadata,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("effect", Text, nullable=False),
    Column("at_ns", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
"""`body` is JSON in the shape that `version` names. No foreign key: `runs.head` moves in the same
transaction, and a check of each row would only cost."""
