"""uvicorn's HTTP protocol with a deadline for the request's head.

uvicorn waits for ever for a head that comes byte by byte; nothing else is changed here.
"""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class TimedHttpProtocol(HttpToolsProtocol):
    """Closes a connection whose head is not whole in time; give it to uvicorn as `http`."""

    head_timeout: ClassVar[float] = 10.0
    """Seconds from the connection, or from the first byte of a later head, to its end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Start the clock: a connection is opened to send something."""
        super().connection_made(transport)
        self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; only a head that is still unfinished after them needs the clock."""
        super().data_received(data)
        if self._in_head and self._timer is None and not self.transport.is_closing():
            self._start()

    def on_message_begin(self) -> None:
        """Note that a head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop the clock: from here on the application minds the time."""
        self._in_head = False
        self._stop()
        super().on_headers_complete()

    def _start(self) -> None:
        self._timer = self.loop.call_later(self.head_timeout, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
