"""The streams that belong to no request, and those that a client comes back to.

Never more of them than allowed, and never silent for long.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from thoughtgate.surface.http_exchange import EventStream
from thoughtgate.surface.http_io import HttpRequest, Receive, Refusal
from thoughtgate.surface.mailbox import Reader
from thoughtgate.surface.tapes import Tape
from thoughtgate.wire.sse import KEEPALIVE, encode_event


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """What a stream sends: at its begin, at an end on purpose, and how each message is written."""

    first: bytes
    last: bytes = b""
    write: Callable[[bytes], bytes] = encode_event


class Streams:
    """The open streams: how many there may be, how long each may be silent."""

    def __init__(self, *, most: int, keepalive: float) -> None:
        self._most = most
        self._keepalive = keepalive
        self._open = 0

    async def follow(self, request: HttpRequest, attach: Callable[[], Reader], feed: Feed) -> None:
        """Send what comes into a mailbox until that closes, or the client leaves.

        Raises:
            Refusal: 406 when the client takes no stream, 503 when too many are open.
        """
        with self._counted(request):
            reader = attach()
            stream = EventStream(request.send)
            leaving = asyncio.create_task(_leave(request.receive, reader.leave))
            try:
                await stream.write(feed.first)
                while (messages := await reader.take(self._keepalive)) is not None:
                    await stream.write(b"".join(map(feed.write, messages)) or KEEPALIVE)
                gone = reader.gone
            finally:
                leaving.cancel()
                reader.leave()
            if not gone:
                if feed.last:
                    await stream.write(feed.last)
                await stream.end()

    async def replay(self, request: HttpRequest, tape: Tape, number: int) -> None:
        """Send what is on a tape after an event, and what is still to come.

        Raises:
            Refusal: 406 when the client takes no stream, 503 when too many are open.
        """
        with self._counted(request):
            follower = tape.follow()
            stream = EventStream(request.send)
            leaving = asyncio.create_task(_leave(request.receive, tape.follow))
            try:
                await stream.write(KEEPALIVE)
                while (events := await tape.after(number, follower, self._keepalive)) is not None:
                    for at, event in events:
                        await stream.write(event)
                        number = at
                    if not events:
                        await stream.write(KEEPALIVE)
            finally:
                leaving.cancel()
            await stream.end()

    @contextmanager
    def _counted(self, request: HttpRequest) -> Iterator[None]:
        if not request.accepts("text/event-stream"):
            raise Refusal(406, message="accept text/event-stream")
        if self._open >= self._most:
            raise Refusal(503, message=f"{self._most} streams are open; try later")
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


async def _leave(receive: Receive, leave: Callable[[], object]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    leave()
