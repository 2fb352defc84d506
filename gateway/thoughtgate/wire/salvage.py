"""Whose reply a broken message was: so that one call fails, and not a whole connection.

Never returns anything else of the message: it was refused and stays refused.
"""

import json
import re

from thoughtgate.wire.messages import BadMessage, MessageId, valid_id

_HEAD = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18})\s*,\s*"(?:result|error)"'
)


def salvage_id(data: bytes, error: BadMessage) -> MessageId | None:
    """Return the id of a reply that `decode` refused with `error`, None when there is none."""
    if error.id is not None:
        return error.id
    try:
        value = json.loads(data.decode("utf-8", "replace"), parse_int=_short)
    except (ValueError, RecursionError):
        head = _HEAD.match(data)
        return int(head[1]) if head else None
    if type(value) is not dict or not ("result" in value or "error" in value):
        return None
    id_ = value.get("id")
    return id_ if valid_id(id_) else None


def _short(digits: str) -> int:
    return int(digits) if len(digits) < 20 else 0  # Python refuses to read very long ones
