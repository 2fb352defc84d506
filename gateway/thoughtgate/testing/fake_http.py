"""The fake server over HTTP, in both eras, on a raw socket.

Never used beyond loopback; it forgets sessions, cuts streams and refuses on request.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from thoughtgate.core.servers import Era
from thoughtgate.testing.fake_host import FakeServer
from thoughtgate.testing.fake_turn import Turn, reply_of
from thoughtgate.testing.faults import STREAM
from thoughtgate.wire import handshake, methods, stateless
from thoughtgate.wire.messages import (
    BadMessage,
    Failure,
    Request,
    decode,
    encode_notification,
)
from thoughtgate.wire.methods import TOOLS_CHANGED
from thoughtgate.wire.sse import encode_event

_Headers = Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class Manners:
    """How the endpoint behaves; may be changed while it serves.

    `events` answers in streams even where JSON would do; `streams` offers GET streams; `status`
    refuses every POST with that status when it is not 0; `legacy` speaks the older HTTP+SSE, whose
    streams name `address` for what is posted; `refuse` is a status for all of that.
    """

    events: bool = False
    streams: bool = True
    status: int = 0
    legacy: bool = False
    address: str = "/messages"
    refuse: int = 0


class FakeHttp:
    """An HTTP endpoint around a fake server."""

    def __init__(self, server: FakeServer, manners: Manners) -> None:
        self.server = server
        self.manners = manners
        self.url = ""
        self.sessions = server.sessions
        self.forgetful = False
        self.turned_away: list[str] = []
        self.requests: list[tuple[str, _Headers]] = []
        self.connections: set[asyncio.Task[None]] = set()
        self.streams: dict[str, _HttpOut] = {}
        self.serving: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection in a task of its own."""
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self.connections.add(task)
        task.add_done_callback(self.connections.discard)
        task.add_done_callback(lambda _: writer.transport.abort())  # it may not even have begun

    def cut(self) -> None:
        """Cut every connection, as a crash would."""
        for task in list(self.connections):
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.split("\r\n")
                pairs = (line.partition(":") for line in lines if line)
                headers = {name.lower(): value.strip() for name, _, value in pairs}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, path, _ = first.split(" ")
                self.requests.append((method, headers))
                out = _HttpOut(reader, writer)
                if self.manners.legacy:
                    await self._legacy(method, path, body, out)
                else:
                    await self._dispatch(method, headers, body, out)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    async def _legacy(self, method: str, path: str, body: bytes, out: "_HttpOut") -> None:
        """Serve one request of the older transport."""
        session = path.partition("?")[2]
        if method == "GET" and path == "/mcp":
            out.session = session = secrets.token_hex(8)
            await out.open_events()
            await out.event(b"event: endpoint\ndata: %b?%b\n\n" % (
                self.manners.address.encode(), session.encode()
            ))  # fmt: skip
            out.lasting, self.streams[session] = True, out
            try:
                await self.server.strike(self._opening(out), _hold)
            finally:
                del self.streams[session]
        elif self.manners.refuse or session not in self.streams:
            await out.whole(b"", self.manners.refuse or 405)
        else:
            await out.whole(b"", 202)
            self._serve_aside(body, self.streams[session])

    def _serve_aside(self, body: bytes, stream: "_HttpOut") -> None:
        task = asyncio.get_running_loop().create_task(self.server.take(body, stream))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)

    async def _dispatch(self, method: str, headers: _Headers, body: bytes, out: "_HttpOut") -> None:
        session = headers.get(handshake.SESSION_HEADER, "")
        if method == "POST" and self.manners.status:
            await out.whole(b"", self.manners.status)
        elif method == "POST":
            await self._post(headers, body, out)
        elif method == "DELETE":
            self.sessions.discard(session)
            self.server.ended(session)
            await out.whole(b"", 200)
        elif not self.manners.streams:
            await out.whole(b"", 405)
        elif session not in self.sessions:
            await out.whole(b"", 404)
        else:
            out.session = session
            await self.server.strike(self._opening(out), self._stream)

    def _opening(self, out: "_HttpOut") -> Turn:
        """Return the turn of a client that opens a standing stream."""
        opening = Request(id=0, method=STREAM, params={})
        return Turn(server=self.server, request=opening, era=Era.HANDSHAKE, out=out)

    async def _post(self, headers: _Headers, body: bytes, out: "_HttpOut") -> None:
        try:
            message = decode(body)
        except BadMessage:
            await out.whole(b"", 400)
            return
        new = headers.get(handshake.VERSION_HEADER) in stateless.VERSIONS
        opening = isinstance(message, Request) and message.method == methods.INITIALIZE
        if self.forgetful:
            self.sessions.clear()
        if not new and not opening and headers.get(handshake.SESSION_HEADER) not in self.sessions:
            if isinstance(message, Request):
                self.turned_away.append(message.method)
            await out.whole(b"", 404)
            return
        if not isinstance(message, Request):
            await self.server.take(body, out, headers)
            await out.whole(b"", 202)
            return
        if opening:
            out.session = secrets.token_hex(8)
            if not self.forgetful:
                self.sessions.add(out.session)
        out.events, out.new = self.manners.events, new
        await out.exchange(self.server, body, headers)

    async def _stream(self, turn: Turn) -> None:
        out = turn.out
        assert isinstance(out, _HttpOut)

        async def changed() -> None:
            await out.send(encode_notification(TOOLS_CHANGED))

        await out.open_events()
        self.server.listeners.add(changed)
        self.server.joined(out.session, out)
        try:
            await out.closed()
        finally:
            self.server.left(out.session)
            self.server.listeners.discard(changed)


