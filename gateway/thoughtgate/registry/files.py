"""The registry's file: created, recognised, upgraded. Never deletes or overwrites a database."""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from thoughtgate.core.errors import StoreLocked, StoreNewer, StoreOlder
from thoughtgate.registry import trouble
from thoughtgate.registry.database import connect
from thoughtgate.registry.locks import UseLock

VERSIONS = ("0001", "0002", "0003", "0004", "0005", "0006")
"""The schema versions that this release can read; the last is the one it works with."""

APPLICATION_ID = 0x74676174
"""`tgat` in the file's header marks a database as ours."""


def make_ready(path: Path, *, use: UseLock, patience: float) -> None:
    """Create or upgrade the registry at `path`, and mark it as open. Only under the write lock.

    Raises:
        StoreError: It cannot be used, and what to do; the file is as it was.
    """
    with trouble.translated_files(path):
        if not path.exists():
            use.alone("creating it")
            _create(path, patience=patience)
        elif (version := version_of(path, patience=patience)) != VERSIONS[-1]:
            _upgrade(path, version, use=use, patience=patience)
        use.share()
        with closing(connect(path, patience=patience)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")


def prepare_folder(path: Path) -> None:
    """Create the folder of the registry `path`, for its owner only; an existing one stays as it is.

    Raises:
        StoreError: It cannot be created.
    """
    with trouble.translated_files(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def version_of(path: Path, *, patience: float) -> str:
    """Return the schema version of the registry at `path`; only under its write lock.

    Raises:
        StoreNewer: A newer release wrote it.
        StoreCorrupt: It is damaged, or no registry.
    """
    with trouble.translated_files(path):
        if path.stat().st_size == 0:
            raise trouble.corrupt(path, "is empty, so it was cut off")
        # read-only: closing a damaged file must not move its log into it
        with closing(connect(path, patience=patience, mode="ro")) as connection:
            version = _read_version(path, connection)
    if version in VERSIONS:
        return version
    raise StoreNewer(
        message=f"the registry {path} has schema {version}, this release knows {VERSIONS[-1]}; "
        "use the newer thoughtgate that wrote it, or another registry"
    )


def spare_name(path: Path, label: str) -> Path:
    """Return a free name beside `path` for a copy: `FILE.LABEL-DATE`, in UTC."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    wanted = path.with_name(f"{path.name}.{label}-{stamp}")
    while wanted.exists():
        wanted = path.with_name(f"{path.name}.{label}-{stamp}-{secrets.token_hex(2)}")
    return wanted


def copy_database(source: sqlite3.Connection, target: Path) -> None:
    """Write a consistent copy of an open database to `target`, a new file of mode 0600.

    A half-written copy never has the name `target`.

    Raises:
        FileExistsError: There is such a file already.
    """
    with new_file(target) as partial, closing(sqlite3.connect(partial)) as copy:
        source.backup(copy)


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Give an empty file of mode 0600 that becomes `target` when all went well.

    Raises:
        FileExistsError: There is such a file already.
    """
    partial = target.with_name(f"{target.name}.partial-{secrets.token_hex(4)}")
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield partial
        sync(partial)
        # a hard link fails when the name is taken, which a rename does not
        os.link(partial, target)
        sync(target.parent)
    finally:
        discard(partial)


def discard(copy: Path) -> None:
    """Remove a copy that did not come to be used, with what SQLite put beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        copy.with_name(copy.name + suffix).unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a closed file, or a folder's list of names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def migrate(path: Path, target: str, *, patience: float) -> None:
    """Take the database at `path` to schema `target` in one transaction."""
    # imported only now: nearly every command finds the registry as it should be
    import_module("thoughtgate.registry.migrating").migrate(path, target, patience=patience)


def _create(path: Path, *, patience: float) -> None:
    for suffix in ("-wal", "-journal"):
        left_over = path.with_name(path.name + suffix)
        if left_over.exists():
            raise trouble.corrupt(path, f"is missing, but its {left_over.name} is still there")
    with new_file(path) as partial:
        migrate(partial, VERSIONS[-1], patience=patience)


def _upgrade(path: Path, version: str, *, use: UseLock, patience: float) -> None:
    try:
        use.alone("upgrading it")
    except StoreLocked as error:
        raise StoreOlder(
            message=f"the registry {path} has the older schema {version} and is open in another "
            "process; stop that one, then start again to upgrade"
        ) from error
    with closing(connect(path, patience=patience)) as connection:
        copy_database(connection, spare_name(path, f"backup-{version}"))
    migrate(path, VERSIONS[-1], patience=patience)


def _read_version(path: Path, connection: sqlite3.Connection) -> str:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise trouble.corrupt(path, "is a database of another program")
    named = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'alembic_version'")
    if named.fetchone() is None:
        raise trouble.corrupt(path, "does not say which schema it has")
    rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    if len(rows) != 1:
        raise trouble.corrupt(path, "does not say which schema it has")
    return str(rows[0][0])
