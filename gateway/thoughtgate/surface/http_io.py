"""HTTP as the MCP face needs it: one request read within limits, one reply, one error.

Never knows JSON-RPC methods or eras.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from thoughtgate.core.calls import Principal
from thoughtgate.core.traces import SpanContext, parse_traceparent
from thoughtgate.core.workers import ALONE, Crew
from thoughtgate.upstream.limit import Limit
from thoughtgate.wire import codes
from thoughtgate.wire.messages import encode_failure

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
Headers: TypeAlias = Mapping[bytes, bytes]
"""Lower-case names; a name that came twice is found by `repeated`."""

JSON: Final = (b"content-type", b"application/json")

SINGLE: Final = frozenset({
    b"host", b"origin", b"content-type", b"mcp-session-id", b"mcp-protocol-version",
    b"mcp-method", b"mcp-name",
})  # fmt: skip
"""Headers that decide something: two readers of a repeated one could decide differently."""


class Refusal(Exception):
    """An HTTP error that ends a request before any method is known."""

    def __init__(
        self,
        status: int,
        *,
        message: str,
        code: int = codes.INVALID_REQUEST,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = headers


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request at an MCP endpoint, its body not read yet.

    `crew` are the workers that it may be sent on to: nobody for one that came from another worker.
    `whole` says that all of the body is there, so that nobody waits for it.
    """

    method: str
    headers: MutableMapping[bytes, bytes]
    domain: str
    principal: Principal
    receive: Receive
    send: Send
    crew: Crew = ALONE
    whole: bool = False

    def header(self, name: bytes) -> str | None:
        """Return a header's value without outer white space."""
        value = self.headers.get(name)
        return None if value is None else value.strip(b" \t").decode("latin-1")

    def forget_head(self) -> None:
        """Drop the headers: a stream that lasts needs none, and may be one of thousands."""
        self.headers.clear()

    def accepts(self, kind: str) -> bool:
        """Tell whether the client takes JSON or event streams; without Accept it takes both."""
        accept = self.headers.get(b"accept")
        return accept is None or kind in _accepted(accept)

    def trace(self) -> SpanContext | None:
        """Return the span that the `traceparent` header names."""
        parent = self.headers.get(b"traceparent")
        if parent is None:
            return None
        state = self.headers.get(b"tracestate", b"")
        return parse_traceparent(parent.decode("latin-1"), state.decode("latin-1"))


@lru_cache(maxsize=256)
def _accepted(accept: bytes) -> frozenset[str]:
    """Return which of our two media types an Accept header covers."""
    ranges = {part.partition(b";")[0].strip().lower() for part in accept.split(b",")}
    return frozenset(
        kind
        for kind in ("application/json", "text/event-stream")
        if not ranges.isdisjoint({kind.encode(), b"*/*", kind.partition("/")[0].encode() + b"/*"})
    )


def repeated(pairs: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return a deciding header that came more than once, None when all came once."""
    seen: set[bytes] = set()
    for name, _ in pairs:
        if name in seen and (name in SINGLE or name.startswith(b"mcp-param-")):
            return name.decode("latin-1")
        seen.add(name)
    return None


def check_post(request: HttpRequest) -> None:
    """Hold a POST against what it must say of its body and its reply.

    Raises:
        Refusal: 415 for another content type than JSON, 406 when JSON is not accepted.
    """
    kind = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, message="the content type must be application/json")
    if not request.accepts("application/json"):
        raise Refusal(406, message="accept application/json and text/event-stream")


async def read_body(request: HttpRequest, *, cap: int, seconds: float) -> bytes:
    """Return the whole body.

    Raises:
        Refusal: 413 as soon as the body is known to be larger than `cap` bytes, 408 when it is
            not there after `seconds`, 400 when the client left before its end, 503 when the
            gateway ended before.
    """
    length = request.headers.get(b"content-length", b"0")
    if length.isdigit() and (len(length) > 12 or int(length) > cap):
        raise _too_large(cap)
    if request.whole:
        body: bytes = (await request.receive()).get("body", b"")
        if len(body) > cap:
            raise _too_large(cap)
        return body
    parts: list[bytes] = []
    size, more = 0, True
    try:
        with Limit(asyncio.get_running_loop().time() + seconds):
            while more:
                event = await request.receive()
                if event["type"] == "http.disconnect":
                    raise Refusal(400, message="the body ended early")
                part = event.get("body", b"")
                more = event.get("more_body", False)
                size += len(part)
                if size > cap:
                    raise _too_large(cap)
                parts.append(part)
    except TimeoutError:
        raise Refusal(408, message=f"the body was not there within {seconds:g} seconds") from None
    except asyncio.CancelledError:  # only a server that stops does this
        raise Refusal(503, message="the gateway is stopping, and read no further") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def respond(
    send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = (JSON,)
) -> None:
    """Send a whole reply."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def refuse(send: Send, refusal: Refusal) -> None:
    """Send an error; the connection is closed, since the body may not have been read."""
    body = encode_failure(None, refusal.code, refusal.message)
    headers = (JSON, (b"connection", b"close"), *refusal.headers)
    await respond(send, refusal.status, body, headers)


def not_allowed(allow: bytes) -> Refusal:
    """Return the refusal of an HTTP method."""
    return Refusal(405, message="method not allowed here", headers=((b"allow", allow),))


def _too_large(cap: int) -> Refusal:
    return Refusal(413, message=f"the body is larger than {cap} bytes")
