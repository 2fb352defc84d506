"""A Unix socket between two workers that carries whole frames, both ways.

Never keeps what it cannot send: whoever sends something large waits for room first.
"""

import asyncio
from collections.abc import Callable
from typing import cast

_LENGTH = 4
_UNREAD = 8 * 1024 * 1024
"""Bytes that wait for an end which does not read; beyond, there is no room but for who waits."""

LONGEST = 1 << 30
"""Bytes of the longest frame: many times the largest result, yet an end to what is kept."""


class FramePipe(asyncio.Protocol):
    """One end. `on_open` runs once it can send; `ended` is done when the socket is closed."""

    def __init__(
        self, on_frame: Callable[[bytes], None], on_open: Callable[[], None] | None = None
    ) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._on_frame = on_frame
        self._on_open = on_open
        self._transport: asyncio.Transport | None = None
        self._kept = bytearray()
        self._over = False
        self._room = asyncio.Event()
        self._room.set()

    async def room(self) -> None:
        """Return when the other end takes what it is sent, or is gone."""
        await self._room.wait()

    @property
    def full(self) -> bool:
        """Tell whether the other end has long read nothing: what nobody waits for is left out."""
        return self._transport is not None and self._transport.get_write_buffer_size() > _UNREAD

    def send(self, frame: bytes) -> bool:
        """Send a frame; False when it was not sent: the other end is gone."""
        if self._transport is None or self._transport.is_closing() or len(frame) > LONGEST:
            return False
        self._transport.writelines((len(frame).to_bytes(_LENGTH, "big"), frame))
        return True

    def close(self) -> None:
        """Close the socket once what was sent is gone; one that is not open yet never opens."""
        self._over = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the socket at once."""
        self._over = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport; the event loop calls it."""
        self._transport = cast("asyncio.Transport", transport)
        if self._over:
            transport.close()
        elif self._on_open is not None:
            self._on_open()

    def data_received(self, data: bytes) -> None:
        """Hand over each frame that is complete; the event loop calls it."""
        kept = self._kept
        kept += data
        at = 0
        while len(kept) - at >= _LENGTH:
            begin = at + _LENGTH
            end = begin + int.from_bytes(kept[at:begin], "big")
            if end - begin > LONGEST:
                self.abort()
                return
            if len(kept) < end:
                break
            at = end
            self._on_frame(bytes(memoryview(kept)[begin:end]))
        if at:
            del kept[:at]

    def pause_writing(self) -> None:
        """Hold back: the other end does not read."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Let frames through again."""
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Learn that it is over; the event loop calls it."""
        self._transport = None
        self._room.set()
        self._kept.clear()
        if not self.ended.done():
            self.ended.set_result(None)
