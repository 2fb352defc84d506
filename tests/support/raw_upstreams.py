"""A tool server of bare bytes: in either era, over HTTP or as a child, its answers spelled by hand.

Uses nothing of the package under test: what it reads and writes is the wire as the test sees it.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.raw_http import Seen, Wire, raw_http
from tests.support.raw_json import RESERVED, read, spell

HANDSHAKE, STATELESS = "handshake", "stateless"
OLD, NEW = "2025-11-25", "2026-07-28"
PUMP = Path(__file__).with_name("raw_pump.py")
_ANY = {"type": "object"}
DONE = '{"content":[]}'

Answer = Callable[[dict[str, Any]], Awaitable[str]]
"""Takes the params of a `tools/call` and returns the result, spelled."""

Page = Callable[[str | None], str]
"""Takes a cursor and returns the result of `tools/list`, spelled."""


@dataclass(frozen=True, slots=True)
class Framing:
    """How an HTTP answer travels: as `events`, in how many `pieces`, with which line ends."""

    events: bool = False
    pieces: int = 1
    newline: str = "\n"


WHOLE = Framing()


@dataclass(slots=True, repr=False)
class RawUpstream:
    """One server that keeps what it hears.

    `params` are those of each `tools/call`, `methods` what was asked, `heads` each POST's head;
    `notes` are params of progress notifications sent before each answer, their token added.
    """

    era: str = STATELESS
    page: Page = lambda cursor: listed({"name": "echo"})
    answer: Answer | None = None
    result: str = DONE
    framing: Framing = WHOLE
    notes: list[dict[str, Any]] = field(default_factory=list)
    params: list[dict[str, Any]] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    heads: list[Seen] = field(default_factory=list)
    deaf: bool = False

    async def take(self, data: bytes) -> list[str]:
        """Return the messages that answer one message, the reply last; none for notifications."""
        message = read(data)
        self.methods.append(message.get("method", ""))
        if self.deaf:
            await asyncio.get_running_loop().create_future()
        if "id" not in message or "method" not in message:
            return []
        return await self._answered(message)

    async def _answered(self, message: dict[str, Any]) -> list[str]:
        id_, method, params = message["id"], message["method"], message.get("params", {})
        if method == "tools/call":
            self.params.append(params)
            notes = [_note(params, note) for note in self.notes]
            result = self.result if self.answer is None else await self.answer(params)
            return [*notes, _reply(id_, result)]
        if method == "tools/list":
            return [_reply(id_, self.page(params.get("cursor")))]
        hello = {HANDSHAKE: "initialize", STATELESS: "server/discover"}[self.era]
        if method == hello:
            return [_reply(id_, spell(_greeting(self.era)))]
        error = {"code": -32601, "message": "method not found"}
        return [spell({"jsonrpc": "2.0", "id": id_, "error": error})]


def listed(*tools: dict[str, Any], cursor: str | None = None) -> str:
    """Return the result of `tools/list`; tools that name no input schema take any object."""
    shown = [{**tool, "inputSchema": tool.get("inputSchema", _ANY)} for tool in tools]
    page: dict[str, Any] = {"tools": shown}
    if cursor is not None:
        page["nextCursor"] = cursor
    return spell(page)


@asynccontextmanager
async def over_http(upstream: RawUpstream) -> AsyncIterator[str]:
    """Serve over HTTP; yields the lines of configuration that register it."""

    async def serve(wire: Wire) -> None:
        while (seen := await wire.request()) is not None:
            await _serve(wire, seen, upstream)

    async with raw_http(serve) as server:
        yield f'url = "{server.url}"'


@asynccontextmanager
async def over_stdio(upstream: RawUpstream) -> AsyncIterator[str]:
    """Serve as a child process; yields the lines of configuration that register it."""
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _keep(tasks, _serve_lines(reader, writer, upstream, tasks))

    listener = await asyncio.start_server(accept, "127.0.0.1", 0, limit=2**26)
    port = listener.sockets[0].getsockname()[1]
    try:
        argv = [sys.executable, "-S", "-E", str(PUMP), str(port)]
        yield f"command = {spell(argv)}"
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


DOORS = {"http": over_http, "stdio": over_stdio}


def _keep(tasks: set[asyncio.Task[None]], work: Any) -> None:
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def _serve_lines(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    upstream: RawUpstream,
    tasks: set[asyncio.Task[None]],
) -> None:
    async def one(line: bytes) -> None:
        for text in await upstream.take(line):
            writer.write(_bytes(text) + b"\n")
        await writer.drain()

    try:
        async for line in reader:
            _keep(tasks, one(line))
    finally:
        writer.close()


async def _serve(wire: Wire, seen: Seen, upstream: RawUpstream) -> None:
    if not seen.head.startswith("POST"):
        await wire.reply(b"", status=200 if seen.head.startswith("DELETE") else 405)
        return
    upstream.heads.append(seen)
    texts = await upstream.take(seen.body)
    session = "mcp-session-id: s1\r\n" if upstream.era == HANDSHAKE else ""
    if not texts:
        await wire.reply(b"", status=202)
        return
    framing = upstream.framing
    if len(texts) == 1 and not framing.events:
        kind, body = "application/json", _bytes(texts[0])
    else:
        kind, body = "text/event-stream", b"".join(_event(t, framing.newline) for t in texts)
    extra = f"content-type: {kind}\r\n{session}"
    if framing.pieces == 1:
        await wire.reply(body, extra=extra)
    else:
        await _in_pieces(wire, body, extra, framing.pieces)


async def _in_pieces(wire: Wire, body: bytes, extra: str, pieces: int) -> None:
    head = f"HTTP/1.1 200 OK\r\n{extra}transfer-encoding: chunked\r\n\r\n"
    await wire.write(head.encode())
    size = max(1, -(-len(body) // pieces))
    for start in range(0, len(body), size):
        piece = body[start : start + size]
        await wire.write(b"%x\r\n%b\r\n" % (len(piece), piece))
    await wire.write(b"0\r\n\r\n")


def _event(text: str, newline: str) -> bytes:
    end = newline.encode()
    lines = _bytes(text).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"".join(b"data: " + line + end for line in lines) + end


def _bytes(text: str) -> bytes:
    """Return UTF-8; `surrogateescape` lets a test spell bytes that are none."""
    return text.encode("utf-8", "surrogateescape")


def _reply(id_: Any, result: str) -> str:
    return f'{{"jsonrpc":"2.0","id":{spell(id_)},"result":{result}}}'


def _note(params: dict[str, Any], note: dict[str, Any]) -> str:
    token = params.get("_meta", {}).get("progressToken")
    marked = {"progressToken": token, **note}
    return spell({"jsonrpc": "2.0", "method": "notifications/progress", "params": marked})


def _greeting(era: str) -> dict[str, Any]:
    info = {"name": "raw", "version": "0"}
    if era == HANDSHAKE:
        return {"protocolVersion": OLD, "capabilities": {"tools": {}}, "serverInfo": info}
    return {
        "resultType": "complete",
        "supportedVersions": [NEW],
        "capabilities": {"tools": {}},
        "_meta": {RESERVED + "serverInfo": info},
    }