class _HttpOut:
    """The reply to one HTTP request as `Out`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lasting = False
        self.session = ""
        self.events = False
        self.new = False
        self._reader = reader
        self._writer = writer
        self._streaming = False
        self._answered = False
        self._frozen = False

    async def exchange(self, server: FakeServer, body: bytes, headers: _Headers) -> None:
        """Serve one request; in the stateless era a closed connection cancels it."""
        cancelled = asyncio.Event()
        watching = asyncio.get_running_loop().create_task(self._watch(cancelled))
        try:
            await server.take(body, self, headers, cancelled if self.new else None)
        finally:
            watching.cancel()
            await asyncio.wait([watching])
        if cancelled.is_set() or not self._answered:
            raise ConnectionAbortedError
        if self._streaming:
            await self.raw(b"0\r\n\r\n")

    async def send(self, data: bytes) -> None:
        """Send one message: as the JSON body when it is the only one, else as an event."""
        await self.raw(self.framed(data))

    def framed(self, data: bytes) -> bytes:
        """Return a message's bytes as they would be sent now."""
        reply = reply_of(data)
        if reply is not None and not self._streaming and not self.events:
            code = reply.code if self.new and isinstance(reply, Failure) else 0
            self._answered = True
            return self._head(stateless.status_of(code), self._sized(data)) + data
        head = b"" if self._streaming else self._stream_head()
        self._answered = self._answered or reply is not None
        return head + self._chunk(encode_event(data))

    async def event(self, event: bytes) -> None:
        """Send one event, on a stream that is opened for it if need be."""
        head = b"" if self._streaming else self._stream_head()
        await self.raw(head + self._chunk(event))

    async def raw(self, *parts: bytes) -> None:
        """Write bytes as they are, each part in a write of its own."""
        if self._frozen:
            await asyncio.get_running_loop().create_future()
        for part in parts:
            self._writer.write(part)
            await self._writer.drain()
            if len(parts) > 1:
                await asyncio.sleep(0)  # so that the reader may see what there is

    def cut(self, code: int) -> None:
        """Cut the connection."""
        self._writer.transport.abort()
        raise ConnectionAbortedError

    async def refuse(self, status: int, location: str = "") -> bool:
        """Answer with a status and no body."""
        self._answered = True
        where = f"location: {location}\r\n" if location else ""
        await self.raw(self._head(status, f"{where}content-length: 0"))
        return True

    async def end(self, code: int | None = None) -> bool:
        """Say no: without a reply an exchange is cut."""
        return False

    async def freeze(self) -> None:
        """Neither read nor write any more; the connection stays open until the endpoint ends."""
        self._frozen = True
        if isinstance(self._writer.transport, asyncio.Transport):
            self._writer.transport.pause_reading()
        await asyncio.get_running_loop().create_future()

    async def whole(self, body: bytes, status: int) -> None:
        """Send a whole reply."""
        sized = self._sized(body) if body else "content-length: 0"
        await self.raw(self._head(status, sized) + body)

    async def open_events(self) -> None:
        """Start a stream of events."""
        await self.raw(self._stream_head())

    async def closed(self) -> None:
        """Return when the client has closed the connection."""
        while await self._reader.read(1024):
            pass

    def _head(self, status: int, headers: str) -> bytes:
        session = f"{handshake.SESSION_HEADER}: {self.session}\r\n" if self.session else ""
        return f"HTTP/1.1 {status} X\r\n{session}{headers}\r\n\r\n".encode()

    def _stream_head(self) -> bytes:
        self._streaming = True
        return self._head(200, "content-type: text/event-stream\r\ntransfer-encoding: chunked")

    def _sized(self, body: bytes) -> str:
        return f"content-type: application/json\r\ncontent-length: {len(body)}"

    def _chunk(self, event: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(event), event)

    async def _watch(self, cancelled: asyncio.Event) -> None:
        if not await self._reader.read(1):
            cancelled.set()


async def _hold(turn: Turn) -> None:
    """Keep a stream of the older transport open until the client closes it."""
    assert isinstance(turn.out, _HttpOut)
    await turn.out.closed()


@asynccontextmanager
async def fake_http(
    server: FakeServer | None = None, manners: Manners | None = None, port: int = 0
) -> AsyncIterator[FakeHttp]:
    """Serve a fake server on loopback while the block runs."""
    endpoint = FakeHttp(server or FakeServer(), manners or Manners())
    listener = await asyncio.start_server(endpoint.accept, "127.0.0.1", port, limit=1 << 26)
    endpoint.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    try:
        yield endpoint
    finally:
        listener.close()
        endpoint.cut()
        for task in endpoint.serving:
            task.cancel()
        if ending := endpoint.connections | endpoint.serving:
            await asyncio.wait(ending, timeout=2.0)
