"""The mark on what clients keep for us, such as a session's id: which worker holds what it names.

Never trusted for anything but the way: what is behind the mark is sealed, and says it again.
"""

from thoughtgate.core.workers import Crew

_LONGEST = 4
"""Digits of a mark."""


def marked(token: str, crew: Crew) -> str:
    """Return a token with the mark of this worker; a gateway of one process sets none."""
    return token if crew.count == 1 else f"{crew.index}.{token}"


def unmarked(token: str) -> tuple[int | None, str]:
    """Return the worker that set the mark, by its number then, and the token as it was sealed.

    Without a mark there is no worker. A mark has one spelling, or one token would have several.
    """
    mark, dot, rest = token.partition(".")
    if dot and len(mark) <= _LONGEST and mark.isascii() and mark.isdecimal():
        worker = int(mark)
        if str(worker) == mark:
            return worker, rest
    return None, token


def holder(token: str, count: int) -> int:
    """Return which of `count` workers holds what a token names.

    There may have been more of them when it was marked. What has no mark is the first one's.
    """
    return (unmarked(token)[0] or 0) % count
