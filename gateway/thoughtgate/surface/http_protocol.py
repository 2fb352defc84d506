"""uvicorn's HTTP protocol with bounds: of a request's head, and of a client that does not read.

uvicorn waits for ever for a head that comes byte by byte, keeps one of any size, takes what follows
a chunked body for headers too, and holds a reply until it is read; nothing else is changed here.
"""

import asyncio
import socket
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class TimedHttpProtocol(HttpToolsProtocol):
    """Closes a connection whose head is not whole in bounds; give it to uvicorn as `http`."""

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

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Start the clock: a connection is opened to send something."""
        super().connection_made(transport)
        line = transport.get_extra_info("socket")
        if hasattr(socket, "TCP_USER_TIMEOUT") and line.family != socket.AF_UNIX:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self.unread_ms)
        self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(exc)

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
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the clock: from here on the application minds the time."""
        self._in_head = False
        self._stop()
        super().on_headers_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the application answers, and uvicorn advises to install a library."""

    def _start(self) -> None:
        self._waiting = 0
        self._timer = self.loop.call_later(self.head_timeout, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
