"""Which idempotency keys were used, on disk: the intent before sending, the outcome after.

Never holds a message or a URL, only digests. One SQLite file; several processes may share it.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_TABLE = """
CREATE TABLE IF NOT EXISTS sent (
    key TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    state TEXT NOT NULL,
    status INTEGER,
    at REAL NOT NULL
) STRICT
"""
_PATIENCE = 10.0


class State(Enum):
    """What is known about a key. `INTENDED` without more: nobody knows whether it was sent."""

    INTENDED = "intended"
    DELIVERED = "delivered"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An earlier use of a key; `status` is the HTTP status that came back."""

    digest: str
    state: State
    status: int | None


class Outbox:
    """The file of used keys. A key stays used for ever."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._opened() as connection:
            connection.execute(_TABLE)

    def claim(self, key: str, digest: str) -> Attempt | None:
        """Record the intent to send under `key`; return the earlier attempt when there is one."""
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute(
                "SELECT digest, state, status FROM sent WHERE key = ?", (key,)
            ).fetchone()
            if row is not None:
                connection.execute("COMMIT")
                return Attempt(digest=row[0], state=State(row[1]), status=row[2])
            connection.execute(
                "INSERT INTO sent VALUES (?, ?, ?, NULL, ?)",
                (key, digest, State.INTENDED.value, time.time()),
            )
            connection.execute("COMMIT")
        return None

    def settle(self, key: str, state: State, status: int) -> None:
        """Record what became of the message."""
        with self._opened() as connection:
            connection.execute(
                "UPDATE sent SET state = ?, status = ? WHERE key = ?", (state.value, status, key)
            )

    def release(self, key: str) -> None:
        """Forget an intent whose message provably never left."""
        with self._opened() as connection:
            connection.execute(
                "DELETE FROM sent WHERE key = ? AND state = ?", (key, State.INTENDED.value)
            )

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None)
        try:
            # a rollback journal, not WAL: several processes may write, and few writes come
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        finally:
            connection.close()
