"""HTTP of bare bytes to a gateway: a reply is read message by message, slowly, or not at all.

Never reads a reply for meaning, and sends nothing twice.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

ACCEPT = "application/json, text/event-stream"
_LIMIT = 2**24


class Broken(Exception):
    """The gateway hung up, or wrote what is no reply."""

    def __init__(self, *, what: str, why: Exception) -> None:
        super().__init__(f"{what}: {why!r}")


class Exchange:
    """One request and its reply, on a connection of its own or on one that was kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.line = (reader, writer)
        self._reader = reader

    async def head(self) -> None:
        """Read the head of the reply.

        Raises:
            Broken: There is none.
        """
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise Broken(what="no head", why=error) from None
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        self.status = int(first.split()[1])
        pairs = (line.partition(":") for line in lines)
        self.headers = {name.lower(): value.strip() for name, _, value in pairs}

    async def messages(self) -> AsyncIterator[Any]:
        """Give each message as it comes; the body of an error is one too.

        Raises:
            Broken: The body breaks off, or is not what it should be.
        """
        try:
            if "content-length" in self.headers:
                body = await self._reader.readexactly(int(self.headers["content-length"]))
                if body:
                    yield json.loads(body)
                return
            async for event in _events(self._reader):
                yield json.loads(event)
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            raise Broken(what="the body breaks off", why=error) from None

    def hang_up(self) -> None:
        """Drop the connection at once."""
        self.line[1].transport.abort()


class Lines:
    """The connections of one client; `kept` ones are used again."""

    def __init__(self, port: int, *, kept: bool) -> None:
        self._port = port
        self._kept = kept
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._all: set[asyncio.StreamWriter] = set()

    async def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Exchange:
        """Send a request; its reply is still to be read."""
        reader, writer = await self._take()
        usual = {
            "host": f"127.0.0.1:{self._port}",
            "accept": ACCEPT,
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "keep-alive" if self._kept else "close",
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in {**usual, **headers}.items())
        writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body)
        return Exchange(reader, writer)

    def give_back(self, exchange: Exchange) -> None:
        """Take a connection back whose reply was read to its end."""
        if self._kept and exchange.headers.get("connection") != "close":
            self._idle.append(exchange.line)
        else:
            self.drop(exchange)

    def drop(self, exchange: Exchange) -> None:
        """Hang up on an exchange."""
        self._all.discard(exchange.line[1])
        exchange.hang_up()

    async def close(self) -> None:
        """Hang up on everything."""
        for writer in self._all:
            writer.transport.abort()
        for writer in self._all:
            with suppress(OSError):
                await writer.wait_closed()
        self._all.clear()
        self._idle.clear()

    async def _take(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            self._all.discard(writer)
            writer.close()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=_LIMIT)
        except OSError as error:
            raise Broken(what="no connection", why=error) from None
        self._all.add(writer)
        return reader, writer


async def _events(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Give the data of each event of a chunked stream."""
    rest = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        rest += (await reader.readexactly(size + 2))[:-2]
        *blocks, rest = rest.split(b"\n\n")
        for block in blocks:
            data = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
            if any(data):
                yield b"\n".join(data)
    await reader.readexactly(2)
