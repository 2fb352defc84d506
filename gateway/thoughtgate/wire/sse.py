"""Server-sent events (WHATWG HTML, "Server-sent events"): a parser of chunks and an encoder.

Never decodes the data; an event without data (a priming event, a keepalive) is still reported
when it has an id, because the id is what a reconnect sends.
"""

from dataclasses import dataclass

from thoughtgate.core.errors import Malformed

KEEPALIVE = b": keepalive\n\n"
"""A comment that keeps proxies from closing a silent stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event; `event` is `message` unless named; `id` and `retry` None when not given."""

    data: bytes
    event: str = "message"
    id: str | None = None
    retry: int | None = None


class EventParser:
    """Turns chunks, cut anywhere, into events; `cap` bounds one event's bytes."""

    def __init__(self, *, cap: int) -> None:
        self._cap = cap
        self._parts: list[bytes] = []
        self._skip_newline = False
        self._started = self._comment = False
        self._data: list[bytes] = []
        self._event = ""
        self._id: str | None = None
        self._retry: int | None = None
        self._size = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that `chunk` completes.

        Raises:
            Malformed: An event is larger than the cap.
        """
        if self._skip_newline and chunk:  # the LF of a CRLF that a chunk boundary split
            self._skip_newline = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._skip_newline = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *rest = chunk.split(b"\n")
        self._keep(first)
        events: list[Event] = []
        for part in rest:
            if self._comment:
                self._comment, self._started = False, True
            else:
                line = b"".join(self._parts)
                self._parts = []
                self._line(line, events)
            self._keep(part)
        return events

    def _keep(self, part: bytes) -> None:
        """Keep a part of the line that is not whole; nothing of a comment, however long it is."""
        if self._comment or (part.startswith(b":") and not self._parts):
            self._comment = True
            return
        self._size += len(part)
        if self._size > self._cap:
            raise Malformed(message=f"an event is larger than {self._cap} bytes")
        if part:
            self._parts.append(part)

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            if self._data or self._id is not None or self._retry is not None:
                events.append(
                    Event(
                        data=b"\n".join(self._data),
                        event=self._event or "message",
                        id=self._id,
                        retry=self._retry,
                    )
                )
            self._reset()
            return
        if line.startswith(b":"):  # the comment behind a byte order mark
            self._size -= len(line)
            return
        if line.startswith(b"data:"):  # the one that is long: one copy
            self._data.append(line[6 if line.startswith(b" ", 5) else 5 :])
            return
        name, _, value = line.partition(b":")
        self._field(name, value.removeprefix(b" "))

    def _field(self, name: bytes, value: bytes) -> None:
        if name == b"data":  # without a colon
            self._data.append(b"")
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self._retry = int(value)

    def _reset(self) -> None:
        self._data = []
        self._event = ""
        self._id = None
        self._retry = None
        self._size = 0


def encode_event(data: bytes, *, id: str | None = None) -> bytes:
    """Return one `message` event; JSON that was made compact has no line ends inside."""
    if b"\n" in data or b"\r" in data:  # white space between tokens of a relayed result
        data = b"\ndata: ".join(data.splitlines())
    if id is None:
        return b"event: message\ndata: %b\n\n" % data
    return b"event: message\nid: %b\ndata: %b\n\n" % (id.encode(), data)


def encode_priming(id: str, retry_ms: int) -> bytes:
    """Return an event without data: from here on a client may ask for what it missed."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (id.encode(), retry_ms)
