"""Opaque cursors: where a sorted list goes on, bound to the question that began it.

Never trusted: a cursor that we did not make, or of another question, is refused.
"""

import base64
import binascii
import hashlib
import json
from typing import Any

from thoughtgate_servers.table import ToolFailed


def encode(after: str, question: Any) -> str:
    """Return the cursor of the items after `after` in the answer to `question`."""
    packed = json.dumps([after, _digest(question)], ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode(cursor: str | None, question: Any) -> str:
    """Return the item that the page starts after, empty for the first page.

    Raises:
        ToolFailed: The cursor is not one of `question`.
    """
    if cursor is None:
        return ""
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        after, digest = json.loads(packed)
    except (ValueError, TypeError, binascii.Error, RecursionError):
        after, digest = None, None
    if not isinstance(after, str) or digest != _digest(question):
        raise ToolFailed(message="this cursor is of another question: start again without one")
    return after


def _digest(question: Any) -> str:
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:16]
