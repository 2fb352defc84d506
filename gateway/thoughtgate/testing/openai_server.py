"""A model server that computes its replies: chat completions over real HTTP, by a function.

Never holds a model; the function gets the request as the server saw it and says the reply.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.wire.strict import dumps, parse

Compute = Callable[[JsonObject], "str | JsonObject"]
"""From the request's JSON to the reply: a text, or the whole assistant message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What goes wrong with one request: a status, a body that is sent as it is, or silence."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    stall: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as it came; header names are lower case."""

    path: str
    headers: Mapping[str, str]
    body: JsonObject


class OpenAIServer:
    """Serves on a free port of the loopback interface between `async with` and its end.

    `troubles` are used up first, one per request. `usage` None leaves usage out.
    """

    def __init__(self, compute: Compute, *, usage: JsonObject | None = None) -> None:
        self._compute = compute
        self._usage = usage
        self._server: asyncio.Server | None = None
        self._served: set[asyncio.Task[None]] = set()
        self.troubles: list[Trouble] = []
        self.seen: list[Seen] = []
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
            self.seen.append(await _read(reader))
            trouble = self.troubles.pop(0) if self.troubles else Trouble()
            if trouble.stall:
                await asyncio.Event().wait()
            body = trouble.body
            if body is None:
                body = self._completion(self.seen[-1].body) if trouble.status == 200 else b"{}"
            writer.write(_head(trouble, len(body)) + body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the client gave up
        finally:
            writer.close()

    def _completion(self, request: JsonObject) -> bytes:
        said = self._compute(request)
        message: JsonObject = {"content": said} if isinstance(said, str) else said
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        reply: dict[str, JsonValue] = {
            "id": f"chatcmpl-{len(self.seen)}",
            "object": "chat.completion",
            "model": request.get("model", ""),
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", **message},
                    "finish_reason": finish,
                }
            ],
        }
        if self._usage is not None:
            reply["usage"] = self._usage
        return dumps(reply)


async def _read(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(path=first.split(" ")[1], headers=headers, body=parse(body))


def _head(trouble: Trouble, size: int) -> bytes:
    lines = [f"HTTP/1.1 {trouble.status} X", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in trouble.headers.items()]
    lines += [f"Content-Length: {size}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")
