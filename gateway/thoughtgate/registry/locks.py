"""Lock files beside a registry: who writes, who has it open at all, who renews a login.

Never held by readers: they need no lock, and never checkpoint.

SQLite before 3.51.3 can corrupt a write-ahead log that two connections reset at the same time, so
every write transaction, checkpoint and last close of any process happens inside `WriteLock.held`.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from thoughtgate.core.errors import StoreLocked
from thoughtgate.registry import trouble

_SHORTEST, _LONGEST = 0.0005, 0.02
"""Seconds between two attempts: flock knows no timeout, so a bounded wait has to ask again."""


class WriteLock:
    """`FILE.lock`: one writer at a time, of all threads and processes. Not reentrant.

    `patience` is how many seconds a writer waits before it gives up.
    """

    def __init__(self, database: Path, *, patience: float) -> None:
        self._database = database
        self._patience = patience
        self._threads = threading.Lock()
        self._file = _open_lock_file(database, ".lock")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock.

        Raises:
            StoreLocked: Others held it for longer than `patience`.
        """
        deadline = time.monotonic() + self._patience
        if not self._threads.acquire(timeout=self._patience):
            raise trouble.locked(self._database)
        try:
            self._wait_for_processes(deadline)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def close(self) -> None:
        """Close the lock file; the lock must be free."""
        os.close(self._file)

    def _wait_for_processes(self, deadline: float) -> None:
        pause = _SHORTEST
        while not _try_lock(self._file, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                raise trouble.locked(self._database)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST)


class UseLock:
    """`FILE.use`: shared by all who have the registry open; alone for upgrade and restore.

    Taken only by one who holds the write lock, so two can never race for it.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._file = _open_lock_file(database, ".use")

    def share(self) -> None:
        """Mark the registry as open by this process."""
        if not _try_lock(self._file, fcntl.LOCK_SH):
            raise trouble.locked(self._database)

    def alone(self, purpose: str) -> None:
        """Make sure that nobody else has the registry open.

        Raises:
            StoreLocked: Somebody has.
        """
        if not _try_lock(self._file, fcntl.LOCK_EX):
            raise StoreLocked(
                message=f"another process has the registry {self._database} open; stop it "
                f"before {purpose}"
            )

    def close(self) -> None:
        """Give the mark back."""
        os.close(self._file)


class LoginLock:
    """`FILE.login-SERVER`: one process at a time renews the login at a server.

    Held while an authorization server is asked, which takes long: never a writer's lock.
    """

    def __init__(self, database: Path, server: str) -> None:
        self._file = _open_lock_file(database, f".login-{server}")

    def taken(self) -> bool:
        """Take the lock if it is free; say whether it was."""
        return _try_lock(self._file, fcntl.LOCK_EX)

    def close(self) -> None:
        """Give it back."""
        os.close(self._file)


def _open_lock_file(database: Path, suffix: str) -> int:
    path = database.with_name(database.name + suffix)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except OSError as error:
        raise trouble.unusable(database, error) from error


def _try_lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
