"""Copies of a registry: taken while it is in use, put back while nobody uses it.

Never overwrites a file, and never loses the registry that a restore replaces. The key of the
secrets is not part of a copy.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from thoughtgate.core.errors import ConfigError, StoreCorrupt, StoreError
from thoughtgate.registry import files, trouble
from thoughtgate.registry.database import Database
from thoughtgate.registry.locks import UseLock, WriteLock

PATIENCE = 5.0
"""Seconds that a restore waits for a writer."""


def backup(database: Database, target: Path) -> None:
    """Write a consistent copy of the open registry to `target`, a new file of mode 0600.

    Raises:
        ConfigError: `target` exists, or its folder does not.
        StoreError: The copy could not be written; no half of it stays.
    """
    target = target.absolute()
    if not target.parent.is_dir():
        raise ConfigError(message=f"cannot back up to {target}: its folder does not exist")
    source = database.connect()
    try:
        with trouble.translated_files(target):
            files.copy_database(source, target)
            _check_copy(target, of=database.path)
    except StoreError as error:
        if isinstance(error.__cause__, FileExistsError):
            raise ConfigError(
                message=f"cannot back up to {target}: it exists; choose a new name"
            ) from error
        raise
    finally:
        with database.lock.held():
            source.close()


def restore(path: Path, source: Path, *, patience: float = PATIENCE) -> Path | None:
    """Put the copy `source` in the place of the registry `path`.

    Returns where the registry that stood there was kept, None when there was none. A copy with an
    older schema is upgraded when it is next opened.

    Raises:
        ConfigError: There is no file `source`.
        StoreLocked: A process has the registry open.
        StoreNewer: A newer release wrote `source`.
        StoreCorrupt: `source` is damaged, or no registry.
    """
    path, source = path.resolve(), source.resolve()
    if not source.is_file():
        raise ConfigError(message=f"cannot restore from {source}: there is no such file")
    if source == path:
        raise ConfigError(message=f"cannot restore {path} from itself; name a backup")
    files.prepare_folder(path)
    lock = WriteLock(path, patience=patience)
    use = UseLock(path)
    try:
        with lock.held(), trouble.translated_files(path):
            use.alone("restoring it")
            return _replace(path, source, patience=patience)
    except StoreCorrupt as error:
        raise StoreCorrupt(
            message=f"cannot restore from {source}: it is damaged, or is no registry; the present "
            "registry is as it was, so name another backup"
        ) from error
    finally:
        use.close()
        lock.close()


def _replace(path: Path, source: Path, *, patience: float) -> Path | None:
    incoming = files.spare_name(path, "incoming")
    try:
        _copy_checked(source, incoming, patience=patience)
        kept = _keep(path)
        incoming.replace(path)
        files.sync(path.parent)
    finally:
        files.discard(incoming)
    return kept


def _copy_checked(source: Path, target: Path, *, patience: float) -> None:
    """Copy `source` and look at the copy, so that what was looked at is what is used."""
    with trouble.translated_files(source), closing(_read_only(source)) as original:
        files.copy_database(original, target)
    try:
        files.version_of(target, patience=patience)
    except StoreCorrupt as error:
        raise trouble.corrupt(source, "is damaged, or is no registry") from error
    _check_copy(target, of=source)


def _check_copy(copy: Path, *, of: Path) -> None:
    """Look at all of a copy: one that cannot be put back is discarded, and none."""
    with closing(_read_only(copy)) as connection:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        files.discard(copy)
        raise trouble.corrupt(of, "is damaged")


def _read_only(path: Path) -> sqlite3.Connection:
    """Open a backup without leaving files beside it, unless it has a log of its own."""
    has_log = path.with_name(path.name + "-wal").exists()
    mode = "mode=ro" if has_log else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, isolation_level=None)


def _keep(path: Path) -> Path | None:
    """Give the present registry and its log a second name; it is not opened, it may be damaged.

    The log must not stay behind: SQLite would replay it into the database that comes next.
    """
    log = path.with_name(path.name + "-wal")
    if not path.exists() and not log.exists():
        return None
    kept = files.spare_name(path, "before-restore")
    if path.exists():
        os.link(path, kept)
    if log.exists():
        log.rename(kept.with_name(kept.name + "-wal"))
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
    return kept
