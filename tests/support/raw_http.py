"""A raw-socket HTTP server for tests: each connection is served by a function that writes bytes."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Seen:
    """One request as it came."""

    head: str
    body: bytes

    def header(self, name: str) -> str | None:
        for line in self.head.split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name.lower():
                return value.strip()
        return None


@dataclass(slots=True)
class RawServer:
    """Where the server listens, what it was sent, how many connections it took.

    `refuse` lets no further connection in.
    """

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    refuse: Callable[[], None] = field(default=lambda: None)


class Wire:
    """One connection: read a request, write bytes."""

    def __init__(
        self, server: RawServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.server = server
        self.reader = reader
        self.writer = writer

    async def request(self) -> Seen | None:
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        seen = Seen(head.decode("latin-1"), b"")
        length = int(seen.header("content-length") or 0)
        seen.body = await self.reader.readexactly(length)
        self.server.seen.append(seen)
        return seen

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self, body: bytes, *, status: int = 200, extra: str = "") -> None:
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
        await self.write(head.encode() + body)

    async def closed(self) -> None:
        """Return when the client has closed."""
        while await self.reader.read(65536):
            pass


Handler = Callable[[Wire], Awaitable[None]]


@asynccontextmanager
async def raw_http(
    handler: Handler, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[RawServer]:
    """Serve `handler` on loopback; when the block ends, every connection is cut."""
    server = RawServer()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        server.open += 1
        try:
            await handler(Wire(server, reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            server.open -= 1
            writer.transport.abort() if tls is not None else writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda _: writer.close())  # it may not even have begun

    listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    server.refuse = listener.close
    port = listener.sockets[0].getsockname()[1]
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/mcp"
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2.0)
