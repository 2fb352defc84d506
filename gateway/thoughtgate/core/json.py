"""JSON as Python values: what a strict parser returns, and its canonical bytes.

Never mutated: whoever wants a change builds a new value. Parsing lives in `thoughtgate.wire`.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from json import encoder
from typing import Any, TypeAlias

JsonValue: TypeAlias = Any
"""None, bool, int (exact, of any size), finite float, str without lone surrogates, list or dict."""

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object; the one dict that crosses layers, read-only by agreement."""


def _writer(make: Any) -> Callable[[JsonValue], Iterable[str]]:
    """Return what a `JSONEncoder` makes anew for each value; `make` is None where C has none."""
    slow = encoder.JSONEncoder(
        ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    if make is None:
        return slow.iterencode
    quick = make(None, slow.default, encoder.encode_basestring, None, ":", ",", True, False, False)
    return lambda value: quick(value, 0)


_written = _writer(getattr(encoder, "c_make_encoder", None))


def canonical(value: JsonValue) -> bytes:
    """Return the canonical JSON of `value`: keys sorted by code point, no white space, UTF-8.

    Close to RFC 8785, but keys sort by code point and integers stay exact.
    """
    return "".join(_written(value)).encode()


def digest(value: JsonValue) -> str:
    """Return `sha256:` and the hex digest of the canonical JSON of `value`."""
    return digest_of(canonical(value))


def digest_of(written: bytes) -> str:
    """Return the digest of a value whose canonical JSON is at hand."""
    return "sha256:" + hashlib.sha256(written).hexdigest()
