"""One request and its reply on a connection of uvicorn's: a head leaves together with its body.

Never holds a stream back: only a head that tells the length of its body waits for it.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from thoughtgate.surface.bell import Bell

_COPIED: Final = 65_536
"""Bytes of a body up to which one copy beside its head costs less than a second write."""


class BadReply(Exception):
    """What an application sends is no reply."""

    def __init__(self, *, message: str) -> None:
        super().__init__(message)


class Flow(FlowControl):
    """uvicorn's, without a queue of those who wait to write: that is one at most."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.write_paused = False
        self._is_writable_event: Any = Bell()  # it has the methods that are used
        self._is_writable_event.set()


class Cycle(RequestResponseCycle):
    """uvicorn's, which writes head and body apart; the promises to the application are the same."""

    _head: bytes = b""
    """What waits for the first part of the body."""

    async def send(self, message: Any) -> None:
        """Send a part of the reply, when the client has room for it."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.transport.is_closing():  # uvloop refuses to write then
            self.disconnected = True
        if self.disconnected:
            return
        if not self.response_started:
            self._start(message)
        elif self.response_complete or message["type"] != "http.response.body":
            raise BadReply(message=f"{message['type']} is no next part of this reply")
        else:
            self._put(message.get("body", b""), more=message.get("more_body", False))

    def _start(self, message: Any) -> None:
        if message["type"] != "http.response.start":
            raise BadReply(message=f"{message['type']} cannot begin a reply")
        head = self._written(message["status"], message.get("headers", ()))
        self.response_started = True
        self.waiting_for_100_continue = False
        if self.chunked_encoding:
            self.transport.write(head)
        else:
            self._head = head

    def _written(self, status: int, headers: Any) -> bytes:
        """Return the head of a reply; its headers have lower-case names."""
        lines, length = [STATUS_LINE[status]], None
        for name, value in (*self.default_headers, *headers):
            if name == b"content-length":
                length = int(value)
            elif name == b"connection" and value == b"close":
                self.keep_alive = False
                continue
            lines.append(b"%b: %b\r\n" % (name, value))
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        if length is not None:
            self.expected_content_length = length
        bodiless = status in {204, 304} or self.scope["method"] == "HEAD"
        self.chunked_encoding = length is None and not bodiless
        if self.chunked_encoding:
            lines.append(b"transfer-encoding: chunked\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or 0 in head:
            raise BadReply(message="a header of the reply holds a line end")
        return head + b"\r\n"

    def _put(self, body: bytes, *, more: bool) -> None:
        if self.scope["method"] == "HEAD":
            body, self.expected_content_length = b"", 0
        if self.chunked_encoding:
            parts = [b"%x\r\n" % len(body), body, b"\r\n"] if body else []
            if not more:
                parts.append(b"0\r\n\r\n")
        else:
            self.expected_content_length -= len(body)
            parts = [self._head, body]
            self._head = b""
        if self.expected_content_length < 0 or (self.expected_content_length and not more):
            raise BadReply(message="the body has another length than the head says")
        if len(body) > _COPIED:
            self.transport.writelines(parts)
        else:
            self.transport.write(b"".join(parts))
        if not more:
            self._end()

    def _end(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
