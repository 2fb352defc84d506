"""Secrets at rest: AES-256-GCM, each value bound to its server, or model, and field.

Never stores, logs or reports a plain value or a key.
"""

import hashlib
import os
import threading
from collections.abc import Collection
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from thoughtgate.core.errors import StoreSealed
from thoughtgate.core.json import canonical
from thoughtgate.registry.keys import KeySource

_FORMAT = b"\x01"
_NONCE_BYTES = 12
_AGAIN = "remove them with `thoughtgate {} rm` and add them again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a secret belongs; a ciphertext moved to another place does not open.

    `server` is the name of what has it: of a server, or of a model where `noun` says so.
    """

    server: str
    field: str
    noun: str = "server"

    def bound(self) -> bytes:
        """Return the associated data."""
        return canonical([f"thoughtgate/{self.noun}-secret", self.server, self.field])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """An encrypted value. `key_id` tells keys apart and reveals nothing of them."""

    key_id: str
    sealed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUse:
    """That a server, or a model, has secrets, and which key sealed them."""

    server: str
    key_id: str
    noun: str = "server"


class Vault:
    """Seals and opens secrets with the key of one `KeySource`, loaded when first needed."""

    def __init__(self, keys: KeySource) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        self._key: bytes | None = None

    def admit(self, in_use: Collection[KeyUse]) -> None:
        """Make sure that new secrets can be sealed beside those that are there.

        A key is made only when no secret exists that another key has sealed.

        Raises:
            StoreSealed: The key is missing, unusable, or not the one in use.
        """
        if in_use:
            self.expect(in_use)
            return
        with self._lock:
            if self._loaded() is None:
                self._key = self._keys.create()

    def expect(self, in_use: Collection[KeyUse]) -> None:
        """Make sure that the key opens all these; the error names every server that it does not.

        Raises:
            StoreSealed: The key is missing, unusable, or not the one in use.
        """
        if not in_use:
            return
        with self._lock:
            key = self._loaded()
        if key is None:
            raise self._missing(in_use)
        if foreign := [use for use in in_use if use.key_id != _name(key)]:
            raise self._wrong(foreign)

    def seal(self, value: str, place: Place) -> Sealed:
        """Encrypt one value; `admit` comes first.

        Raises:
            StoreSealed: There is no key.
        """
        key = self._required(place)
        nonce = os.urandom(_NONCE_BYTES)
        text = value.encode("utf-8", "surrogateescape")
        sealed = AESGCM(key).encrypt(nonce, text, place.bound())
        return Sealed(key_id=_name(key), sealed=_FORMAT + nonce + sealed)

    def open(self, sealed: Sealed, place: Place) -> str:
        """Decrypt one value.

        Raises:
            StoreSealed: The key is missing or another one, or the value was tampered with.
        """
        key = self._required(place)
        if sealed.key_id != _name(key):
            raise self._wrong([place])
        try:
            text = _decrypt(key, sealed.sealed, place)
        except (InvalidTag, ValueError) as error:
            raise StoreSealed(
                message=f"{place.field} of {place.noun} {place.server} was changed in the registry "
                f"and does not open; set it again with `thoughtgate {place.noun} add`"
            ) from error
        return text.decode("utf-8", "surrogateescape")

    def _required(self, place: Place) -> bytes:
        with self._lock:
            key = self._loaded()
        if key is None:
            raise self._missing([place])
        return key

    def _loaded(self) -> bytes | None:
        if self._key is None:
            self._key = self._keys.load()
        return self._key

    def _missing(self, owners: Collection[Place | KeyUse]) -> StoreSealed:
        return StoreSealed(
            message=f"the registry holds secrets of {_listed(owners)}, but {self._keys.where} is "
            f"missing; put it back, or {_again(owners)}"
        )

    def _wrong(self, owners: Collection[Place | KeyUse]) -> StoreSealed:
        return StoreSealed(
            message=f"the secrets of {_listed(owners)} are encrypted with another key than "
            f"{self._keys.where}; put the right key back, or {_again(owners)}"
        )


def _listed(owners: Collection[Place | KeyUse]) -> str:
    """Return who has the secrets, such as `servers a, b and model c`."""
    parts = []
    for noun in sorted({owner.noun for owner in owners}, reverse=True):
        names = sorted({owner.server for owner in owners if owner.noun == noun})
        parts.append(f"{noun if len(names) == 1 else noun + 's'} {', '.join(names)}")
    return " and ".join(parts)


def _again(owners: Collection[Place | KeyUse]) -> str:
    nouns = {owner.noun for owner in owners}
    return _AGAIN.format("model" if nouns == {"model"} else "server")


def _decrypt(key: bytes, body: bytes, place: Place) -> bytes:
    start = len(_FORMAT) + _NONCE_BYTES
    if not body.startswith(_FORMAT):
        raise InvalidTag
    return AESGCM(key).decrypt(body[len(_FORMAT) : start], body[start:], place.bound())


def _name(key: bytes) -> str:
    return hashlib.sha256(b"thoughtgate/key-id" + key).hexdigest()[:16]
