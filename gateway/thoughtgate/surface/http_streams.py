"""The streams that belong to no request, and those that a client comes back to.

Never more of them than allowed, and never silent for long. An idle one holds no task but that of
its request, and no timer: there may be thousands.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from thoughtgate.surface.http_exchange import EventStream
from thoughtgate.surface.http_io import HttpRequest, Receive, Refusal
from thoughtgate.surface.mailbox import Reader
from thoughtgate.surface.tapes import Tape
from thoughtgate.wire.sse import KEEPALIVE, encode_event

_TOGETHER = 0.05
"""Seconds within which silent streams are spoken to at once."""


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
        self.silence = Silence(keepalive)
        self._keepalive = keepalive
        self._open = 0

    async def follow(self, request: HttpRequest, attach: Callable[[], Reader], feed: Feed) -> None:
        """Send what comes into a mailbox until that closes, or the client leaves.

        Raises:
            Refusal: 406 when the client takes no stream, 503 when too many are open.
        """
        with self._counted(request):
            request.forget_head()
            sending = _Sending(EventStream(request.send), attach(), feed, self.silence)
            try:
                await sending.stream.write(feed.first)
                sending.begin()
                async with asyncio.timeout(None) as sending.until:
                    await _left(request.receive)
            except TimeoutError:
                await sending.say_goodbye()
            finally:
                sending.end()

    async def replay(self, request: HttpRequest, tape: Tape, number: int) -> None:
        """Send what is on a tape after an event, and what is still to come.

        Raises:
            Refusal: 406 when the client takes no stream, 503 when too many are open.
        """
        with self._counted(request):
            follower = tape.follow()
            stream = EventStream(request.send)
            async with _leaving(request.receive, tape.follow):
                await stream.write(KEEPALIVE)
                while (events := await tape.after(number, follower, self._keepalive)) is not None:
                    for at, event in events:
                        await stream.write(event)
                        number = at
                    if not events:
                        await stream.write(KEEPALIVE)
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


class _Sending:
    """One mailbox's stream. A task sends while there is something, and is gone at other times."""

    __slots__ = ("_feed", "_silence", "_task", "reader", "stream", "until")

    def __init__(self, stream: EventStream, reader: Reader, feed: Feed, silence: "Silence") -> None:
        self.stream = stream
        self.reader = reader
        self.until: asyncio.Timeout | None = None
        self._feed = feed
        self._silence = silence
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Send what comes from now on."""
        self.reader.wake.heard = self.stir
        self._silence.broken(self)
        if self.reader.wake.is_set():
            self.stir()

    def end(self) -> None:
        """Send nothing more."""
        self.reader.wake.heard = self.until = None
        self.reader.end()
        self._silence.over(self)
        if self._task is not None:
            self._task.cancel()

    async def say_goodbye(self) -> None:
        """End the stream as one does on purpose; what went wrong in sending is raised here."""
        if self._task is not None:
            await self._task
        if self._feed.last:
            await self.stream.write(self._feed.last)
        await self.stream.end()

    def stir(self) -> None:
        """Send what there is, or that the stream is alive, unless something is being sent."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        resting = False
        try:
            while not resting and (messages := self.reader.taken()) is not None:
                await self.stream.write(b"".join(map(self._feed.write, messages)) or KEEPALIVE)
                self._silence.broken(self)
                resting = not self.reader.wake.is_set()
        finally:
            if resting:
                self._task = None
            elif self.until is not None:
                self.until.reschedule(0)  # the request's task ends the stream


class Silence:
    """When each stream was last heard of; one timer for all of them."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._since: dict[_Sending, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many streams are listened to."""
        return len(self._since)

    def broken(self, sending: _Sending) -> None:
        """Note that something was sent."""
        self._since.pop(sending, None)
        loop = asyncio.get_running_loop()
        self._since[sending] = loop.time()  # the last one is the one heard last
        if self._timer is None:
            self._timer = loop.call_later(self._longest, self._look)

    def over(self, sending: _Sending) -> None:
        """Forget a stream."""
        self._since.pop(sending, None)
        if not self._since and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """Speak on every stream that was silent for long, and look again for the next one."""
        loop = asyncio.get_running_loop()
        self._timer, now = None, loop.time()
        due = now + _TOGETHER - self._longest
        for sending, since in list(self._since.items()):
            if since > due:
                break
            del self._since[sending]
            self._since[sending] = now
            sending.stir()
        if self._since:
            oldest = next(iter(self._since.values()))
            self._timer = loop.call_later(max(oldest + self._longest - now, 0), self._look)


@asynccontextmanager
async def _leaving(receive: Receive, leave: Callable[[], object]) -> AsyncIterator[None]:
    """Call `leave` when the client leaves before the end of the block."""

    async def watch() -> None:
        await _left(receive)
        leave()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
