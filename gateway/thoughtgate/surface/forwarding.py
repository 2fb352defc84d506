"""Requests that belong to another worker's session or parked call: sent on to it, whole.

Never sends one a second time: when the other worker is lost after it, the client is told.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from thoughtgate.core.domains import DEFAULT_DOMAIN
from thoughtgate.core.errors import UpstreamError, UpstreamUnreachable
from thoughtgate.core.json import JsonValue
from thoughtgate.surface.holders import holder, unmarked
from thoughtgate.surface.http_io import HttpRequest, Receive, Refusal
from thoughtgate.upstream.http_connection import Connection, at_socket
from thoughtgate.upstream.ports import HttpReply
from thoughtgate.wire import codes
from thoughtgate.wire.handshake import SESSION_HEADER
from thoughtgate.wire.messages import Message, Request

PATIENCE: Final = 5.0
"""Seconds that a worker which is just being started again is waited for."""

_PAUSE: Final = 0.05
_SESSION: Final = SESSION_HEADER.encode()
_HOP: Final = frozenset({
    b"connection", b"content-length", b"expect", b"keep-alive", b"proxy-connection", b"te",
    b"trailer", b"transfer-encoding", b"upgrade",
})  # fmt: skip
"""Headers that belong to one connection."""


def holder_of_session(request: HttpRequest) -> int | None:
    """Return the worker that holds the session of a request, None when this one answers it."""
    if request.crew.count == 1:
        return None
    return _elsewhere(request, request.header(_SESSION))


def holder_of_call(request: HttpRequest, message: Message) -> int | None:
    """Return the worker in which a retried call is parked, None when this one answers it.

    A state without a mark is a server's own, which every worker can pass on.
    """
    if request.crew.count == 1 or not isinstance(message, Request):
        return None
    state = message.params.get("requestState")
    marked = type(state) is str and unmarked(state)[0] is not None
    return _elsewhere(request, state) if marked else None


def _elsewhere(request: HttpRequest, token: JsonValue) -> int | None:
    if type(token) is not str:
        return None
    found = holder(token, request.crew.count)
    return None if found == request.crew.index else found


async def forward(
    request: HttpRequest, worker: int, body: bytes = b"", *, patience: float = PATIENCE
) -> None:
    """Have another worker answer a request, and give its reply to the client as it comes.

    A client that leaves, leaves the other worker too.

    Raises:
        Refusal: That worker is not there, or was lost before it answered.
    """
    connection = await _connected(request.crew.socket(worker), patience)
    watching = asyncio.create_task(_watch(request.receive, connection))
    begun = False
    try:
        reply = await connection.exchange(_head(request, len(body)) + body)
        begun = True
        await _relay(request, reply)
    except UpstreamError as error:
        if watching.done() or begun:
            return  # to nobody, or half: the server closes the connection for that
        raise _lost(sent=not isinstance(error, UpstreamUnreachable)) from None
    finally:
        watching.cancel()
        connection.abort()
        with suppress(asyncio.CancelledError):
            await watching


async def _connected(socket: Path, patience: float) -> Connection:
    """Return a connection to the worker that listens there.

    Raises:
        Refusal: There is none within the time.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience
    while True:
        try:
            return await at_socket(socket)
        except OSError:
            if loop.time() >= deadline:
                raise _lost(sent=False) from None
            await asyncio.sleep(_PAUSE)


async def _relay(request: HttpRequest, reply: HttpReply) -> None:
    headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in reply.headers.items()
        if name == "content-length" or name.encode("latin-1") not in _HOP
    ]
    await request.send({"type": "http.response.start", "status": reply.status, "headers": headers})
    while chunk := await reply.body.chunk():
        await request.send({"type": "http.response.body", "body": chunk, "more_body": True})
    await request.send({"type": "http.response.body", "body": b"", "more_body": False})


async def _watch(receive: Receive, connection: Connection) -> None:
    """Hang up when the client does."""
    event: Any = {"type": ""}
    while event["type"] != "http.disconnect":
        event = await receive()
    connection.abort()


def _head(request: HttpRequest, length: int) -> bytes:
    path = "/mcp" if request.domain == DEFAULT_DOMAIN else f"/mcp/{quote(request.domain, safe='')}"
    lines = [f"{request.method} {path} HTTP/1.1".encode("latin-1")]
    lines += [name + b": " + value for name, value in request.headers.items() if name not in _HOP]
    lines += [b"content-length: %d" % length, b"connection: close", b"", b""]
    return b"\r\n".join(lines)


def _lost(*, sent: bool) -> Refusal:
    if sent:
        message = "the worker that held this was lost; what was asked may have been carried out"
        return Refusal(502, message=message, code=codes.INTERNAL_ERROR)
    message = "the worker that holds this is not there just now; try again soon"
    retry = ((b"retry-after", b"1"),)
    return Refusal(503, message=message, code=codes.INTERNAL_ERROR, headers=retry)
