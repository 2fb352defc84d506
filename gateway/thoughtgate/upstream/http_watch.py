"""Following a server's own notifications over HTTP: one stream at a time, opened again when lost.

Never tries again where the server has said that it has no such stream.
"""

import asyncio
from collections.abc import Awaitable, Callable

from thoughtgate.core.errors import UpstreamError

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
LONGEST_STREAM = 600.0
"""Seconds after which a stream is opened anew: it may be half open, and nobody would know."""


class Pace:
    """How long to wait before a stream is opened again; a stream that spoke resets it."""

    def __init__(self) -> None:
        self._pause = FIRST_PAUSE

    def heard(self) -> None:
        """Learn that the stream is alive."""
        self._pause = FIRST_PAUSE

    async def wait(self) -> None:
        """Wait, longer every time."""
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
        await asyncio.sleep(pause)


async def follow(open_one: Callable[[Pace], Awaitable[bool]], changed: Callable[[], None]) -> str:
    """Hold streams one after the other until cancelled.

    `open_one` returns when its stream has ended, False when the server offers none. After a gap
    the list may have changed unheard, so `changed` runs once a new stream may be tried.
    """
    pace = Pace()
    while True:
        try:
            async with asyncio.timeout(LONGEST_STREAM):
                offered = await open_one(pace)
        except (UpstreamError, TimeoutError):
            offered = True  # not reachable now: whether it has streams is not known
        if not offered:
            await asyncio.get_running_loop().create_future()  # until cancelled
        await pace.wait()
        changed()
