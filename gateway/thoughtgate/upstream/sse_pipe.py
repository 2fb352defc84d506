"""The pipe of the older HTTP+SSE transport (2024-11-05): one stream down, and POSTs up.

Never posts anywhere but to the origin that the stream came from: our headers go along.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from urllib.parse import urljoin

from thoughtgate.core.errors import (
    Malformed,
    UpstreamError,
    UpstreamGarbled,
    UpstreamReplied,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import HttpTransport
from thoughtgate.upstream.http_exchange import (
    EVENTS_TYPE,
    JSON_TYPE,
    check_status,
    drain,
    media_type,
)
from thoughtgate.upstream.http_rules import server_headers, target
from thoughtgate.upstream.http_watch import heard
from thoughtgate.upstream.ports import HttpClient, HttpReply, HttpRequest
from thoughtgate.wire import codes
from thoughtgate.wire.messages import encode_failure
from thoughtgate.wire.sse import Event, EventParser

WAITING = 64
"""Messages that may be on their way before callers are held back."""

_TURN = 1.0
"""Seconds that a POST may take before the next message is sent beside it, out of order perhaps."""

_GONE = 404  # the server does not know this stream any more


class SsePipe:
    """One stream of a server, and the address that it gave us to post to."""

    def __init__(
        self,
        transport: HttpTransport,
        client: HttpClient,
        on_message: Callable[[bytes], None],
        *,
        cap: int,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = loop.create_future()
        self._loop = loop
        self._url = transport.url
        self._headers = server_headers(transport.headers)
        self._client = client
        self._on_message = on_message
        self._cap = cap
        self._address: asyncio.Future[str] = loop.create_future()
        self._outbox: deque[tuple[bytes, int | None]] = deque()
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._posts: set[asyncio.Task[None]] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Open the stream; returns when the server has said where to post.

        Raises:
            UpstreamError: There is no such stream, or it names another origin.
        """
        headers = {**self._headers, "accept": EVENTS_TYPE}
        reply = await self._client.send(HttpRequest(method="GET", url=self._url, headers=headers))
        await check_status(reply)
        if media_type(reply) != EVENTS_TYPE:
            reply.body.close()
            raise UpstreamGarbled(message="no stream of events came")
        self._tasks.append(self._loop.create_task(self._read(reply)))
        either: list[asyncio.Future[str]] = [self._address, self.ended]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._address.done():
            raise UpstreamGarbled(message=f"it {self.ended.result()}")
        await asyncio.shield(self._address)  # raises when the address is no good
        self._tasks.append(self._loop.create_task(self._send()))

    async def room(self) -> None:
        """Return when the server takes what it is sent."""
        await self._room.wait()

    def send(self, message: bytes, id_: int | None = None) -> bool:
        """Send a message, which is the request `id_`; False when it was not sent."""
        if self.ended.done() or not self._address.done():
            return False
        if id_ is None and len(self._outbox) >= WAITING:
            return False
        self._outbox.append((message, id_))
        self._filled.set()
        self._weigh()
        return True

    async def stop(self) -> None:
        """End the stream; return when nothing of it runs any more."""
        self._finish("was stopped")
        running = [*self._tasks, *self._posts]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def _read(self, reply: HttpReply) -> None:
        parser, reason = EventParser(cap=self._cap), "closed its stream"
        try:
            async with heard() as pulse:
                while chunk := await reply.body.chunk():
                    events = parser.feed(chunk)
                    pulse.beat(events)
                    for event in events:
                        self._take(event)
        except (Malformed, UpstreamError) as error:
            reason = f"broke off: {error.message}"
        finally:
            reply.body.close()
            self._finish(reason)

    def _take(self, event: Event) -> None:
        if event.event == "endpoint":
            self._learn(event.data.decode("utf-8", "replace").strip())
        elif event.event == "message" and event.data:
            self._on_message(event.data.strip())

    def _learn(self, address: str) -> None:
        """Take the address to post to, the first time that it is told."""
        if self._address.done():
            return
        try:
            whole = urljoin(self._url, address)
            foreign = target(whole).origin != target(self._url).origin
        except (UpstreamUnreachable, ValueError):
            whole, foreign = "", True
        if foreign:
            self._address.set_exception(
                UpstreamGarbled(message="it wants to be posted to at another origin than its own")
            )
        else:
            self._address.set_result(whole)

    async def _send(self) -> None:
        """Post one message after the other, in order as long as the server takes them quickly."""
        while True:
            await self._filled.wait()
            while self._outbox:
                message, id_ = self._outbox.popleft()
                post = self._loop.create_task(self._post(message, id_))
                self._posts.add(post)
                post.add_done_callback(self._posted)
                await asyncio.wait([post], timeout=_TURN)
            self._filled.clear()

    async def _post(self, message: bytes, id_: int | None) -> None:
        headers = {**self._headers, "content-type": JSON_TYPE}
        try:
            request = HttpRequest(
                method="POST", url=self._address.result(), headers=headers, body=message
            )
            reply = await self._client.send(request)
            await check_status(reply)
            await drain(reply)
        except UpstreamReplied as error:
            self._refused(id_, error.rpc_code, error.rpc_message)
        except UpstreamGarbled as error:
            status = error.data.get("status", 0)
            if 400 <= status < 500 and status != _GONE:
                self._refused(id_, codes.INTERNAL_ERROR, error.message)
            else:
                self._finish(f"did not take a message: {error.message}")
        except UpstreamError as error:
            self._finish(f"did not take a message: {error.message}")

    def _refused(self, id_: int | None, code: int, reason: str) -> None:
        """Fail the one request that was refused; the stream and all others go on."""
        if id_ is not None:
            self._on_message(encode_failure(id_, code, reason))

    def _posted(self, post: "asyncio.Task[None]") -> None:
        self._posts.discard(post)
        self._weigh()

    def _weigh(self) -> None:
        if len(self._outbox) + len(self._posts) > WAITING:
            self._room.clear()
        else:
            self._room.set()

    def _finish(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)
            self._room.set()
