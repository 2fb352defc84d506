"""A server's own headers as metadata of gRPC, checked before any RPC is made with them.

Never lets through what C-core would refuse: it ends an RPC in an error that says nothing.
"""

import base64
import binascii
import re
from collections.abc import Mapping

from thoughtgate.core.errors import UpstreamUnreachable

Metadata = tuple[tuple[str, str | bytes], ...]
"""Keys in lower case with their values; those of keys that end in `-bin` are bytes."""

MAX_BYTES = 8_192
"""Bytes that all headers may have together; most servers take no more."""

_KEY = re.compile(r"[0-9a-z_.-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_RESERVED = frozenset({
    "connection", "content-length", "content-type", "host", "idempotency-key", "te", "traceparent",
    "tracestate", "transfer-encoding", "upgrade", "user-agent",
})  # fmt: skip


def metadata_of(headers: Mapping[str, str]) -> Metadata:
    """Return headers as metadata; the value of a `-bin` key is given as base64.

    Raises:
        UpstreamUnreachable: A header that gRPC cannot carry, or that is the gateway's own.
    """
    made = tuple(_pair(name, value) for name, value in headers.items())
    if sum(len(key) + len(value) + 32 for key, value in made) > MAX_BYTES:
        raise UpstreamUnreachable(message=f"the headers have more than {MAX_BYTES} bytes together")
    return made


def _pair(name: str, value: str) -> tuple[str, str | bytes]:
    key = name.lower()
    if not _KEY.fullmatch(key):
        raise UpstreamUnreachable(
            message=f"the header {name[:60]!r} cannot be sent by gRPC;"
            " a name has letters, digits, and the signs _ - . only"
        )
    if key.startswith("grpc-") or key in _RESERVED:
        raise UpstreamUnreachable(
            message=f"the header {key} is set by the gateway itself; leave it out"
        )
    if key.endswith("-bin"):
        return key, _bytes(key, value)
    if not _VALUE.fullmatch(value):
        raise UpstreamUnreachable(
            message=f"the value of the header {key} cannot be sent by gRPC; it must be printable"
            " ASCII without spaces around it; bytes go into a header whose name ends in -bin"
        )
    return key, value


def _bytes(key: str, value: str) -> bytes:
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (ValueError, binascii.Error):
        raise UpstreamUnreachable(message=f"the value of the header {key} must be base64") from None
