"""A client of the handshake era in bare bytes: a session, a stream for each call, one of its own.

Never answers by itself: a test sees every message, and says what is sent.
"""

import asyncio
import json
from collections import deque
from itertools import count
from typing import Any

from tests.support.http_peer import Got, HttpPeer, request
from tests.support.waiting import within
from thoughtgate.wire.sse import EventParser

OLD = "2025-11-25"
PATIENCE = 20.0
"""Seconds for one message: a guard against a hang on a busy machine, not a promise."""


class Told:
    """One reply, read message by message, whether it is a stream or a single body."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.comments = 0
        self._reader = reader
        self._writer = writer
        self._parser = EventParser(cap=2**26)
        self._messages: deque[Any] = deque()
        self._over = False

    async def head(self) -> "Told":
        """Read the reply's head."""
        head = (await within(self._reader.readuntil(b"\r\n\r\n"), PATIENCE)).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        self.status = int(first.split()[1])
        pairs = (line.partition(":") for line in lines)
        self.headers = {name.lower(): value.strip() for name, _, value in pairs}
        return self

    async def message(self) -> Any:
        """Return the next message; None at the end."""
        while not self._messages and not self._over:
            await within(self._more(), PATIENCE)
        return self._messages.popleft() if self._messages else None

    async def rest(self) -> list[Any]:
        """Return all messages up to the end."""
        found: list[Any] = []
        while (message := await self.message()) is not None:
            found.append(message)
        return found

    async def comment(self) -> None:
        """Return when one more comment has come, a sign of life."""
        seen = self.comments
        while self.comments == seen:
            await within(self._more(), PATIENCE)

    def drop(self) -> None:
        """Hang up at once."""
        self._writer.transport.abort()

    async def _more(self) -> None:
        if "content-length" in self.headers:
            body = await self._reader.readexactly(int(self.headers["content-length"]))
            self._end()
            if body:
                self._messages.append(json.loads(body))
            return
        size = int(await self._reader.readline() or b"0", 16)
        data = (await self._reader.readexactly(size + 2))[:-2] if size else b""
        if not size:
            self._end()
        self.comments += data.startswith(b":")
        self._messages += [
            json.loads(event.data) for event in self._parser.feed(data) if event.data
        ]

    def _end(self) -> None:
        self._over = True
        self._writer.close()


class OldClient:
    """One client and its session at one endpoint."""

    def __init__(self, url: str) -> None:
        self.peer = HttpPeer(url)
        self.path = "/" + url.split("/", 3)[3]
        self.headers: dict[str, str] = {}
        self._ids = count(1)
        self._told: list[Told] = []

    @classmethod
    async def open(cls, url: str, *, version: str = OLD, **capabilities: object) -> "OldClient":
        """Return a client that has said hello and can do what is given."""
        client = cls(url)
        info = {"name": "old", "version": "0"}
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info}
        got = await client.post(request("initialize", params, 0))
        client.headers = {
            "mcp-session-id": got.headers["mcp-session-id"],
            "mcp-protocol-version": version,
        }
        await client.tell("notifications/initialized")
        return client

    async def post(self, message: object) -> Got:
        """Post anything and return the whole reply."""
        return await within(self.peer.post(message, self.headers, self.path), PATIENCE)

    async def tell(self, method: str, **params: object) -> None:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        assert (await self.post(message)).status == 202

    async def answer(self, question: Any, result: object) -> int:
        """Answer a question and return the status of that."""
        message = {"jsonrpc": "2.0", "id": question["id"], "result": result}
        return (await self.post(message)).status

    async def begin(
        self, name: str, arguments: dict[str, Any] | None = None, **meta: object
    ) -> tuple[int, Told]:
        """Begin a call of a tool; returns its id and its reply, of which nothing is read yet."""
        params: dict[str, Any] = {"name": name, "arguments": arguments or {}}
        if meta:
            params["_meta"] = meta
        id_ = next(self._ids)
        return id_, await self._send("POST", request("tools/call", params, id_))

    async def call(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call a tool and return the message that answers."""
        _, told = await self.begin(name, arguments)
        await told.head()
        return (await told.rest())[-1]

    async def structured(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call a tool and return the structured content of its result."""
        answer = await self.call(name, arguments)
        assert not answer["result"].get("isError"), answer
        return answer["result"]["structuredContent"]

    async def ask(self, method: str, **params: object) -> Any:
        """Send any request and return the message that answers."""
        told = await self._send("POST", request(method, dict(params), next(self._ids)))
        return (await (await told.head()).rest())[-1]

    async def names(self, kind: str) -> list[str]:
        """Return the names of all tools, prompts or resources, page by page."""
        found: list[str] = []
        cursor: Any = None
        while True:
            params = {} if cursor is None else {"cursor": cursor}
            answer = await self.ask(f"{kind}/list", **params)
            if "error" in answer:  # the list changed between two pages: begin anew
                found, cursor = [], None
                continue
            found += [str(item["name"]) for item in answer["result"][kind]]
            cursor = answer["result"].get("nextCursor")
            if cursor is None:
                return found

    async def listen(self) -> Told:
        """Open the session's own stream."""
        return await (await self._send("GET", None)).head()

    async def leave(self) -> None:
        """End the session."""
        got = await self.peer.send("DELETE", self.path, headers=self.headers)
        assert got.status in {200, 204}

    def drop(self) -> None:
        """Hang up on every stream."""
        for told in self._told:
            told.drop()
        self._told.clear()

    async def _send(self, method: str, message: object) -> Told:
        reader, writer = await self.peer.open()
        data = b"" if message is None else json.dumps(message).encode()
        writer.write(self.peer.head(method, self.path, len(data), self.headers) + data)
        told = Told(reader, writer)
        self._told.append(told)
        return told
