"""Clients that cost little: one session each, over HTTP or over the pipe of a child.

Never an MCP or HTTP library: a load generator must cost far less CPU than what it measures.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
ERAS = (HANDSHAKE, STATELESS)
LINE_LIMIT = 64 * 1024 * 1024

_KEY = "io.modelcontextprotocol"
_ME = {"name": "bench", "version": "1"}
_META = {
    f"{_KEY}/protocolVersion": STATELESS,
    f"{_KEY}/clientCapabilities": {},
    f"{_KEY}/clientInfo": _ME,
}
_GREETING = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": _ME}
_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_ACCEPT = "application/json, text/event-stream"


class Reply(msgspec.Struct):
    """One JSON-RPC message, its result left as the bytes that came."""

    id: int | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(Reply).decode


class RequestFailed(Exception):
    """A request got no result; says what came instead."""


class Client(Protocol):
    """One session: open it, ask, end it."""

    async def open(self) -> None:
        """Connect and, in the handshake era, greet."""

    async def request(self, method: str, params: bytes, name: str = "") -> bytes:
        """Return the bytes of a result."""

    async def end(self) -> None:
        """End the session, where there is one, and drop the connections."""


@dataclass(slots=True)
class HttpClient:
    """One session on one connection that is kept, and another one for its stream."""

    url: str
    era: str
    plain: bool = False
    """Whether the other side knows no MCP: whatever it sends back is the result."""
    _head: str = ""
    _ids: int = 0
    _reader: asyncio.StreamReader = field(default_factory=asyncio.StreamReader)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def open(self) -> None:
        """Connect and, in the handshake era, greet."""
        self._reader = await self._connect()
        self._head = f"Content-Type: application/json\r\nAccept: {_ACCEPT}\r\n"
        if self.plain:
            return
        if self.era == STATELESS:
            self._head += f"MCP-Protocol-Version: {STATELESS}\r\n"
            return
        headers, body = await self._post(self._message("initialize", to_json(_GREETING)))
        if b'"result"' not in body:
            raise RequestFailed(body[:300])
        self._head += f"MCP-Protocol-Version: {HANDSHAKE}\r\n"
        if session := headers.get("mcp-session-id"):
            self._head += f"Mcp-Session-Id: {session}\r\n"
        await self._post(_INITIALIZED)

    async def request(self, method: str, params: bytes, name: str = "") -> bytes:
        """Return the bytes of a result.

        Raises:
            RequestFailed: Something else came.
        """
        extra = ""
        if self.era == STATELESS:
            extra = f"Mcp-Method: {method}\r\n" + (f"Mcp-Name: {name}\r\n" if name else "")
        headers, body = await self._post(self._message(method, params), extra)
        if self.plain:
            return body
        if headers.get("content-type", "").startswith("text/event-stream"):
            found = [
                reply
                for line in body.split(b"\n")
                if line.startswith(b"data:")
                and (data := line[5:].strip())  # the event that only names an id has none
                and (reply := _decode(data)).id == self._ids
            ]
            return _result(found[-1] if found else Reply(), self._ids, body)
        return _result(_decode(body), self._ids, body)

    async def listen(self) -> None:
        """Open the session's stream for what the server sends by itself, and hold it."""
        reader = await self._connect()
        self._send("GET", self._writers[-1], b"", "")
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise RequestFailed(head[:300])

    def hang_up(self) -> None:
        """Drop the connection of the requests; the stream stays."""
        self._writers.pop(0).close()

    async def end(self) -> None:
        """End the session, where there is one, and drop the connections."""
        if "Mcp-Session-Id" in self._head:
            reader = await self._connect()
            self._send("DELETE", self._writers[-1], b"", "")
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 2"):
                raise RequestFailed(head[:300])
        while self._writers:
            self._writers.pop().close()

    async def _connect(self) -> asyncio.StreamReader:
        parts = urlsplit(self.url)
        try:
            reader, writer = await asyncio.open_connection(
                parts.hostname, parts.port, limit=LINE_LIMIT
            )
        except OSError as error:
            message = f"nobody answers at {self.url}: {error}"
            raise RequestFailed(message) from error
        self._writers.append(writer)
        return reader

    def _message(self, method: str, params: bytes) -> bytes:
        self._ids += 1
        return _message(self._ids, method, params)

    def _send(self, verb: str, writer: asyncio.StreamWriter, body: bytes, extra: str) -> None:
        parts = urlsplit(self.url)
        head = (
            f"{verb} {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\n{self._head}{extra}"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)

    async def _post(self, body: bytes, extra: str = "") -> tuple[dict[str, str], bytes]:
        if self._reader.at_eof():  # kept for too long, as the server saw it
            self._writers.pop(0).close()
            self._reader = await self._connect()
        self._send("POST", self._writers[0], body, extra)
        try:
            return await self._answer()
        except (asyncio.IncompleteReadError, ConnectionError) as lost:
            raise RequestFailed(repr(lost)) from lost

    async def _answer(self) -> tuple[dict[str, str], bytes]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        pairs = (line.partition(":") for line in head.split("\r\n")[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        if headers.get("transfer-encoding") == "chunked":
            return headers, await self._chunks()
        return headers, await self._reader.readexactly(int(headers.get("content-length", "0")))

    async def _chunks(self) -> bytes:
        parts = []
        while True:
            size = int((await self._reader.readuntil(b"\r\n")).strip(), 16)
            parts.append((await self._reader.readexactly(size + 2))[:-2])
            if not size:
                return b"".join(parts)


@dataclass(slots=True)
class Pipe:
    """A tool server as a child, asked by any number of sessions over its one pipe."""

    command: Sequence[str]
    era: str
    _ids: int = 0
    _waiting: dict[int, asyncio.Future[bytes]] = field(default_factory=dict)
    _child: asyncio.subprocess.Process | None = None
    _reading: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The child's pid."""
        assert self._child is not None, "it is not open"
        return self._child.pid

    async def open(self) -> None:
        """Start the child once and, in the handshake era, greet it."""
        if self._child is not None:
            return
        pipe = asyncio.subprocess.PIPE
        self._child = await asyncio.create_subprocess_exec(
            *self.command, stdin=pipe, stdout=pipe, limit=LINE_LIMIT
        )
        self._reading = asyncio.create_task(self._read())
        if self.era == HANDSHAKE:
            await self.request("initialize", to_json(_GREETING))
            self._write(_INITIALIZED)

    async def request(self, method: str, params: bytes, name: str = "") -> bytes:
        """Return the bytes of a result."""
        del name
        self._ids += 1
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[self._ids] = answer
        self._write(_message(self._ids, method, params))
        return await answer

    async def end(self) -> None:
        """End the child."""
        if self._child is not None and self._child.returncode is None:
            self._child.terminate()
            await self._child.wait()

    def _write(self, body: bytes) -> None:
        assert self._child is not None
        assert self._child.stdin is not None
        self._child.stdin.write(body + b"\n")

    async def _read(self) -> None:
        assert self._child is not None
        assert self._child.stdout is not None
        while line := await self._child.stdout.readline():
            reply = _decode(line)
            if reply.id is None or (answer := self._waiting.pop(reply.id, None)) is None:
                continue
            try:
                answer.set_result(_result(reply, reply.id, line))
            except RequestFailed as failed:
                answer.set_exception(failed)


def to_json(value: Mapping[str, Any]) -> bytes:
    """Return the bytes of some parameters."""
    return json.dumps(value, separators=(",", ":")).encode()


def parameters(era: str, **given: object) -> bytes:
    """Return the bytes of a request's parameters, with what the era wants in them."""
    return to_json({**given, "_meta": _META} if era == STATELESS else given)


def _message(number: int, method: str, params: bytes) -> bytes:
    head = f'{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":'
    return head.encode() + params + b"}"


def _result(reply: Reply, number: int, body: bytes) -> bytes:
    if reply.id != number or not reply.result:
        raise RequestFailed(body[:300])
    return bytes(reply.result)
