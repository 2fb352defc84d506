"""What gRPC can carry of headers: the one rule for whoever takes them and whoever sends them.

Never repeats a value: it may be a secret.
"""

import base64
import binascii
import re
from collections.abc import Mapping

MAX_BYTES = 8_192
"""Bytes that all headers may have together; most servers take no more."""

TOO_LARGE = f"all headers together have more than {MAX_BYTES} bytes"

_OWN = 32
"""Bytes that HTTP/2 reckons for each header beside its name and value."""

_KEY = re.compile(r"[0-9a-z_.-]+")
_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")
_RESERVED = frozenset({
    "connection", "content-length", "content-type", "host", "idempotency-key", "te", "traceparent",
    "tracestate", "trailer", "transfer-encoding", "upgrade", "user-agent",
})  # fmt: skip


def header_fault(key: str, value: str) -> str:
    """Return why gRPC cannot carry a header whose name is in small letters; empty when it can."""
    if _KEY.fullmatch(key) is None:
        return "is no name of metadata; use letters, digits, -, _ and ."
    if key in _RESERVED or key.startswith("grpc-"):
        return "is set by the gateway itself; leave it out"
    if _VALUE.fullmatch(value) is None:
        return "has a value that metadata cannot carry: printable ASCII, no spaces around it"
    if key.endswith("-bin") and bytes_of(value) is None:
        return "must be base64, as its name ends in -bin"
    return ""


def bytes_of(value: str) -> bytes | None:
    """Return the bytes that base64 spells, with or without its padding; None when it is none."""
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (ValueError, binascii.Error):
        return None


def size_of(headers: Mapping[str, str]) -> int:
    """Return how many bytes headers have together, as HTTP/2 reckons them."""
    return sum(len(name) + len(value) + _OWN for name, value in headers.items())
