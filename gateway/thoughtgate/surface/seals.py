"""Small values that clients keep for us: encrypted, so nobody reads or changes them (AES-256-GCM).

Never says why one does not open, and never stores a key.
"""

import base64
import binascii
import hashlib
import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonObject
from thoughtgate.wire.strict import dumps, parse

_NONCE: Final = 12
_MOST: Final = 65_536


class Seal:
    """Seals JSON objects for one purpose; what was sealed for another one does not open."""

    def __init__(self, key: bytes, purpose: str) -> None:
        self._cipher = AESGCM(hashlib.sha256(b"thoughtgate/seal\0" + key).digest())
        self._purpose = purpose.encode()

    def seal(self, value: JsonObject) -> str:
        """Return a token of letters, digits, `-` and `_`."""
        nonce = os.urandom(_NONCE)
        sealed = nonce + self._cipher.encrypt(nonce, dumps(value), self._purpose)
        return _spelled(sealed)

    def open(self, token: str) -> JsonObject | None:
        """Return what was sealed, None for a token that is not one of ours."""
        if len(token) > _MOST or not token.isascii():
            return None
        try:
            sealed = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
            value = parse(self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], self._purpose))
        except (binascii.Error, InvalidTag, ValueError, Malformed):
            return None
        # the last letter has bits to spare: one value has one spelling all the same
        return value if type(value) is dict and _spelled(sealed) == token else None


def _spelled(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()
