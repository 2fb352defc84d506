"""One HTTP/1.1 connection: bytes out in one write, replies in through httptools.

Never holds more than a window of a body: reading pauses until the reader has taken what came.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httptools

from thoughtgate.core.errors import (
    UpstreamError,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamUnreachable,
)
from thoughtgate.upstream.ports import HttpReply

WINDOW = 256 * 1024
"""Bytes of a body that wait unread before reading pauses."""

MAX_HEAD = 64 * 1024
"""Bytes of the largest head of a reply."""

LINGER = 1.0
"""Seconds that the rest of a released body may take."""

_SHORT_LENGTH: Final = 4
"""Digits in the length of a body that is waited for together with its head."""

_BODILESS = frozenset({204, 304})

_KEEPALIVE: Final = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds of silence, seconds between two questions, and how many may stay without an answer."""

_UNTAKEN_MS: Final = 30_000
"""Milliseconds that what we sent may stay without an acknowledgement."""


class Connection(asyncio.Protocol):
    """A transport with at most one exchange at a time.

    `finished` is called when an exchange has ended cleanly and when the connection is gone;
    `gone` is done after the latter.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, finished: Callable[["Connection"], None]
    ) -> None:
        self.gone: asyncio.Future[None] = loop.create_future()
        self.attached = False
        self._loop = loop
        self._finished = finished
        self._transport: asyncio.Transport | None = None
        self._exchange: _Exchange | None = None
        self._idle_since = 0.0

    def reusable(self, idle: float) -> bool:
        """Tell whether the connection is open and was idle for less than `idle` seconds."""
        return (
            self._transport is not None
            and not self._transport.is_closing()
            and self._loop.time() - self._idle_since < idle
        )

    async def exchange(self, data: bytes) -> HttpReply:
        """Write one request and return the head of its reply.

        Raises:
            UpstreamUnreachable: The connection is closed; nothing was written.
            UpstreamLost: The connection broke first.
            UpstreamGarbled: The reply is not HTTP.
        """
        if self._transport is None or self._transport.is_closing():
            raise UpstreamUnreachable(message="the server closed the connection at once")
        exchange = _Exchange(self._loop, self)
        self._exchange = exchange
        self._transport.write(data)
        try:
            await exchange.head
        except (UpstreamError, asyncio.CancelledError):
            exchange.close()  # not the connection itself: it may be somebody else's by now
            raise
        return exchange.reply()

    def abort(self) -> None:
        """Drop the connection; nothing more is sent or read."""
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """Stop reading until `resume`."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport; the event loop calls it."""
        self.attached = True
        _watch(transport.get_extra_info("socket"))
        self._transport = transport  # type: ignore[assignment]  # create_connection makes a Transport

    def data_received(self, data: bytes) -> None:
        """Parse what came; the event loop calls it."""
        exchange = self._exchange
        if exchange is None:
            self.abort()  # nobody asked: what follows cannot be trusted
            return
        try:
            exchange.feed(data)
        except UpstreamGarbled as error:
            self._break(error)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._break(UpstreamGarbled(message=f"the answer is not HTTP/1.1{_perhaps(data)}"))
        if exchange.complete:
            self._complete(exchange)

    def eof_received(self) -> None:
        """Close when the server does; a body without a length ends with the connection."""
        exchange = self._exchange
        if exchange is not None and exchange.ends_at_close:
            exchange.on_message_complete()
            self._complete(exchange)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what still waits; the event loop calls it."""
        if not self.gone.done():
            self.gone.set_result(None)
        self._break(UpstreamLost(message=_lost_message(self._exchange)))
        self._finished(self)

    def _complete(self, exchange: "_Exchange") -> None:
        """Part from a finished exchange: what it has read is its own."""
        self._exchange = None
        exchange.detach()
        if not exchange.keep:
            self.abort()
            return
        self.resume()  # a body that ended while reading was paused would leave it paused for good
        self._idle_since = self._loop.time()
        self._finished(self)

    def _break(self, error: UpstreamError) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.fail(error)
        self.abort()


async def at_socket(place: Path) -> Connection:
    """Return a new connection, for one exchange, to what listens at a Unix socket.

    Raises:
        OSError: Nobody does.
    """
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_unix_connection(
        lambda: Connection(loop, lambda _: None), str(place)
    )
    return connection


class _Exchange:
    """One request's reply: what httptools calls back, and the body's reader."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: Connection) -> None:
        self.started = False
        self.complete = False
        self.keep = False
        self._loop = loop
        self.head: asyncio.Future[None] = loop.create_future()
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._connection: Connection | None = connection
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._interim = False
        self._status = 0
        self._error: UpstreamError | None = None
        self._parts: deque[bytes] | None = None
        self._waiting_bytes = 0
        self._paused = False
        self._released = False
        self._linger: asyncio.TimerHandle | None = None
        self._reader: asyncio.Future[None] | None = None

    def reply(self) -> HttpReply:
        """Return the head of the reply, which has come."""
        return HttpReply(status=self._status, headers=self._headers, body=self)

    @property
    def ends_at_close(self) -> bool:
        """Tell whether the body has no length of its own."""
        return (
            self.started
            and not self.complete
            and "content-length" not in self._headers
            and "chunked" not in self._headers.get("transfer-encoding", "").lower()
            and self._status not in _BODILESS
        )

    def feed(self, data: bytes) -> None:
        """Parse what came; the head is bounded before it is parsed on."""
        if self._parser is None:
            return
        if not self.started:
            if self._head_bytes > MAX_HEAD:
                raise UpstreamGarbled(message=f"the answer's head is over {MAX_HEAD} bytes")
            self._head_bytes += len(data)
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        """Start a message; one after the reply is a server speaking out of turn."""
        if self.complete:
            self.keep = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header; repeated ones are joined, trailers ignored."""
        if not self.started:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
            known = self._headers.get(key)
            self._headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        """Hand over the head of the reply, or keep it until a short body is whole.

        So whoever waits is woken once, where servers send the two apart. Heads like `100 Continue`
        are skipped.
        """
        if self.complete or self._parser is None:
            return
        self._status = self._parser.get_status_code()
        if self._status < 200:
            self._interim = True
            self._headers = {}
            return
        self.started = True
        length = self._headers.get("content-length", "")
        if not (length.isdigit() and len(length) <= _SHORT_LENGTH):
            self._hand_over()

    def on_body(self, data: bytes) -> None:
        """Keep a part of the body for its reader."""
        if self.complete:
            return
        if self._parts is None:
            self._parts = deque()
        self._parts.append(data)
        self._waiting_bytes += len(data)
        self._wake()
        if self._waiting_bytes > WINDOW and not self._paused and self._connection is not None:
            if self._released:
                self._connection.abort()
                return
            self._paused = True
            self._connection.pause()

    def on_message_complete(self) -> None:
        """End the body."""
        if self._interim:
            self._interim = False
        elif not self.complete:
            self.complete = True
            # only here: the parser forgets the reply's flags when this returns
            self.keep = self._parser is not None and bool(self._parser.should_keep_alive())
            self._hand_over()
            self._wake()

    async def chunk(self) -> bytes:
        """Return the next bytes, `b""` at the end; see `Body.chunk`."""
        while True:
            if self._parts is not None:
                part = self._parts.popleft()
                if not self._parts:
                    self._parts = None  # an empty deque is large, and many streams are silent
                self._waiting_bytes -= len(part)
                if self._paused and self._waiting_bytes <= WINDOW // 2:
                    self._paused = False
                    if self._connection is not None:
                        self._connection.resume()
                return part
            if self._error is not None:
                raise self._error
            if self.complete:
                return b""
            self._reader = self._loop.create_future()
            await self._reader

    def release(self) -> None:
        """Need no more; wait a moment for the end of the body, to keep the connection."""
        self._parts = None
        if self._connection is not None and not self._released:
            self._released = True
            self._waiting_bytes = 0
            self._linger = self._loop.call_later(LINGER, self._drop)
            if self._paused:
                self._paused = False
                self._connection.resume()

    def close(self) -> None:
        """Drop the connection unless the body is complete or released."""
        if not self._released:
            self._drop()

    def _drop(self) -> None:
        self._parts = None
        if self._connection is not None:
            self._connection.abort()

    def fail(self, error: UpstreamError) -> None:
        """End the exchange with an error, unless it is complete."""
        self.detach()
        if self.complete or self._error is not None:
            return
        self._error = error
        if self.started:
            self._hand_over()  # the reader of the body is told
        elif not self.head.done():
            self.head.set_exception(error)
            self.head.exception()  # a caller that has gone does not fetch it
        self._wake()

    def detach(self) -> None:
        """Let go of the connection and the parser: nothing more will come."""
        self._connection = None
        self._parser = None
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None

    def _hand_over(self) -> None:
        if not self.head.done():
            self.head.set_result(None)  # not the reply, which would close a cycle

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


def _watch(line: Any) -> None:  # event loops have sockets of their own kinds
    """Let the kernel break the connection when the other host is gone without a word."""
    if line is None or line.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in {**_KEEPALIVE, "TCP_USER_TIMEOUT": _UNTAKEN_MS}.items():
        if hasattr(socket, name):  # systems differ
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _lost_message(exchange: _Exchange | None) -> str:
    if exchange is not None and exchange.started:
        return "the connection broke in the middle of the answer"
    return "the connection broke before an answer came"


def _perhaps(data: bytes) -> str:
    """Return what else the bytes may be, where they begin like the settings of HTTP/2."""
    if data[3:5] == b"\x04\x00" and data[5:9] == bytes(4):
        return "; perhaps a gRPC server, whose URL begins with grpc://"
    return ""
