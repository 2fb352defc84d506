"""What SQLite and the file system complain about, as the errors of the store.

Never hides an error that it does not know: that is a bug of ours and falls through.
"""

import errno
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from thoughtgate.core.errors import StoreCorrupt, StoreError, StoreFull, StoreLocked

_PRIMARY = 0xFF
"""The low byte of an extended result code is the primary one."""

# A failed write is ENOSPC only for SQLITE_FULL; quotas and file size limits come as these.
_NO_ROOM = {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
_NO_ROOM_ERRNO = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_NO_ROW = (json.JSONDecodeError, UnicodeDecodeError, msgspec.ValidationError)
"""What a changed or damaged row leads to: SQLite keeps no checksum of what it stores."""


def locked(path: Path) -> StoreLocked:
    """Return the error for a database that another program holds."""
    return StoreLocked(
        message=f"the registry {path} is held by another program; close that program or wait "
        "until it is done, then try again"
    )


def full(path: Path) -> StoreFull:
    """Return the error for a disk without room."""
    return StoreFull(
        message=f"no space is left for the registry {path}; free some on that disk and try "
        "again (nothing half-written was kept)"
    )


def corrupt(path: Path, why: str) -> StoreCorrupt:
    """Return the error for a file that is not a usable registry."""
    return StoreCorrupt(
        message=f"the registry {path} {why}; it was left as it is: restore a backup with "
        "`thoughtgate registry restore`, or move the file away to begin anew"
    )


def gone(path: Path) -> StoreError:
    """Return the error for a file that is no longer the one that was opened."""
    return StoreError(
        message=f"the registry {path} was removed or replaced while it was open; put it back, or "
        "stop what runs on it and start again"
    )


def unusable(path: Path, error: OSError) -> StoreError:
    """Return the error for a path that the file system refuses."""
    if error.errno in _NO_ROOM_ERRNO:
        return full(path)
    return StoreError(
        message=f"cannot use the registry {path}: {(error.strerror or 'error').lower()}; "
        "choose a folder that this user may write to"
    )


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise the store's errors for those of SQLite and SQLAlchemy."""
    try:
        yield
    except DBAPIError as error:
        if not isinstance(error.orig, sqlite3.Error):
            raise
        raise _named(path, error.orig) from error
    except sqlite3.Error as error:
        raise _named(path, error) from error
    except PoolTimeout as error:
        raise locked(path) from error
    except _NO_ROW as error:
        raise corrupt(path, "holds a row that cannot be read") from error


@contextmanager
def translated_files(path: Path) -> Iterator[None]:
    """Raise the store's errors for those of SQLite and of the file system around `path`."""
    try:
        with translated(path):
            yield
    except OSError as error:
        raise unusable(path, error) from error


def _named(path: Path, error: sqlite3.Error) -> StoreError:
    code = int(getattr(error, "sqlite_errorcode", 0))
    primary = code & _PRIMARY
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return locked(path)
    if primary == sqlite3.SQLITE_FULL or code in _NO_ROOM:
        return full(path)
    if primary in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return corrupt(path, "is damaged or is not a database")
    if primary in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
        return StoreError(
            message=f"the registry {path} cannot be written; check that it and its folder "
            "belong to this user and are writable"
        )
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreError(message=f"the registry {path} failed with {name}; see the log for details")
