"""The key of the secrets in the operating system's keyring. Import it only when that is wanted.

Never falls back to another place: `usable` says beforehand whether there is a keyring.
"""

import os

import keyring
from keyring.errors import KeyringError

from thoughtgate.core.errors import StoreSealed
from thoughtgate.registry.keys import KEY_BYTES

_SERVICE = "thoughtgate"


def usable() -> bool:
    """Say whether a keyring is there that can hold a key (asks it once, changes nothing)."""
    try:
        backend = keyring.get_keyring()
        if backend.priority <= 0:
            return False
        backend.get_password(_SERVICE, "probe")
    except (KeyringError, RuntimeError):
        return False
    return True


class KeyringKey:
    """A key in the keyring, under the name `account` (one per registry)."""

    def __init__(self, account: str) -> None:
        self._account = account

    @property
    def where(self) -> str:
        """Return the entry's name."""
        return f"the keyring entry {_SERVICE}/{self._account}"

    def load(self) -> bytes | None:
        """Return the key, None when there is no entry.

        Raises:
            StoreSealed: The keyring is closed, or the entry holds no key.
        """
        try:
            text = keyring.get_password(_SERVICE, self._account)
        except KeyringError as error:
            raise self._refused(why="the keyring does not open") from error
        if text is None:
            return None
        try:
            key = bytes.fromhex(text)
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            raise self._refused(why="it does not hold a key of 64 hexadecimal digits")
        return key

    def create(self) -> bytes:
        """Put a new key into the keyring, unless there is one.

        Raises:
            StoreSealed: The keyring does not take it.
        """
        present = self.load()
        if present is not None:
            return present
        key = os.urandom(KEY_BYTES)
        try:
            keyring.set_password(_SERVICE, self._account, key.hex())
        except KeyringError as error:
            raise self._refused(why="the keyring does not take a key") from error
        if self.load() != key:
            raise self._refused(why="the keyring does not keep what it is given")
        return key

    def _refused(self, *, why: str) -> StoreSealed:
        return StoreSealed(message=f"cannot use {self.where}: {why}")
