"""uvicorn's HTTP protocol with bounds: of a request's head, and of a client that does not read.

uvicorn waits for ever for a head that comes byte by byte, keeps one of any size, takes what follows
a chunked body for headers too, and holds a reply until it is read. Nothing else is changed here but
the time it takes: what comes is never upgraded to another protocol, and nothing is logged.
"""

import asyncio
import socket
from collections import deque
from functools import lru_cache
from typing import Any, ClassVar, Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thoughtgate.surface.bell import Bell
from thoughtgate.surface.http_cycle import Cycle, Flow
from thoughtgate.surface.http_io import Receive, Refusal, Scope, Send, refuse
from thoughtgate.wire import codes

_NONE_AHEAD: Final[deque[Any]] = deque()
"""What is pipelined on nearly every connection; never changed."""


class TimedHttpProtocol(HttpToolsProtocol):
    """Closes a connection whose head is not whole in bounds; give it to uvicorn as `http`.

    An idle connection holds nothing of its last request.
    """

    __slots__ = ("_idle_since", "_in_head", "_timer", "_waiting")

    head_timeout: ClassVar[float] = 10.0
    """Seconds from the connection, or from the first byte of a later head, to its end."""

    head_bytes: ClassVar[int] = 65_536
    """Bytes of a head that is not whole, beyond what came with the end of an earlier request."""

    unread_ms: ClassVar[int] = 120_000
    """Milliseconds in which a client must take some of what was sent, where the system can tell."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = True
        self._waiting = 0
        self._idle_since = 0.0
        self.pipeline = _NONE_AHEAD

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Start the clock: a connection is opened to send something.

        One beyond uvicorn's `limit_concurrency` is answered once, that there is no room.
        """
        super().connection_made(transport)
        self.flow = Flow(transport)
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency:
            self.app = full
        line = transport.get_extra_info("socket")
        if hasattr(socket, "TCP_USER_TIMEOUT") and line.family != socket.AF_UNIX:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self.unread_ms)
        self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks; uvicorn leaves one running when the client broke off."""
        self._stop()
        super().connection_lost(exc)
        super()._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        """Take bytes; only a head that is still unfinished after them needs the clock."""
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        if self._timer is None:
            self._start()
            return
        self._waiting += len(data)
        if self._waiting > self.head_bytes:
            self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        """Note that a head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a trailer, which no check has seen, is dropped."""
        if not self._in_head:
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Stop the clock, since from here on the application minds the time, and let it begin."""
        self._in_head = False
        self._stop()
        self.headers = []  # the scope has them
        parser, scope = self.parser, self.scope
        version = parser.get_http_version()
        scope["http_version"] = version
        scope["method"] = parser.get_method().decode("ascii")
        scope["path"], scope["raw_path"], scope["query_string"] = _place(self.url)
        before: Any = self.cycle  # None at first
        self.cycle = Cycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=_bell(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:  # it was sent before its turn
            self.flow.pause_reading()
            self.pipeline = self.pipeline or deque()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        """Take a part of the body; reading pauses while the application does not take it."""
        cycle: Any = self.cycle  # None when the reply came first
        if cycle is None or cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """Note that the body is whole; mostly before the application has begun."""
        cycle: Any = self.cycle  # None when the reply came first
        if cycle is None:
            return
        cycle.scope["state"]["whole"] = True
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()

    def on_response_complete(self) -> None:
        """Go on with what was pipelined; else forget the request that is over."""
        nothing: Any = None
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
            else:
                self._idle_since = self.loop.time()
                self._close_when_idle()
        if self.cycle.response_complete:
            self.cycle = nothing
            if not self._in_head:  # else the scope is the next request's
                self.scope = nothing

    def _close_when_idle(self) -> None:
        """See to it that somebody looks when the connection has been idle for long."""
        if self.timeout_keep_alive_task is None:
            due = self._idle_since + self.timeout_keep_alive
            self.timeout_keep_alive_task = self.loop.call_at(due, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection unless it was used since; one that is in use is looked at later."""
        self.timeout_keep_alive_task = None
        cycle: Any = self.cycle  # None between two requests
        if cycle is not None or self._timer is not None:
            return
        if self.loop.time() < self._idle_since + self.timeout_keep_alive:
            self._close_when_idle()
        else:
            self.transport.close()

    def _unset_keepalive_if_required(self) -> None:
        """Let the clock run on while requests come: it would be set anew for each of them."""

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the application answers, and uvicorn advises to install a library."""

    def _start(self) -> None:
        self._waiting = 0
        self._timer = self.loop.call_later(self.head_timeout, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _bell() -> Any:
    """Return what uvicorn's cycle uses of an event."""
    return Bell()


async def full(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse whatever is asked: an ASGI application for one client too many."""
    message = "too many clients are connected; try again in a moment"
    later = ((b"retry-after", b"1"),)
    await refuse(send, Refusal(503, message=message, code=codes.INTERNAL_ERROR, headers=later))


@lru_cache(maxsize=32)
def _place(url: bytes) -> tuple[str, bytes, bytes]:
    """Return the path of a URL, decoded and as it came, and its query."""
    parts = httptools.parse_url(url)
    path = parts.path.decode("ascii")
    return unquote(path) if "%" in path else path, parts.path, parts.query or b""
