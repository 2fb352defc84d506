"""The key that server secrets are encrypted with: 32 random bytes in a file of mode 0600.

Never a default or derived key, and never replaced: a lost key is an error, not a new key.
"""

import os
import secrets
import stat
from pathlib import Path
from typing import Protocol

from thoughtgate.core.errors import StoreSealed

KEY_BYTES = 32
"""AES-256."""


class KeySource(Protocol):
    """Where the key is kept."""

    @property
    def where(self) -> str:
        """Say where, for messages: a path, or the name of the keyring."""
        ...

    def load(self) -> bytes | None:
        """Return the key, None when there is none yet.

        Raises:
            StoreSealed: There is something, but it may not or cannot be used.
        """
        ...

    def create(self) -> bytes:
        """Make a random key and keep it; return the one that is kept.

        Raises:
            StoreSealed: It cannot be kept.
        """
        ...


class KeyFile:
    """A key in a file that only its owner can read, as 64 hexadecimal digits."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def where(self) -> str:
        """Return the path."""
        return f"the key file {self._path}"

    def exists(self) -> bool:
        """Say whether there is a file, usable or not."""
        return os.path.lexists(self._path)

    def load(self) -> bytes | None:
        """Return the key, None when there is no file.

        Raises:
            StoreSealed: Others may read the file, it belongs to someone else, or holds no key.
        """
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused(why=(error.strerror or "error").lower()) from error
        try:
            self._check_owner(os.fstat(descriptor))
            text = os.read(descriptor, 2 * KEY_BYTES + 2)
        finally:
            os.close(descriptor)
        return self._parse(text.strip())

    def create(self) -> bytes:
        """Write a new key; when another process was faster, return its key.

        Raises:
            StoreSealed: The file cannot be written.
        """
        partial = self._path.with_name(f"{self._path.name}.partial-{secrets.token_hex(4)}")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                _write_private(partial, os.urandom(KEY_BYTES).hex().encode() + b"\n")
                self._publish(partial)
            finally:
                partial.unlink(missing_ok=True)
        except OSError as error:
            raise self._refused(why=(error.strerror or "error").lower()) from error
        key = self.load()
        if key is None:
            raise self._refused(why="it vanished while it was made")
        return key

    def _publish(self, partial: Path) -> None:
        """Give the finished file its name, unless that is taken."""
        try:
            os.link(partial, self._path)
        except FileExistsError:
            return

    def _check_owner(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise self._refused(why="it is not a regular file")
        if status.st_uid != os.geteuid():
            raise self._refused(why="it belongs to another user")
        if status.st_mode & 0o077:
            raise self._refused(
                why="others may read it: run chmod 600 on it, and renew the secrets"
            )

    def _parse(self, text: bytes) -> bytes:
        try:
            key = bytes.fromhex(text.decode("ascii"))
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            raise self._refused(why="it does not hold a key of 64 hexadecimal digits")
        return key

    def _refused(self, *, why: str) -> StoreSealed:
        return StoreSealed(message=f"cannot use {self.where}: {why}")


def choose(file: KeyFile, keyring: KeySource | None) -> KeySource:
    """Return where the key is to be kept: a key file that exists wins over the keyring."""
    if keyring is None or file.exists():
        return file
    return keyring


def _write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
