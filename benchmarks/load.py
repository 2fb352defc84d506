"""A load generator for MCP over HTTP: raw sockets, closed loop, one connection a session.

Never uses an MCP or HTTP library: it must cost far less CPU than what it measures.
"""

import asyncio
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
_KEY = "io.modelcontextprotocol"
_ME = {"name": "bench", "version": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What to send: `calls` in all over `sessions` connections, after `warmup` each."""

    url: str
    tool: str
    arguments: Mapping[str, Any]
    era: str = STATELESS
    sessions: int = 32
    calls: int = 3000
    warmup: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came of it: times in milliseconds, CPU in milliseconds a call by process."""

    calls: int
    errors: int
    rate: float
    p50: float
    p99: float
    cpu: Mapping[str, float]


class Client:
    """One session on one keep-alive connection."""

    def __init__(self, load: Load) -> None:
        self._load = load
        parts = urlsplit(load.url)
        self._address = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._head = (
            f"POST {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        )
        self._reader = asyncio.StreamReader()
        self._writer: asyncio.StreamWriter | None = None
        self._id = 0
        self._params: dict[str, Any] = {"name": load.tool, "arguments": load.arguments}

    async def open(self) -> None:
        """Connect and, in the handshake era, greet."""
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        if self._load.era == STATELESS:
            self._head += (
                f"MCP-Protocol-Version: {STATELESS}\r\nMcp-Method: tools/call\r\n"
                f"Mcp-Name: {self._load.tool}\r\n"
            )
            self._params["_meta"] = {
                f"{_KEY}/protocolVersion": STATELESS,
                f"{_KEY}/clientCapabilities": {},
                f"{_KEY}/clientInfo": _ME,
            }
            return
        greeting = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": _ME}
        headers, _ = await self._post(self._message("initialize", greeting))
        self._head += f"MCP-Protocol-Version: {HANDSHAKE}\r\n"
        if session := headers.get("mcp-session-id"):
            self._head += f"Mcp-Session-Id: {session}\r\n"
        await self._post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    async def call(self) -> bool:
        """Make one call; True when its result is good."""
        _, body = await self._post(self._message("tools/call", self._params))
        return b'"result"' in body and b'"isError":true' not in body

    def close(self) -> None:
        """Drop the connection."""
        if self._writer is not None:
            self._writer.close()

    def _message(self, method: str, params: Mapping[str, Any]) -> bytes:
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        return json.dumps(message, separators=(",", ":")).encode()

    async def _post(self, body: bytes) -> tuple[dict[str, str], bytes]:
        assert self._writer is not None
        self._writer.write(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
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


async def measure(load: Load, processes: Mapping[str, int]) -> Measured:
    """Run the load once and return what it took, with the CPU of `processes` by pid."""
    clients = [Client(load) for _ in range(load.sessions)]
    try:
        for client in clients:
            await client.open()
        await asyncio.gather(*(_calls(client, load.warmup) for client in clients))
        before = {name: cpu_seconds(pid) for name, pid in processes.items()}
        began = time.perf_counter()
        share = max(1, load.calls // load.sessions)
        rows = await asyncio.gather(*(_calls(client, share) for client in clients))
        took = time.perf_counter() - began
    finally:
        for client in clients:
            client.close()
    times = sorted(seconds for row in rows for seconds, _ in row)
    count = len(times)
    return Measured(
        calls=count,
        errors=sum(not good for row in rows for _, good in row),
        rate=round(count / took, 1),
        p50=round(times[count // 2] * 1e3, 3),
        p99=round(times[min(count - 1, int(count * 0.99))] * 1e3, 3),
        cpu={
            name: round((cpu_seconds(pid) - before[name]) * 1e3 / count, 3)
            for name, pid in processes.items()
        },
    )


async def _calls(client: Client, count: int) -> list[tuple[float, bool]]:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        good = await client.call()
        times.append((time.perf_counter() - began, good))
    return times


def cpu_seconds(pid: int) -> float:
    """Return the user and system time that a process has used, all threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
