"""One open SQLite file: short reads, locked writes. Never knows what the tables mean.

Trap: nobody may open the database file itself with `os.open` while connections exist, since
closing that descriptor would drop SQLite's own POSIX locks. Look at it with `stat` only.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine, event, select, update
from sqlalchemy.pool import QueuePool

from thoughtgate.core.errors import Conflict
from thoughtgate.registry import tables, trouble
from thoughtgate.registry.locks import UseLock, WriteLock

WAL_LIMIT = 4 * 1024 * 1024
"""Bytes of write-ahead log after which a writer checkpoints."""

_BEGIN = "thoughtgate_begin"
_CONNECTIONS = 5


def connect(path: Path, *, patience: float, mode: str = "rw") -> sqlite3.Connection:
    """Open an existing database file; the caller begins and ends transactions itself.

    `patience` is how many seconds SQLite waits for a lock. Closing the last connection to a file
    checkpoints it, so close under the write lock; with `mode` "ro" it changes nothing.
    """
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,
    )
    for pragma in (
        "foreign_keys = ON",
        "wal_autocheckpoint = 0",
        f"journal_size_limit = {WAL_LIMIT}",
        "trusted_schema = OFF",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


class Database:
    """The connections of one process to one registry file; safe to use from many threads."""

    def __init__(self, path: Path, *, lock: WriteLock, use: UseLock, patience: float) -> None:
        self.path = path
        self.lock = lock
        self.patience = patience
        self._use = use
        self._wal = path.with_name(path.name + "-wal")
        self._engine = create_engine(
            "sqlite://",
            creator=self.connect,
            poolclass=QueuePool,
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=patience,
            hide_parameters=True,
        )
        self._closed = False
        self._same = _identity(path)
        event.listen(self._engine, "begin", _begin)

    def connect(self) -> sqlite3.Connection:
        """Return a connection of the caller's own, to be closed under the write lock."""
        return connect(self.path, patience=self.patience)

    def check(self) -> None:
        """Make sure that the name still leads to the file which is open.

        Else what is written would be lost with the last connection, and nobody would know.

        Raises:
            StoreError: The file was removed or replaced.
        """
        if _identity(self.path) != self._same:
            raise trouble.gone(self.path)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give one consistent snapshot; fetch all you need at once, a long one stops checkpoints.

        Raises:
            StoreError: The database cannot be read.
        """
        self.check()
        with trouble.translated(self.path), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give one durable write transaction, committed at the end, rolled back on any exception.

        Raises:
            StoreError: The database cannot be written; nothing was changed.
        """
        self.check()
        with trouble.translated(self.path), self.lock.held(), self._engine.connect() as connection:
            with connection.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"}).begin():
                yield connection
            raw = connection.connection.driver_connection
            if isinstance(raw, sqlite3.Connection):
                self.checkpoint_if_large(raw)

    @contextmanager
    def change(self, *, at: int | None = None) -> Iterator[Connection]:
        """Give a write transaction that raises the registry's revision.

        Raises:
            Conflict: The revision is not `at`; nothing was changed.
            StoreError: The database cannot be written; nothing was changed.
        """
        with self.write() as connection:
            if at is not None and revision(connection) != at:
                raise Conflict(message="the registry has changed since you looked; look again")
            yield connection
            bump(connection)

    def checkpoint_if_large(self, connection: sqlite3.Connection) -> None:
        """Move the write-ahead log into the database when it is large.

        Only under the write lock and outside a transaction. Never waits for readers: what they
        still need stays in the log until next time.
        """
        with trouble.translated_files(self.path):
            size = self._wal.stat().st_size
        if size > WAL_LIMIT:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Close all connections and give the locks back; a second time does nothing."""
        if self._closed:
            return
        with trouble.translated(self.path), self.lock.held():
            self._engine.dispose()
        self._closed = True
        self._use.close()
        self.lock.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file has a name now; None when none has, or it cannot be told."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def revision(connection: Connection) -> int:
    """Return the registry's revision, as this transaction sees it."""
    return int(connection.execute(select(tables.meta.c.revision)).scalar_one())


def bump(connection: Connection) -> None:
    """Raise the registry's revision, so that other processes see that something changed."""
    connection.execute(update(tables.meta).values(revision=tables.meta.c.revision + 1))


def _begin(connection: Connection) -> None:
    """Begin by hand: the driver would begin late, and never with IMMEDIATE."""
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))
