"""One POST and its reply, and the streams of notifications.

A reply is plain JSON unless a notification comes before it: only then an event stream is begun.
Never queues: whoever notifies waits until the client's side has room.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from thoughtgate.core.errors import UpstreamLost
from thoughtgate.surface.changes import Bell, Wake
from thoughtgate.surface.clients import Running
from thoughtgate.surface.errors import Answer, Failed, answered, refusal
from thoughtgate.surface.http_io import JSON, HttpRequest, Receive, Refusal, Send, respond
from thoughtgate.wire import codes
from thoughtgate.wire.messages import MessageId
from thoughtgate.wire.sse import KEEPALIVE, encode_event

SLOW = 0.1
"""Seconds after which a call counts as slow: a watcher for each call would cost too much.

A client that leaves earlier is noticed then.
"""

_STOPPING = Failed(
    codes.INTERNAL_ERROR,
    "the gateway is stopping; ask again later, but what was asked may have been carried out",
    {"error": UpstreamLost.code},
)
"""What a client hears that did not give its request up: only a server that stops does it then."""

_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """A text/event-stream reply; events are whole and in order, whoever sends them."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._order = asyncio.Lock()
        self.begun = False

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Send bytes, beginning the reply if need be."""
        async with self._order:
            if not self.begun:
                self.begun = True
                await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
            await self._send({"type": "http.response.body", "body": data, "more_body": not last})


class Exchange:
    """One request by POST: runs its work, relays notifications, sends the reply."""

    def __init__(self, request: HttpRequest, *, keepalive: float) -> None:
        self._receive = request.receive
        self._send = request.send
        self._streams = request.accepts("text/event-stream")
        self._stream = EventStream(request.send)
        self._keepalive = keepalive
        self._companion: asyncio.Task[None] | None = None
        self.running = Running(asyncio.current_task())

    async def emit(self, frame: bytes) -> None:
        """Send a notification; a client that takes no stream gets none."""
        if self._streams:
            await self._stream.write(encode_event(frame))

    async def run(self, id_: MessageId, work: Awaitable[bytes]) -> Answer | None:
        """Return the answer that `work` leads to; a silent client's leaving changes nothing."""
        return await self._run(id_, work, self._keepalive, self._keep_alive)

    async def run_watched(self, id_: MessageId, work: Awaitable[bytes]) -> Answer | None:
        """Return the answer that `work` leads to, None when the client left, which cancels it."""
        return await self._run(id_, work, SLOW, self._watch)

    async def reply(self, answer: Answer | None, status: int = 200) -> None:
        """Send the answer; None ends the reply without one, since the request was given up."""
        if self._stream.begun or answer is None:
            last = b"" if answer is None else encode_event(answer.body)
            await self._stream.write(last, last=True)
        else:
            await respond(self._send, status, answer.body, (JSON,))

    async def _run(
        self,
        id_: MessageId,
        work: Awaitable[bytes],
        delay: float,
        company: Callable[[], Coroutine[Any, Any, None]],
    ) -> Answer | None:
        timer = asyncio.get_running_loop().call_later(delay, self._accompany, company)
        try:
            answer = await answered(id_, work)
        except asyncio.CancelledError:
            self.running.settle()
            return None if self.running.given_up else refusal(id_, _STOPPING)
        finally:
            timer.cancel()
            if self._companion is not None:
                self._companion.cancel()
                self._companion = None  # it knows us: a cycle
        return answer

    def _accompany(self, company: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._companion = asyncio.create_task(company())

    async def _keep_alive(self) -> None:
        while self._streams:
            await self._stream.write(KEEPALIVE)
            if await _left(self._receive, self._keepalive):
                return

    async def _watch(self) -> None:
        while not await _left(self._receive, self._keepalive):
            if self._streams:
                await self._stream.write(KEEPALIVE)
        self.running.give_up()


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """What a stream of changes sends: at its begin, at each change, and at an end on purpose."""

    first: bytes
    change: bytes
    last: bytes


class Streams:
    """The open streams of changes: how many there may be, how long each may be silent."""

    def __init__(self, *, most: int, keepalive: float) -> None:
        self._most = most
        self._keepalive = keepalive
        self._open = 0

    async def follow(self, request: HttpRequest, bell: Bell, feed: Feed) -> None:
        """Send a feed until the bell closes or the client leaves.

        Raises:
            Refusal: 406 when the client takes no stream, 503 when too many are open.
        """
        if not request.accepts("text/event-stream"):
            raise Refusal(406, message="accept text/event-stream")
        if self._open >= self._most:
            raise Refusal(503, message=f"{self._most} streams are open; try later")
        self._open += 1
        try:
            await self._follow(request, bell, feed)
        finally:
            self._open -= 1

    async def _follow(self, request: HttpRequest, bell: Bell, feed: Feed) -> None:
        stream = EventStream(request.send)
        await stream.write(feed.first)
        leaving = asyncio.create_task(_leave(request.receive, bell))
        try:
            while (wake := await bell.wait(self._keepalive)) not in {Wake.CLOSED, Wake.LEFT}:
                await stream.write(feed.change if wake is Wake.CHANGED else KEEPALIVE)
        finally:
            leaving.cancel()
        if wake is Wake.CLOSED:
            await stream.write(feed.last, last=True)


async def _leave(receive: Receive, bell: Bell) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    bell.leave()


async def _left(receive: Receive, seconds: float) -> bool:
    """Tell whether the client left within some seconds."""
    try:
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True
