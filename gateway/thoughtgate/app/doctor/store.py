"""The registry's file, looked at from outside: version, wholeness, locks, modes and its disk.

Never writes: neither is it created or upgraded here, nor does a file appear beside it.
"""

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from os.path import exists
from pathlib import Path

from thoughtgate.app.doctor.findings import Checked, Finding
from thoughtgate.core.errors import StoreError
from thoughtgate.registry import trouble
from thoughtgate.registry.files import APPLICATION_ID, VERSIONS
from thoughtgate.registry.keys import KeyFile
from thoughtgate.registry.locks import WriteLock

NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "fuse.sshfs", "fuse.s3fs",
    "fuse.glusterfs", "fuse.rclone", "davfs", "fuse.davfs2", "ncpfs",
})  # fmt: skip
"""Kinds of file systems that lie on another machine."""

LOW, FULL = 200 * 2**20, 2 * 2**20
"""Bytes of free space below which there is a warning, and below which it is a problem."""

_PATIENCE = 1.0
"""Seconds that a writer is waited for: a gateway writes all the time, and never for long."""

_STEPS = 200_000_000
"""Steps of SQLite that the search for damage may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A disk as the system tells of it: bytes that are free of all, and what kind it is."""

    free: int
    total: int
    writable: bool
    kind: str = ""


def check_store(path: Path) -> Checked:
    """Look at the registry's file, its key and its folder."""
    findings: list[Finding] = []
    said = str(path)
    try:
        with trouble.translated_files(path):
            if not is_there(path):
                return Checked(name="registry", said=f"{path} is made when it is first used")
            findings += [*_mode_findings(path), *_key_findings(path.with_name("registry.key"))]
            version = _looked_at(path)
    except StoreError as error:
        findings.insert(0, judged_error(error, path))
    else:
        findings += judged_version(version, path)
        said = f"{path}, schema {version}"
    return Checked(name="registry", said=said, findings=tuple(findings))


def is_there(path: Path) -> bool:
    """Say whether there is a file; not being allowed to look is an error, not a no."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def judged_version(version: str, path: Path) -> Iterator[Finding]:
    """Yield a finding when a schema is not the one that this release works with."""
    if version == VERSIONS[-1]:
        return
    older = version in VERSIONS
    mend = (
        "stop the gateways that run, then open it with: thoughtgate server list"
        if older
        else "use the newer thoughtgate that wrote it, or set THOUGHTGATE_HOME to another folder"
    )
    yield Finding(
        code="store_older" if older else "store_newer",
        where=str(path),
        what=f"it has schema {version}, this release works with {VERSIONS[-1]}",
        mend=mend,
    )


def judged_error(error: StoreError, path: Path) -> Finding:
    """Return what an error of the registry means, and what mends it."""
    mend = {
        "store_locked": f"end the program that holds it: fuser -v {path}",
        "store_corrupt": f"thoughtgate registry restore BACKUP, or: mv {path} {path}.damaged",
        "store_full": f"free some space: df -h {path.parent}",
        "store_sealed": f"bring {path.with_name('registry.key')} back, with mode 600",
    }.get(error.code, f"see whose it is: ls -ld {path.parent} {path}")
    code = "disk_full" if error.code == "store_full" else error.code
    return Finding(code=code, where=str(path), what=error.message, mend=mend)


def check_disk(folder: Path) -> Checked:
    """Look at the disk of the state folder, or of the folder that it will be made in."""
    # by os.path, since a folder that may not be looked into is as good as none
    there = next(one for one in (folder.absolute(), *folder.absolute().parents) if exists(one))
    usage = shutil.disk_usage(there)
    disk = Disk(
        free=usage.free,
        total=usage.total,
        writable=_writable(there),
        kind=file_system(there.resolve(), _mounts()),
    )
    said = f"{folder}: {disk.free // 2**20} MB free"
    return Checked(name="disk", said=said, findings=tuple(judged_disk(disk, folder)))


def _writable(there: Path) -> bool:
    may = there.is_dir() and os.access(there, os.W_OK)
    return may and not os.statvfs(there).f_flag & os.ST_RDONLY


def judged_disk(disk: Disk, folder: Path) -> Iterator[Finding]:
    """Yield what is wrong with the disk of a folder."""
    where = str(folder)
    if not disk.writable:
        yield Finding(
            code="disk_readonly",
            where=where,
            what="this user cannot write there",
            mend=f"chown -R $USER {folder}, or set THOUGHTGATE_HOME to another folder",
        )
    if disk.total and disk.free < LOW:
        yield Finding(
            code="disk_full" if disk.free < FULL else "disk_low",
            where=where,
            what=f"{disk.free // 1024} kB are free",
            mend=f"free some space: df -h {folder}",
        )
    if disk.kind in NETWORK:
        yield Finding(
            code="store_on_network",
            where=where,
            what=f"it lies on a network file system ({disk.kind})",
            mend="set THOUGHTGATE_HOME to a folder of a local disk, and move the files there",
        )


def file_system(path: Path, mounts: str) -> str:
    """Return the kind of file system that `path` lies on; `mounts` is /proc/self/mountinfo."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < 5:
            continue
        point = fields[4].replace("\\040", " ")
        if path.is_relative_to(point) and len(point) >= best:
            best, kind = len(point), after.split(" ")[0]
    return kind


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux: nobody knows
        return ""


def _looked_at(path: Path) -> str:
    """Return the schema version of a registry that nobody holds and that is whole."""
    if path.stat().st_size == 0:
        raise trouble.corrupt(path, "is empty, so it was cut off")
    _check_lock(path)
    log = path.with_name(path.name + "-wal")
    mode = "mode=ro" if log.exists() else "mode=ro&immutable=1"
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=_PATIENCE, isolation_level=None
    )
    with closing(connection):
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION_ID:
            raise trouble.corrupt(path, "is a database of another program")
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        _check_wholeness(path, connection)
    return str(row[0]) if row else ""


def _check_wholeness(path: Path, connection: sqlite3.Connection) -> None:
    """Search for damage, for a bounded time: a large registry is not read to its end."""
    steps = iter(range(_STEPS // 1_000_000))
    connection.set_progress_handler(lambda: int(next(steps, None) is None), 1_000_000)
    try:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return
        raise
    if verdict != "ok":
        raise trouble.corrupt(path, "is damaged")


def _check_lock(path: Path) -> None:
    """See whether a writer can have the registry; where no lock file is, nobody holds it."""
    if not path.with_name(path.name + ".lock").exists():
        return
    lock = WriteLock(path, patience=_PATIENCE)
    try:
        with lock.held():
            pass
    finally:
        lock.close()


def _mode_findings(path: Path) -> Iterator[Finding]:
    open_to_others = path.parent.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)
    mode = path.stat().st_mode
    if open_to_others and mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Finding(
            code="store_mode",
            where=str(path),
            what=f"it has mode {stat.S_IMODE(mode):04o}, and others may enter its folder",
            mend=f"chmod 700 {path.parent} && chmod 600 {path}",
        )


def _key_findings(key: Path) -> Iterator[Finding]:
    try:
        KeyFile(key).load()
    except StoreError as error:
        yield Finding(
            code="store_sealed",
            where=str(key),
            what=error.message,
            mend=f"chmod 600 {key}, or put a copy of the key there",
        )
