"""The mark on what clients keep for us, such as a session's id: which worker holds what it names.

Never trusted for anything but the way: what is behind the mark is sealed, and says it again.
"""

from thoughtgate.core.workers import Crew

_LONGEST = 4
"""Digits of a mark."""


def marked(token: str, crew: Crew) -> str:
    """Return a token with the mark of this worker; a gateway of one process sets none."""
    return token if crew.count == 1 else f"{crew.index}.{token}"


def unmarked(token: str) -> tuple[int, str]:
    """Return the worker that set the mark, by its number then, and the token as it was sealed."""
    mark, dot, rest = token.partition(".")
    if dot and len(mark) <= _LONGEST and mark.isascii() and mark.isdecimal():
        return int(mark), rest
    return 0, token


def holder(token: str, count: int) -> int:
    """Return which of `count` workers holds what a token names.

    There may have been more of them when it was marked.
    """
    return unmarked(token)[0] % count
