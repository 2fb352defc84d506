"""What stands before a fake gRPC server: it passes HTTP/2 on, and breaks it as it is told.

Never used beyond loopback; between two frames it may say what no server would.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD: Final = 9
_DATA, _HEADERS, _GOAWAY = 0, 1, 7
_ENDS: Final = 0x5
"""END_STREAM and END_HEADERS."""

_ARRIVING: Final = 5
"""Turns of the loop in which a connection that was taken becomes one of ours."""

_ANY_STREAM: Final = 0x7FFFFFFF


class Line:
    """One client's connection, and ours to the server behind, which knows us by `port`.

    The next `slowly` bytes for the client are given one by one.
    """

    def __init__(
        self,
        near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.port: int = far[1].get_extra_info("sockname")[1]
        self.slowly = 0
        self._from_client, self._to_client = near
        self._from_server, self._to_server = far
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._newest = 0
        self._given = 0
        self._gave = asyncio.Event()

    @property
    def given(self) -> int:
        """Return how many frames with data the client was given."""
        return self._given

    async def gives(self, more_than: int) -> None:
        """Return when the client was given more frames with data than that."""
        while self._given <= more_than:
            self._gave.clear()
            await self._gave.wait()

    async def carry(self) -> None:
        """Pass on in both directions until either side ends."""
        loop = asyncio.get_running_loop()
        tasks = {loop.create_task(self._up()), loop.create_task(self._down())}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.cut()  # before anything that waits, and may be cancelled itself
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def cut(self) -> None:
        """Break both connections off."""
        for writer in (self._to_client, self._to_server):
            writer.transport.abort()

    def freeze(self) -> None:
        """Pass nothing on any more, and close nothing."""
        self._flowing.clear()

    def refuse(self, status: int, location: str) -> None:
        """Answer the newest stream with an HTTP status, as no gRPC server does."""
        block = b"\x08" + _text(str(status)) + b"\x0f\x10" + _text("text/html")
        if location:
            block += b"\x0f\x1f" + _text(location)
        self._to_client.write(_frame(_HEADERS, _ENDS, self._newest, block))

    def go_away(self, code: int, why: str) -> None:
        """Say that no further stream will be served here; `code` is one of HTTP/2's."""
        words = _ANY_STREAM.to_bytes(4, "big") + code.to_bytes(4, "big") + why.encode()
        self._to_client.write(_frame(_GOAWAY, 0, 0, words))

    async def _up(self) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            self._to_server.write(await self._from_client.readexactly(len(_PREFACE)))
            while True:
                head, body = await _read_frame(self._from_client)
                if head[3] == _HEADERS:
                    self._newest = int.from_bytes(head[5:9], "big")
                await self._flowing.wait()
                self._to_server.write(head + body)
                await self._to_server.drain()

    async def _down(self) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head, body = await _read_frame(self._from_server)
                await self._flowing.wait()
                await self._give(head + body)
                if head[3] == _DATA:
                    self._given += 1
                    self._gave.set()

    async def _give(self, frame: bytes) -> None:
        slow = min(self.slowly, len(frame))
        self.slowly -= slow
        for at in range(slow):
            self._to_client.write(frame[at : at + 1])
            await self._to_client.drain()
            await asyncio.sleep(0)
        self._to_client.write(frame[slow:])
        await self._to_client.drain()


class Front:
    """Takes connections on a port of loopback and carries them to the server on `behind`.

    `greet` may say how a new connection is to be met: with bytes, after which it is closed; with
    silence (None); empty: it is carried.
    """

    def __init__(self, behind: int, greet: Callable[[], bytes | None]) -> None:
        self.port = 0
        self._behind = behind
        self._greet = greet
        self._lines: dict[int, Line] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    async def start(self, port: int) -> None:
        """Listen on `port`, 0 for any."""
        self._listener = await asyncio.start_server(self._take, "127.0.0.1", port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Take no more connections and cut those that are open."""
        assert self._listener is not None
        self._listener.close()
        for _ in range(_ARRIVING):
            await asyncio.sleep(0)
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            await asyncio.sleep(0)  # so that what they held is closed, too

    def line(self, peer: str) -> Line | None:
        """Return the connection by which a call came, by what the server knows of its peer."""
        return self._lines.get(int(peer.rpartition(":")[2]))

    def cut(self) -> None:
        """Break every connection off."""
        for line in list(self._lines.values()):
            line.cut()

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)

        def served(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            writer.transport.abort()
            if not task.cancelled():
                task.exception()  # a client that has gone is none of ours

        task.add_done_callback(served)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said = self._greet()
        if said is None:
            while await reader.read(65536):
                pass
            return
        if said:
            writer.write(said)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            return
        line = Line((reader, writer), await asyncio.open_connection("127.0.0.1", self._behind))
        self._lines[line.port] = line
        try:
            await line.carry()
        finally:
            self._lines.pop(line.port, None)


async def _read_frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(_HEAD)
    return head, await reader.readexactly(int.from_bytes(head[:3], "big"))


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + body


def _text(text: str) -> bytes:
    """Return a text as a header's literal of less than 127 bytes, not compressed."""
    data = text.encode()[:126]
    return bytes([len(data)]) + data
