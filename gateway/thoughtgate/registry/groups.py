"""One connection of a writer's own thread, which commits groups of rows with SQLite's driver.

Never leaves half a group, and is never used by two threads.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from thoughtgate.core.errors import StoreError
from thoughtgate.registry import trouble
from thoughtgate.registry.database import Database

_CACHE = 256
"""KiB of pages that it keeps, instead of SQLite's two thousand: rows are put behind the others."""


class Groups:
    """Commits groups to the registry's file. The connection begins with the first one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: sqlite3.Connection | None = None
        self._synced: bool | None = None

    @contextmanager
    def group(self, *, sync: bool) -> Iterator[sqlite3.Connection]:
        """Give one write transaction; with `sync` it reaches the disk, and all before it.

        Raises:
            StoreError: Nothing of it was written.
        """
        self._database.check()
        with trouble.translated(self._database.path), self._database.lock.held():
            connection = self._connection = self._connection or self._connected()
            if sync is not self._synced:
                connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
                self._synced = sync
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            self._checkpoint(connection)

    def sync(self) -> None:
        """Flush groups that were committed without `sync` to the disk.

        Raises:
            StoreError: They may be lost if the machine stops now.
        """
        path = self._database.path
        with trouble.translated_files(path):
            log = os.open(path.with_name(path.name + "-wal"), os.O_RDONLY)
            try:
                os.fsync(log)
            finally:
                os.close(log)

    def close(self) -> None:
        """Close the connection.

        Raises:
            StoreLocked: Others write for too long; the connection stays open.
        """
        if self._connection is not None:
            with self._database.lock.held():
                self._connection.close()
            self._connection = self._synced = None

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Shorten the log; a failure is no failure of the group, which is committed."""
        with suppress(StoreError), trouble.translated(self._database.path):
            self._database.checkpoint_if_large(connection)

    def _connected(self) -> sqlite3.Connection:
        connection = self._database.connect()
        connection.execute(f"PRAGMA cache_size = -{_CACHE}")
        return connection
