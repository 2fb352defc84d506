"""Following a server's own notifications over HTTP: one stream at a time, opened again when lost.

Never tries again where the server has said that it has no such stream.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from thoughtgate.core.errors import UpstreamError, UpstreamLost
from thoughtgate.wire.sse import Event

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
LONGEST_STREAM = 600.0
"""Seconds after which a stream is opened anew: it may be half open, and nobody would know."""

OTHER_ERA = "speaks another era now"
"""Why a link is over whose server was replaced by one that does not know our requests."""

SHORTEST_SILENCE = 30.0
"""Seconds of silence that never count against a stream."""

_PAUSES: Final = 4
"""How many of its own pauses a stream that sends signs of life may leave out."""


class Pulse:
    """The signs of life of one stream; once they come regularly, silence means that it is dead.

    Something between us and the server may keep the connection open although the server is gone.
    A sign is a chunk without an event: a comment, as servers send to keep a stream open.
    """

    def __init__(self, bound: asyncio.Timeout) -> None:
        self._bound = bound
        self._loop = asyncio.get_running_loop()
        self._last_sign: float | None = None
        self._pause: float | None = None

    def beat(self, events: Sequence[Event]) -> None:
        """Learn that a chunk has come, and which events it completed."""
        now = self._loop.time()
        if not events:
            if self._last_sign is not None:
                self._pause = max(self._pause or 0.0, now - self._last_sign)
            self._last_sign = now
        if self._pause is not None:
            self._bound.reschedule(now + max(self._pause * _PAUSES, SHORTEST_SILENCE))


@asynccontextmanager
async def heard() -> AsyncIterator[Pulse]:
    """Hold a stream while it lives; its reader tells each chunk.

    Raises:
        UpstreamLost: Its signs of life have stopped coming.
    """
    bound = asyncio.timeout(None)
    try:
        async with bound:
            yield Pulse(bound)
    except TimeoutError:
        if not bound.expired():
            raise
        raise UpstreamLost(message="a stream fell silent") from None


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


async def until_over(over: "asyncio.Future[str]", following: Awaitable[str]) -> str:
    """Follow a server until its link is over; return why it is."""
    now = asyncio.get_running_loop().time
    bound = asyncio.timeout(None)

    def end(_: "asyncio.Future[str]") -> None:
        with suppress(RuntimeError):  # whoever follows has just been cancelled
            bound.reschedule(now())

    try:
        async with bound:
            over.add_done_callback(end)
            try:
                return await following
            finally:
                over.remove_done_callback(end)
    except TimeoutError:
        if not bound.expired():
            raise
        return over.result()


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
