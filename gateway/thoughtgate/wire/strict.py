"""Strict JSON: one reading of every document, or none.

Never repairs: a document that two parsers could read differently is refused. Refused are
duplicate keys, bad UTF-8, lone surrogates, NaN, numbers beyond a double, integers of more than
4,096 digits and nesting deeper than the limit. Whole passes over the text run at C speed; Python
code runs once per array or object, and that only where there are many.
"""

import json
import re
from itertools import chain

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
_SHORT = 4096
_FEW = 1000
_STRIDE = MAX_DIGITS // 2
_LOOK = 32
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
    """Hold the text against its value: how deep it nests, and that each key comes once.

    A member whose key comes again is lost, and with it a colon.
    """
    if (
        len(data) < _SHORT
        and data.count(b"{") + data.count(b"[") <= max_depth
        and b"\\u003" not in data  # a colon that an escape spells would make up for one lost
        and _encode(value).count(b":") == data.count(b":")
    ):
        return
    members = _members(value, max_depth)
    if not _colons_are(members, data) and members != _outside_strings(data).count(b":"):
        key = _duplicate_key(data)
        raise Malformed(message=f"not valid JSON: duplicate key {key}; send each key once")


def _colons_are(number: int, data: bytes) -> bool:
    """Tell whether `data` has that many colons; where it should be few, they are searched for.

    Searching passes over long texts many times faster than counting does.
    """
    if number > _FEW:
        return data.count(b":") == number
    at = -1
    for _ in range(number):
        at = data.find(b":", at + 1)
        if at < 0:
            return False
    return data.find(b":", at + 1) < 0


def _members(value: JsonValue, max_depth: int) -> int:
    """Walk `value` level by level and return how many members its objects have."""
    members, depth, level = 0, 0, [value]
    while level:
        depth += 1
        if depth > max_depth:
            raise _too_deep(max_depth)
        objects = [node for node in level if type(node) is dict]
        arrays = [node for node in level if type(node) is list]
        members += sum(map(len, objects))
        children = chain(chain.from_iterable(map(dict.values, objects)), *arrays)
        level = [child for child in children if type(child) in _CONTAINERS]
    return members


def _outside_strings(data: bytes) -> bytes:
    """Return well-formed JSON without its strings; each backslash there starts an escape."""
    if b'\\"' in data:
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
    """Look for a long run of digits; only then ask whether it is an integer.

    A run that is too long covers a whole stride, so it is enough to look where those begin.
    """
    strides = range(0, len(data), _STRIDE)
    if any(data[at : at + _LOOK].isdigit() for at in strides) and _LONG_INTEGER.search(
        _outside_strings(data)
    ):
        raise Malformed(message=f"not valid JSON: an integer of more than {MAX_DIGITS} digits")


def _too_deep(max_depth: int) -> Malformed:
    return Malformed(message=f"not valid JSON: nested deeper than {max_depth} levels")


def _reason(error: msgspec.DecodeError) -> str:
    """Return the decoder's reason; it names bytes and kinds of error, never a value."""
    reason = str(error).removeprefix("JSON is malformed: ")
    return reason[:1].lower() + reason[1:]
