"""Clients of bare bytes, in either era over either transport: what they say is spelled by hand.

Use nothing of the package under test. One request at a time; each wait is bounded.
"""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.support.raw_json import RESERVED, read, spell
from tests.support.raw_upstreams import HANDSHAKE, NEW, OLD, STATELESS
from tests.support.waiting import within

PATIENCE = 20.0
"""Seconds for one answer: a guard against a hang on a busy machine, not a promise."""

_ACCEPT = "application/json, text/event-stream"
_INFO = {"name": "raw", "version": "0"}
_ENVELOPE = {
    RESERVED + "protocolVersion": NEW,
    RESERVED + "clientCapabilities": {},
    RESERVED + "clientInfo": _INFO,
}


@dataclass(slots=True)
class Got:
    """One reply: the notifications before it, and itself; `status` is HTTP's, 200 over stdio."""

    reply: dict[str, Any]
    notes: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200

    @property
    def result(self) -> Any:
        assert "error" not in self.reply, self.reply
        return self.reply["result"]

    @property
    def code(self) -> int:
        """The code of the error."""
        assert "result" not in self.reply, self.reply
        return int(self.reply["error"]["code"])

    @property
    def trouble(self) -> str:
        """The code that a result of ours carries when it says that a call failed."""
        assert self.result["isError"] is True
        return str(self.result["structuredContent"]["error"])


class RawClient(ABC):
    """One client of one era."""

    def __init__(self, era: str) -> None:
        self.era = era
        self._ids = (number if number % 2 else f"id-{number}" for number in count(1))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.era})"

    async def hello(self) -> None:
        """Open a session where the era has one."""
        if self.era == STATELESS:
            return
        params = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": _INFO}
        got = await self.ask("initialize", spell(params))
        assert got.result["protocolVersion"] == OLD
        await self.tell('{"jsonrpc":"2.0","method":"notifications/initialized"}')

    async def call(
        self, name: str, arguments: str | None = "{}", meta: dict[str, Any] | None = None
    ) -> Got:
        """Call a tool; `arguments` are spelled by the caller, None for none at all."""
        said = self._meta(meta)
        members = [f'"name":{spell(name)}']
        if arguments is not None:
            members.append(f'"arguments":{arguments}')
        if said is not None:
            members.append(f'"_meta":{spell(said)}')
        return await self.ask("tools/call", f"{{{','.join(members)}}}", name)

    async def page(self, cursor: str | None = None) -> Got:
        """Ask for one page of the tools."""
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        said = self._meta(None)
        if said is not None:
            params["_meta"] = said
        return await self.ask("tools/list", spell(params))

    async def tools(self) -> list[dict[str, Any]]:
        """Return all tools, page by page."""
        found: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = (await self.page(cursor)).result
            found += page["tools"]
            cursor = page.get("nextCursor")
            if cursor is None:
                return found

    async def ask(self, method: str, params: str, name: str | None = None) -> Got:
        """Send a request and return its reply; an error without an id is taken as one."""
        id_ = next(self._ids)
        message = (
            f'{{"jsonrpc":"2.0","id":{spell(id_)},"method":{spell(method)},"params":{params}}}'
        )
        got = await within(self.exchange(_bytes(message), method, name), PATIENCE)
        refused = "error" in got.reply and got.reply["id"] is None
        assert refused or got.reply["id"] == id_
        return got

    async def names(self) -> list[str]:
        """Return the names of all tools."""
        return [str(tool["name"]) for tool in await self.tools()]

    @abstractmethod
    async def exchange(self, message: bytes, method: str, name: str | None) -> Got:
        """Send a request's bytes and return what came back."""

    @abstractmethod
    async def tell(self, message: str) -> None:
        """Send a notification."""

    @abstractmethod
    def close(self) -> None:
        """Hang up."""

    def _meta(self, meta: dict[str, Any] | None) -> dict[str, Any] | None:
        if self.era == HANDSHAKE:
            return meta
        return {**_ENVELOPE, **(meta or {})}


class RawPipe(RawClient):
    """A client on a pipe."""

    def __init__(
        self, era: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        super().__init__(era)
        self._reader = reader
        self._writer = writer

    async def exchange(self, message: bytes, method: str, name: str | None) -> Got:
        assert b"\n" not in message
        self._writer.write(message + b"\n")
        notes: list[dict[str, Any]] = []
        while True:
            line = await self._reader.readuntil(b"\n")
            heard = read(line)
            if "method" not in heard:
                return Got(heard, notes)
            notes.append(heard)

    async def tell(self, message: str) -> None:
        self._writer.write(_bytes(message) + b"\n")

    def close(self) -> None:
        self._writer.close()


class RawPost(RawClient):
    """A client over HTTP, on one connection that is kept, and opened again when it was closed."""

    def __init__(self, era: str, port: int, path: str = "/mcp") -> None:
        super().__init__(era)
        self._port = port
        self._path = path
        self._session = ""
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def exchange(self, message: bytes, method: str, name: str | None) -> Got:
        status, headers, body = await self._post(message, method, name)
        self._session = headers.get("mcp-session-id", self._session)
        if headers.get("content-type", "").startswith("text/event-stream"):
            *notes, reply = [read(data) for data in _events(body)]
            return Got(reply, notes, status)
        return Got(read(body), status=status)

    async def tell(self, message: str) -> None:
        status, _, _ = await self._post(_bytes(message), "", None)
        assert status == 202

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    async def _post(
        self, message: bytes, method: str, name: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        if self._open is None or self._open[0].at_eof():
            self.close()
            self._open = await asyncio.open_connection("127.0.0.1", self._port, limit=2**26)
        reader, writer = self._open
        lines = [
            f"POST {self._path} HTTP/1.1",
            f"host: 127.0.0.1:{self._port}",
            f"accept: {_ACCEPT}",
            "content-type: application/json",
            f"content-length: {len(message)}",
            *self._headers(method, name),
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + message)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *rest = head.strip().split("\r\n")
        headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in rest}
        body = await _body(reader, headers)
        if headers.get("connection") == "close":
            self.close()
        return int(first.split()[1]), headers, body

    def _headers(self, method: str, name: str | None) -> list[str]:
        if self.era == STATELESS:
            named = [] if name is None else [f"mcp-name: {name}"]
            return [f"mcp-protocol-version: {NEW}", f"mcp-method: {method}", *named]
        if not self._session:
            return []
        return [f"mcp-protocol-version: {OLD}", f"mcp-session-id: {self._session}"]


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    if headers.get("transfer-encoding") != "chunked":
        return b""
    parts: list[bytes] = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(parts)


def _events(body: bytes) -> list[bytes]:
    """Return the data of each event; the gateway ends lines with a bare line feed.

    The first event of a stream may have none: it is there for its id.
    """
    found: list[bytes] = []
    for block in body.split(b"\n\n"):
        data = [line[6:] for line in block.split(b"\n") if line.startswith(b"data: ")]
        if any(data):
            found.append(b"\n".join(data))
    return found


def _bytes(text: str) -> bytes:
    """Return UTF-8; `surrogateescape` lets a test spell bytes that are none."""
    return text.encode("utf-8", "surrogateescape")
