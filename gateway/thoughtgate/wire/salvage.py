"""Whose message a broken one was: so that one call fails, and not a whole connection.

Never returns anything else of the message: it was refused and stays refused.
"""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from thoughtgate.wire import codes
from thoughtgate.wire.messages import BadMessage, MessageId, valid_id

_HEAD = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*'
    rb'(?:(-?\d{1,18})|"([^"\\\x80-\xff]{0,256})")\s*,\s*"(\w+)"'
)
_OURS = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"')
_BEGIN = re.compile(rb'\{\s*"(?:jsonrpc|id|result|error)"\s*:')

_TRIES = 4
"""Places of a line at which a message may begin that are looked at."""

_ANSWERED = frozenset({"result", "error"})
_ASKED = frozenset({"method"})


def salvage_id(data: bytes, error: BadMessage) -> MessageId | None:
    """Return the id of a reply that `decode` refused with `error`, None when there is none."""
    return _id(data, error, _ANSWERED)


def asked_id(data: bytes, error: BadMessage) -> MessageId | None:
    """Return the id of a request that `decode` refused, None when it cannot be told.

    The refusal goes back under it: on a pipe the client would wait for an answer for ever.
    """
    return _id(data, error, _ASKED)


def is_nameless(data: bytes, error: BadMessage) -> bool:
    """Tell whether `decode` refused a whole reply only since it names no request."""
    whole = error.rpc_code == codes.INVALID_REQUEST and error.id is None
    return whole and _OURS.search(data) is not None and b'"method"' not in data


def messages_within(line: bytes) -> Iterator[bytes]:
    """Give what may be a message in a line that begins with something else, a few times at most."""
    if _OURS.search(line) is not None:
        for found in islice(_BEGIN.finditer(line, 1), _TRIES):
            yield line[found.start() :]


class _Members(list[tuple[str, Any]]):
    """An object as it was written: a key may come twice."""


def _id(data: bytes, error: BadMessage, kind: frozenset[str]) -> MessageId | None:
    if error.id is not None:
        return error.id
    try:
        value = json.loads(
            data.decode("utf-8", "replace"), parse_int=_short, object_pairs_hook=_Members
        )
    except (ValueError, RecursionError):
        return _id_in_head(data, kind)
    if type(value) is not _Members or kind.isdisjoint(key for key, _ in value):
        return None
    ids = [_whole(member) for key, member in value if key == "id"]
    return ids[0] if ids and valid_id(ids[0]) and ids.count(ids[0]) == len(ids) else None


def _id_in_head(data: bytes, kind: frozenset[str]) -> MessageId | None:
    """Return the id of a message that can only be read to its third member."""
    head = _HEAD.match(data)
    if head is None or head[3].decode() not in kind:
        return None
    return int(head[1]) if head[1] is not None else head[2].decode()


def _whole(id_: Any) -> Any:  # whatever stands in the message
    """Return an id as the integer that it spells: some write `1.0` for `1`."""
    return int(id_) if type(id_) is float and id_.is_integer() and abs(id_) < 2**53 else id_


def _short(digits: str) -> int | None:
    return int(digits) if len(digits) < 20 else None  # Python refuses to read very long ones
