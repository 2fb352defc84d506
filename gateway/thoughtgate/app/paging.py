"""Lists in pages: a cursor is the key of the last entry given, so a list may change in between.

Never holds state for a client.
"""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from thoughtgate.core.errors import Malformed

T = TypeVar("T")
Key = tuple[str | int, ...]


def page(
    items: Sequence[T], key: Callable[[T], Key], *, cursor: str, limit: int
) -> tuple[tuple[T, ...], str | None]:
    """Return what follows a cursor in a list that is sorted by `key`, and the next cursor.

    Raises:
        Malformed: The cursor is none of ours.
    """
    start = 0
    if cursor:
        last = decoded(cursor, like=key(items[0]) if items else None)
        start = sum(key(item) <= last for item in items)
    return _cut(items, key, start, limit)


def page_in_order(
    items: Sequence[T], key: Callable[[T], Key], *, cursor: str, limit: int
) -> tuple[tuple[T, ...], str | None]:
    """Return the same of a list that has an order of its own.

    Raises:
        Malformed: The cursor is none of ours, or the entry that it names is gone.
    """
    start = 0
    if cursor:
        last = decoded(cursor, like=key(items[0]) if items else None)
        keys = [key(item) for item in items]
        if last not in keys:
            raise Malformed(message="the list has changed since; begin at its first page")
        start = keys.index(last) + 1
    return _cut(items, key, start, limit)


def encoded(key: Key) -> str:
    """Return a key as a cursor."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def decoded(cursor: str, *, like: Key | None) -> Key:
    """Return the key in a cursor; `like` is one of the keys that it may stand among.

    Raises:
        Malformed: The cursor is none of ours.
    """
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        value = json.loads(text)
    except (binascii.Error, ValueError):
        value = None
    fits = isinstance(value, list) and all(type(part) in {str, int} for part in value)
    if not fits or (like is not None and list(map(type, value)) != list(map(type, like))):
        raise Malformed(message="the cursor is none of this list; begin at its first page")
    return tuple(value)


def _cut(
    items: Sequence[T], key: Callable[[T], Key], start: int, limit: int
) -> tuple[tuple[T, ...], str | None]:
    end = start + limit
    more = end < len(items)
    return tuple(items[start:end]), encoded(key(items[end - 1])) if more else None
