"""Strict JSON: one reading of every document, or none.

Never repairs: a document that two parsers could read differently is refused. Refused are
duplicate keys, bad UTF-8, lone surrogates, NaN, numbers beyond a double, integers of more than
4,096 digits and nesting deeper than the limit. Whole passes over the text run at C speed; Python
code runs once per array or object.
"""

import json
import re

import msgspec

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonValue

MAX_DEPTH = 64
"""Arrays and objects that may stand inside one another."""

MAX_DIGITS = 4096
"""Digits of the longest integer."""

MAX_REQUEST = 4 * 1024 * 1024
"""Bytes of the largest request."""

MAX_RESULT = 32 * 1024 * 1024
"""Bytes of the largest result."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_LONG_INTEGER = re.compile(rb"(?<![0-9.])[0-9]{%d}" % (MAX_DIGITS + 1))
_DIGIT_RUN = b"0" * (MAX_DIGITS + 1)
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_CONTAINERS = frozenset({dict, list})


def parse(data: bytes, *, max_depth: int = MAX_DEPTH) -> JsonValue:
    """Return the value that `data` spells; integers are exact.

    Raises:
        Malformed: What is wrong, and where as far as it is known.
    """
    if len(data) > MAX_DIGITS:
        _refuse_long_integers(data)
    try:
        value = _decode(data)
    except RecursionError:
        raise _too_deep(max_depth) from None
    except msgspec.DecodeError as error:
        raise Malformed(message=f"not valid JSON: {_reason(error)}") from None
    if type(value) in _CONTAINERS:
        _check_structure(data, value, max_depth)
    return value


def dumps(value: JsonValue) -> bytes:
    """Return compact JSON of a value that `parse` could have returned; key order is kept."""
    return _encode(value)


def _check_structure(data: bytes, value: JsonValue, max_depth: int) -> None:
    """Walk `value` level by level; a duplicate key in the text is one member fewer in it."""
    members, depth, level = 0, 0, [value]
    while level:
        depth += 1
        if depth > max_depth:
            raise _too_deep(max_depth)
        below: list[JsonValue] = []
        for node in level:
            children = node
            if type(node) is dict:
                members += len(node)
                children = node.values()
            below.extend([child for child in children if type(child) in _CONTAINERS])
        level = below
    if members and members != _outside_strings(data).count(b":"):
        key = _duplicate_key(data)
        raise Malformed(message=f"not valid JSON: duplicate key {key}; send each key once")


def _outside_strings(data: bytes) -> bytes:
    """Return well-formed JSON without its strings; each backslash there starts an escape."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(data.split(b'"')[::2])


def _duplicate_key(data: bytes) -> str:
    """Return the first duplicate key as JSON, shortened; the slow way, for the message only."""
    found: list[str] = []

    def note(pairs: list[tuple[str, JsonValue]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                found.append(key)
            seen.add(key)

    json.loads(data, object_pairs_hook=note)
    return json.dumps(found[0][:40])


def _refuse_long_integers(data: bytes) -> None:
    """Look for a long run of digits at C speed; only then ask whether it is an integer."""
    if _DIGIT_RUN in data.translate(_DIGITS_TO_ZERO) and _LONG_INTEGER.search(
        _outside_strings(data)
    ):
        raise Malformed(message=f"not valid JSON: an integer of more than {MAX_DIGITS} digits")


def _too_deep(max_depth: int) -> Malformed:
    return Malformed(message=f"not valid JSON: nested deeper than {max_depth} levels")


def _reason(error: msgspec.DecodeError) -> str:
    """Return the decoder's reason; it names bytes and kinds of error, never a value."""
    reason = str(error).removeprefix("JSON is malformed: ")
    return reason[:1].lower() + reason[1:]
