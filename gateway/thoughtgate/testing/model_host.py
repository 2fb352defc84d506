"""The HTTP of a made-up model server: real sockets, and everything that can go wrong on them.

Never knows what a model says; the fakes of the APIs make the bodies.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from thoughtgate.core.json import JsonObject
from thoughtgate.wire.strict import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What goes wrong with one request.

    A status; a body that is sent as it is; silence (`stall`) before the head, or after `stall_at`
    bytes of the body; the connection lost after `cut_at` bytes; the reply ended there as if it
    was whole (`end_at`).
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    stall: bool = False
    stall_at: int | None = None
    cut_at: int | None = None
    end_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as it came; header names are lower case."""

    path: str
    headers: Mapping[str, str]
    body: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A reply: the type of its body, and the pieces that are sent one by one."""

    kind: str
    pieces: tuple[bytes, ...]


class ModelHost:
    """Serves on a free port of the loopback interface between `async with` and its end.

    `troubles` are used up first, one per request; `seen` keeps what was asked.
    """

    def __init__(self, answer: Callable[[Seen], Said]) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._served: set[asyncio.Task[None]] = set()
        self.troubles: list[Trouble] = []
        self.seen: list[Seen] = []
        self.gone = asyncio.Event()
        """Set when a client went away from a reply that stalls."""
        self.url = ""

    async def __aenter__(self) -> Self:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening, and drop what is still stalled."""
        for task in self._served:
            task.cancel()
        await asyncio.gather(*self._served, return_exceptions=True)
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._served.add(task)
        task.add_done_callback(self._served.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            seen = await _read(reader)
            self.seen.append(seen)
            trouble = self.troubles.pop(0) if self.troubles else Trouble()
            if trouble.stall:
                await self._silence(reader)
            said = self._said(seen, trouble)
            writer.write(_head(trouble, said.kind))
            if await self._send(said.pieces, trouble, reader, writer):
                writer.write(b"0\r\n\r\n")
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the client gave up
        finally:
            writer.close()

    def _said(self, seen: Seen, trouble: Trouble) -> Said:
        if trouble.body is not None:
            return Said(kind="application/json", pieces=(trouble.body,))
        if trouble.status != 200:
            return Said(kind="application/json", pieces=(b"{}",))
        return self._answer(seen)

    async def _send(
        self,
        pieces: Iterable[bytes],
        trouble: Trouble,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """Send the body in chunks; return whether it may be ended in good order."""
        limits = [at for at in (trouble.stall_at, trouble.cut_at, trouble.end_at) if at is not None]
        left = min(limits, default=-1)
        for piece in pieces:
            part = piece if left < 0 or len(piece) <= left else piece[:left]
            if part:
                writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                await writer.drain()
            if left >= 0:
                left -= len(part)
            if left == 0:
                break
        if trouble.stall_at is not None:
            await self._silence(reader)
        return trouble.cut_at is None

    async def _silence(self, reader: asyncio.StreamReader) -> None:
        """Say nothing until the client goes away."""
        while await reader.read(1024):
            pass
        self.gone.set()
        raise ConnectionResetError


async def _read(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(path=first.split(" ")[1], headers=headers, body=parse(body))


def _head(trouble: Trouble, kind: str) -> bytes:
    lines = [f"HTTP/1.1 {trouble.status} X", f"Content-Type: {kind}"]
    lines += [f"{name}: {value}" for name, value in trouble.headers.items()]
    lines += ["Transfer-Encoding: chunked", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


def in_pieces(text: str, size: int) -> list[str]:
    """Return a text cut into pieces of `size` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]
