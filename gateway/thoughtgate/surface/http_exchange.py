"""One POST and its reply.

A reply is plain JSON unless a message comes before it: only then an event stream is begun.
Never queues: whoever notifies waits until the client's side has room.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

from thoughtgate.surface.clients import Running
from thoughtgate.surface.errors import STOPPING, Answer, answered, refusal
from thoughtgate.surface.http_io import JSON, HttpRequest, Receive, Send, respond
from thoughtgate.surface.tapes import Shelf, Tape
from thoughtgate.wire.messages import MessageId
from thoughtgate.wire.sse import KEEPALIVE, encode_event

SLOW: Final = 0.1
"""Seconds after which a call counts as slow: a watcher for each call would cost too much.

A client that leaves earlier is noticed then.
"""

_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class Taping:
    """Where the stream of one reply is kept, once it begins; `primes` as newer clients want it."""

    __slots__ = ("_session_id", "_shelf", "_tape", "primes")

    def __init__(self, shelf: Shelf, session_id: str, *, primes: bool) -> None:
        self.primes = primes
        self._shelf = shelf
        self._session_id = session_id
        self._tape: Tape | None = None

    def begin(self) -> bytes:
        """Begin the tape; returns what the stream itself begins with."""
        self._tape = self._shelf.begin(self._session_id)
        return self._tape.prime() if self._tape is not None and self.primes else b""

    def event(self, data: bytes) -> bytes:
        """Return the event that carries a message."""
        return encode_event(data) if self._tape is None else self._tape.record(data)

    @property
    def elsewhere(self) -> bool:
        """Tell whether the client has come back for the rest on another connection."""
        return self._tape is not None and self._tape.followers > 0

    def end(self) -> None:
        """End the tape."""
        if self._tape is not None:
            self._shelf.end(self._session_id, self._tape)


class EventStream:
    """A text/event-stream reply; events are whole and in order, whoever sends them."""

    __slots__ = ("_ended", "_order", "_send", "_taping", "begun")

    def __init__(self, send: Send, taping: Taping | None = None) -> None:
        self._send = send
        self._taping = taping
        self._order = asyncio.Lock()
        self._ended = False
        self.begun = False

    async def event(self, message: bytes) -> None:
        """Send a message as an event; after the end it is dropped."""
        async with self._order:
            if self._ended:
                return
            await self._begin()
            event = encode_event(message) if self._taping is None else self._taping.event(message)
            if self._taping is None or not self._taping.elsewhere:
                await self._put(event)

    async def write(self, data: bytes) -> None:
        """Send bytes, beginning the reply if need be; after the end they are dropped."""
        async with self._order:
            if not self._ended:
                await self._begin()
                await self._put(data)

    async def end(self) -> None:
        """End the reply."""
        async with self._order:
            await self._begin()
            self._ended = True
            if self._taping is not None:
                self._taping.end()
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self) -> None:
        if self.begun:
            return
        self.begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        first = b"" if self._taping is None else self._taping.begin()
        if first:
            await self._put(first)

    async def _put(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})


class Exchange:
    """One request by POST: runs its work, relays messages, sends the reply."""

    def __init__(
        self, request: HttpRequest, *, keepalive: float, taping: Taping | None = None
    ) -> None:
        self._receive = request.receive
        self._send = request.send
        self._keepalive = keepalive
        self._patience = SLOW if taping is not None and taping.primes else keepalive
        self._taping = taping
        self._stream: EventStream | None = None
        self._companion: asyncio.Task[None] | None = None
        self.streams = request.accepts("text/event-stream")
        self.running = Running(asyncio.current_task())

    async def emit(self, frame: bytes) -> None:
        """Send a message; a client that takes no stream gets none."""
        if self.streams:
            await self._events().event(frame)

    def run(self, id_: MessageId, work: Awaitable[bytes]) -> Awaitable[Answer | None]:
        """Return the answer that `work` leads to; a silent client's leaving changes nothing."""
        return self._run(id_, work, self._begin(self._patience, self._keep_alive))

    def run_watched(self, id_: MessageId, work: Awaitable[bytes]) -> Awaitable[Answer | None]:
        """Return the answer that `work` leads to, None when the client left, which cancels it."""
        return self._run(id_, work, self._begin(SLOW, self._watch))

    async def reply(self, answer: Answer | None, status: int = 200) -> None:
        """Send the answer; None ends the reply without one, since the request was given up."""
        if not self._begun and answer is not None:
            await respond(self._send, status, answer.body, (JSON,))
            return
        if answer is not None:
            await self._events().event(answer.body)
        await self._events().end()

    async def reply_all(self, answers: list[bytes]) -> None:
        """Send the answers to a batch: events of the stream if it was begun, else one array."""
        if not self._begun and not answers:
            await respond(self._send, 202, b"", ())
            return
        if not self._begun:
            await respond(self._send, 200, b"[%b]" % b",".join(answers), (JSON,))
            return
        for answer in answers:
            await self._events().event(answer)
        await self._events().end()

    @contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Keep a reply alive that takes long, in the background."""
        timer = self._begin(self._patience, self._keep_alive)
        try:
            yield
        finally:
            self._end(timer)

    @property
    def _begun(self) -> bool:
        return self._stream is not None and self._stream.begun

    def _events(self) -> EventStream:
        """Return the stream of the reply; mostly there is none."""
        if self._stream is None:
            self._stream = EventStream(self._send, self._taping)
        return self._stream

    async def _run(
        self, id_: MessageId, work: Awaitable[bytes], timer: asyncio.TimerHandle
    ) -> Answer | None:
        try:
            return await answered(id_, work)
        except asyncio.CancelledError:
            self.running.settle()
            return None if self.running.given_up else refusal(id_, STOPPING)
        finally:
            self._end(timer)

    def _begin(
        self, delay: float, company: Callable[[], Coroutine[Any, Any, None]]
    ) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, self._accompany, company)

    def _end(self, timer: asyncio.TimerHandle) -> None:
        timer.cancel()
        if self._companion is not None:
            self._companion.cancel()
            self._companion = None  # it knows us: a cycle

    def _accompany(self, company: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._companion = asyncio.create_task(company())

    async def _keep_alive(self) -> None:
        while self.streams:
            await self._events().write(KEEPALIVE)
            if await left(self._receive, self._keepalive):
                return

    async def _watch(self) -> None:
        while not await left(self._receive, self._keepalive):
            if self.streams:
                await self._events().write(KEEPALIVE)
        self.running.give_up()


async def left(receive: Receive, seconds: float) -> bool:
    """Tell whether the client left within some seconds."""
    try:
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True
