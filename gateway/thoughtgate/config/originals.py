"""A file that people edit, too: read, kept as a backup, and replaced in one step.

Never writes into the file itself, never over a backup, and never changes its mode or owner.
"""

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from thoughtgate.config.texts import decoded
from thoughtgate.core.errors import ConfigError

BACKUP = ".thoughtgate-backup"
"""What the name of a backup adds to that of the file; later ones have a number, too."""

LARGEST = 64 * 1024 * 1024
"""Bytes of the largest file that is read."""

_NEW_MODE = 0o600
_WRITABLE = 0o222


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A file as it was read; `data` is None when there is none.

    `real` is the file itself when `path` is a link to it.
    """

    path: Path
    real: Path
    data: bytes | None

    @property
    def text(self) -> str:
        """Return what the file says, nothing when there is none.

        Raises:
            Unreadable: It is not UTF-8.
        """
        return decoded(self.data or b"")


def read(path: Path) -> Original:
    """Return a file, or what is known of one that does not exist.

    Raises:
        ConfigError: It cannot be read, or is no file.
    """
    try:
        real = Path(os.path.realpath(path))
        found = real.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise ConfigError(message=f"{path}: not a file that can be edited")
        data: bytes | None = real.read_bytes()
    except FileNotFoundError:
        data = None
    except OSError as error:
        raise ConfigError(message=f"{path}: cannot be read: {error.strerror}") from None
    return Original(path=path, real=real, data=data)


def write(file: Original, text: str | None) -> Path | None:
    """Replace what the file says, or remove it (None); return the backup, if there was a file.

    Raises:
        ConfigError: It cannot be written, is read-only, or has changed since it was read.
    """
    if read(file.path) != file:
        raise ConfigError(
            message=f"{file.path} was changed by another program meanwhile; nothing was done, "
            "try again"
        )
    if file.data is not None and not file.real.stat().st_mode & _WRITABLE:
        raise ConfigError(message=f"{file.path} is read-only; nothing was changed")
    try:
        backup = None if file.data is None else _kept(file, file.data)
        if text is None:
            file.real.unlink()
        else:
            file.real.parent.mkdir(parents=True, exist_ok=True)
            _replace(file, text.encode())
    except OSError as error:
        raise ConfigError(message=f"{file.path}: cannot be written: {error.strerror}") from None
    return backup


def backups(file: Original) -> Iterator[str]:
    """Yield what the backups of a file say, the latest first; those that are no text left out."""
    folder, name = file.path.parent, re.escape(f"{file.path.name}{BACKUP}")
    numbered = re.compile(rf"{name}(?:\.(\d+))?")
    names = os.listdir(folder) if folder.is_dir() else []
    found = sorted((int(m[1] or 0), m[0]) for m in map(numbered.fullmatch, names) if m)
    for _, name in reversed(found):
        with suppress(OSError, UnicodeDecodeError):
            yield (folder / name).read_bytes().decode()


def _kept(file: Original, data: bytes) -> Path:
    """Write a backup beside the file, under the first name that is free."""
    number = 0
    while True:
        suffix = f"{BACKUP}.{number}" if number else BACKUP
        backup = file.path.with_name(file.path.name + suffix)
        try:
            handle = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _NEW_MODE)
        except FileExistsError:
            number += 1
            continue
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(handle)  # on the disk before the file itself is replaced
            with suppress(PermissionError):  # it is the owner's copy, whoever that is
                _own(handle, file.real)
        return backup


def _replace(file: Original, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".thoughtgate-", dir=file.real.parent)
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            if file.data is not None:
                _own(handle, file.real)
            out.flush()
            os.fsync(handle)
        fresh.replace(file.real)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _own(handle: int, like: Path) -> None:
    """Give a new file the mode and owner of another."""
    wanted, found = like.stat(), os.fstat(handle)
    if (wanted.st_uid, wanted.st_gid) != (found.st_uid, found.st_gid):
        os.fchown(handle, wanted.st_uid, wanted.st_gid)
    os.fchmod(handle, stat.S_IMODE(wanted.st_mode))
