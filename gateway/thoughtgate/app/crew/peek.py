"""What the first bytes of a connection say about where it belongs.

Never takes them away: they are looked at and left for the worker, which alone believes them.
"""

import re
from typing import NamedTuple

from thoughtgate.surface.holders import holder

MOST = 16_384
"""Bytes of a head that are looked at."""

_SESSION = re.compile(rb"\r\nmcp-session-id:[ \t]*([!-~]+)[ \t]*\r\n", re.IGNORECASE)
_ENDPOINT = re.compile(rb"[A-Z]+ /mcp[/? ]")
_END = b"\r\n\r\n"


class Wish(NamedTuple):
    """The worker that a connection should go to, None for any; `sure` when more changes nothing."""

    worker: int | None
    sure: bool


ANY = Wish(None, sure=True)


def wish(head: bytes, count: int) -> Wish:
    """Return where a connection that begins with `head` should go.

    What is not the MCP endpoint is for the first worker: so clients alone take their turns.
    """
    line, end, _ = head.partition(b"\r\n")
    if not end:
        return Wish(None, sure=len(head) >= MOST)
    if not _ENDPOINT.match(line):
        return Wish(0, sure=True)
    headers, end, _ = head.partition(_END)
    found = _SESSION.search(headers + b"\r\n" if end else headers)
    if found is not None:
        return Wish(holder(found[1].decode("ascii"), count), sure=True)
    return Wish(None, sure=bool(end) or len(head) >= MOST)
