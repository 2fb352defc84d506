"""JSON as Python values: what a strict parser returns, and its canonical bytes.

Never mutated: whoever wants a change builds a new value. Parsing lives in `thoughtgate.wire`.
"""

import hashlib
from _json import encode_basestring, make_encoder
from collections.abc import Mapping
from json import JSONEncoder
from typing import Any, TypeAlias

JsonValue: TypeAlias = Any
"""None, bool, int (exact, of any size), finite float, str without lone surrogates, list or dict."""

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object; the one dict that crosses layers, read-only by agreement."""

_written = make_encoder(
    None, JSONEncoder().default, encode_basestring, None, ":", ",", True, False, False
)
"""What a `JSONEncoder` that sorts keys and refuses NaN makes anew for each value."""


def canonical(value: JsonValue) -> bytes:
    """Return the canonical JSON of `value`: keys sorted by code point, no white space, UTF-8.

    Close to RFC 8785, but keys sort by code point and integers stay exact.
    """
    return "".join(_written(value, 0)).encode()


def digest(value: JsonValue) -> str:
    """Return `sha256:` and the hex digest of the canonical JSON of `value`."""
    return digest_of(canonical(value))


def digest_of(written: bytes) -> str:
    """Return the digest of a value whose canonical JSON is at hand."""
    return "sha256:" + hashlib.sha256(written).hexdigest()
