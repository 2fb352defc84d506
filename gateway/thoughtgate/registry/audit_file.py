"""One chain in the registry's file, written group by group. Lives in the writer's thread alone.

Never leaves half a group: rows and the chain's head are committed together or not at all.
"""

import secrets
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace

from thoughtgate.core.audit import AuditRow
from thoughtgate.core.errors import StoreError
from thoughtgate.registry import chain
from thoughtgate.registry.chain import ChainHead, Gap
from thoughtgate.registry.database import Database
from thoughtgate.registry.groups import Groups

HEADS_NOTED = 64
"""How many other chains, the most recently written ones, a row notes at most."""

_AT_ONCE = 32
"""Rows per INSERT: so many are encoded before the interpreter lock is let go again."""

_INSERT = "INSERT OR ROLLBACK INTO audit (chain, seq, at_ns, hash, body) VALUES "
"""OR ROLLBACK: without it SQLite keeps a statement journal in a temporary file for many rows."""

_HEADS = (
    "SELECT uid, head_seq, head_hash FROM audit_chains WHERE id != ? ORDER BY head_ns DESC LIMIT ?"
)

_Written = tuple[int, bytes]
"""A row that waits to be linked: its time and its body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRule:
    """After how many rows or seconds a group also notes where the other chains stand."""

    rows: int = 1000
    seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """Where the chain stands; advanced only when the database has committed."""

    id: int
    uid: str
    seq: int
    hash: bytes
    noted: dict[str, int]
    noted_seq: int
    noted_at: float


class AuditFile:
    """Writes one chain, which begins with the first group."""

    def __init__(self, database: Database, rule: CheckpointRule) -> None:
        self._groups = Groups(database)
        self._rule = rule
        self._chain: _Chain | None = None

    @property
    def uid(self) -> str:
        """Return the chain's id, empty before its first group."""
        return "" if self._chain is None else self._chain.uid

    def write(self, rows: Iterable[AuditRow | Gap], *, sync: bool) -> None:
        """Commit one group; with `sync` it is on the disk, with all groups before it.

        Raises:
            StoreError: Nothing of it was written.
        """
        before = self._chain
        with self._groups.group(sync=sync) as connection:
            now = time.time_ns()
            after = before or _begin(connection, now)
            after = _link(connection, after, ((row.at_ns, chain.body_of(row)) for row in rows))
            if self._is_due(after):
                after = _note(connection, after, chain.CHECKPOINT, now)
            self._keep_head(connection, before, after, now)
        self._chain = after

    def sync(self) -> None:
        """Flush groups that were committed without `sync` to the disk.

        Raises:
            StoreError: They may be lost if the machine stops now.
        """
        self._groups.sync()

    def end(self) -> None:
        """End the chain with a row that says so.

        Raises:
            StoreError: The row could not be written.
        """
        before = self._chain
        if before is None:
            return
        with self._groups.group(sync=True) as connection:
            now = time.time_ns()
            after = _note(connection, before, chain.CLOSED, now)
            self._keep_head(connection, before, after, now)
        self._chain = after

    def close(self) -> None:
        """Close the connection.

        Raises:
            StoreLocked: Others write for too long; the connection stays open.
        """
        self._groups.close()

    def _is_due(self, now: _Chain) -> bool:
        return (
            now.seq - now.noted_seq >= self._rule.rows
            or time.monotonic() - now.noted_at >= self._rule.seconds
        )

    def _keep_head(
        self, connection: sqlite3.Connection, before: _Chain | None, after: _Chain, at_ns: int
    ) -> None:
        """Store the head; only from where we left it, else somebody has rewritten our chain."""
        moved = connection.execute(
            "UPDATE audit_chains SET head_seq = ?, head_hash = ?, head_ns = ?"
            " WHERE id = ? AND head_seq = ?",
            (after.seq, after.hash, at_ns, after.id, before.seq if before else 0),
        )
        if moved.rowcount != 1:
            self._chain = None
            raise StoreError(
                message=f"the audit chain {after.uid} was changed by another program; run "
                "`thoughtgate audit verify`; the next rows begin a new chain"
            )


def _begin(connection: sqlite3.Connection, now: int) -> _Chain:
    """Insert a new chain, whose first row notes where the others stand."""
    (install,) = connection.execute("SELECT install_id FROM meta").fetchone()
    uid = f"{install}-{now:x}-{secrets.token_hex(4)}"
    start = chain.first_hash(uid)
    inserted = connection.execute(
        "INSERT INTO audit_chains (uid, started_ns, head_ns, head_seq, head_hash)"
        " VALUES (?, ?, ?, 0, ?)",
        (uid, now, now, start),
    )
    if inserted.lastrowid is None:
        raise sqlite3.IntegrityError(uid)
    fresh = _Chain(
        id=inserted.lastrowid, uid=uid, seq=0, hash=start, noted={}, noted_seq=0, noted_at=0.0
    )
    return _note(connection, fresh, chain.STARTED, now)


def _note(connection: sqlite3.Connection, now: _Chain, action: str, at_ns: int) -> _Chain:
    """Add a row with the heads that moved since the last such row; a checkpoint only if any."""
    found = connection.execute(_HEADS, (now.id, HEADS_NOTED)).fetchall()
    moved = [
        ChainHead(chain=uid, seq=seq, hash=value.hex())
        for uid, seq, value in found
        if now.noted.get(uid) != seq and isinstance(seq, int) and isinstance(value, bytes)
    ]
    if moved or action != chain.CHECKPOINT:
        now = _link(connection, now, [(at_ns, chain.heads_body(action, at_ns, moved))])
    noted = {uid: seq for uid, seq, _ in found}
    return replace(now, noted=noted, noted_seq=now.seq, noted_at=time.monotonic())


def _link(connection: sqlite3.Connection, now: _Chain, rows: Iterable[_Written]) -> _Chain:
    """Insert rows, each hashed with the one before it."""
    seq, head = now.seq, now.hash
    values: list[object] = []
    for at_ns, body in rows:
        seq, head = seq + 1, chain.next_hash(head, body)
        values += (now.id, seq, at_ns, head, body)
        if len(values) == _AT_ONCE * 5:
            _insert(connection, values)
            values = []
    if values:
        _insert(connection, values)
    return replace(now, seq=seq, hash=head)


def _insert(connection: sqlite3.Connection, values: list[object]) -> None:
    marks = ", ".join(["(?, ?, ?, ?, ?)"] * (len(values) // 5))
    with closing(connection.execute(_INSERT + marks, values)):
        pass
