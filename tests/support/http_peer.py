"""A raw HTTP client for tests: it sends exactly what it is told, and reads to the end."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.support.waiting import within
from thoughtgate.wire.sse import EventParser

ACCEPT = "application/json, text/event-stream"
NEW = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
}


@dataclass(frozen=True, slots=True)
class Got:
    """One reply."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        return self.json["error"]

    @property
    def messages(self) -> list[Any]:
        """The messages of an event stream."""
        events = EventParser(cap=2**26).feed(self.body)
        return [json.loads(event.data) for event in events]


class HttpPeer:
    """Sends requests to one server, each on a connection of its own."""

    def __init__(self, url: str) -> None:
        self.port = urlsplit(url).port or 0

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=2**26)

    async def send(
        self,
        method: str,
        path: str = "/mcp",
        body: bytes = b"",
        headers: dict[str, str] | list[tuple[str, str]] | None = None,
    ) -> Got:
        reader, writer = await self.open()
        try:
            writer.write(self.head(method, path, len(body), headers) + body)
            return await within(read_reply(reader))
        finally:
            writer.close()

    def head(
        self,
        method: str,
        path: str,
        length: int | None,
        headers: dict[str, str] | list[tuple[str, str]] | None,
    ) -> bytes:
        pairs = list(headers.items()) if isinstance(headers, dict) else headers or []
        named = {name.lower() for name, _ in pairs}
        usual = {
            "host": f"127.0.0.1:{self.port}",
            "accept": ACCEPT,
            "content-type": "application/json",
            "connection": "close",
        }
        if length is not None:
            usual["content-length"] = str(length)
        pairs = [*((n, v) for n, v in usual.items() if n not in named), *pairs]
        lines = "".join(f"{name}: {value}\r\n" for name, value in pairs)
        return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")

    async def post(
        self, body: bytes | object, headers: dict[str, str] | None = None, path: str = "/mcp"
    ) -> Got:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.send("POST", path, data, headers)

    async def ask(self, method: str, params: dict[str, Any], **options: Any) -> Got:
        """Send a request of the stateless era with everything that it needs."""
        headers = {"mcp-protocol-version": NEW, "mcp-method": method}
        if "name" in params:
            headers["mcp-name"] = params["name"]
        headers |= options.pop("headers", {})
        body = request(method, {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}})
        return await self.post(body, {k: v for k, v in headers.items() if v}, **options)

    async def hello(self, path: str = "/mcp") -> dict[str, str]:
        """Open a session of the handshake era; returns its headers."""
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "r"}}
        got = await self.post(request("initialize", params), path=path)
        return {"mcp-session-id": got.headers["mcp-session-id"]}


def request(method: str, params: dict[str, Any], id_: object = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


async def read_reply(reader: asyncio.StreamReader) -> Got:
    """Read one reply on a connection that closes after it."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *lines = head.strip().split("\r\n")
    headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines}
    body = await reader.read() if "content-length" not in headers else b""
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    elif headers.get("transfer-encoding") == "chunked":
        body = _unchunked(body)
    return Got(int(status.split()[1]), headers, body)


def _unchunked(data: bytes) -> bytes:
    parts = []
    while data:
        size, _, data = data.partition(b"\r\n")
        parts.append(data[: int(size, 16)])
        data = data[int(size, 16) + 2 :]
    return b"".join(parts)
