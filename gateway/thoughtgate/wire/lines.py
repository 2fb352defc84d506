"""Newline-delimited messages, as stdio carries them. Never decodes a message.

The cap is on the message, however its bytes arrive: a longer one is an error, not a crash.
"""

from dataclasses import dataclass
from typing import Final

from thoughtgate.core.errors import Malformed

_HEAD: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLong:
    """A line that was longer than the cap and is gone; `head` is how it began."""

    head: bytes


class LineSplitter:
    """Cuts a byte stream into lines; keeps at most one unfinished line of `cap` bytes."""

    def __init__(self, *, cap: int) -> None:
        self._cap = cap
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, without line ends; blank lines are left out.

        Raises:
            Malformed: A line is longer than the cap; the stream cannot be read on.
        """
        first, *rest = data.split(b"\n")
        self._keep(first)
        lines: list[bytes] = []
        for part in rest:
            lines.append(b"".join(self._parts))
            self._parts, self._size = [], 0
            self._keep(part)
        return [stripped for line in lines if (stripped := line.strip(b" \t\r"))]

    def rest(self) -> bytes:
        """Take what stands behind the last line end, once nothing comes any more."""
        line = b"".join(self._parts)
        self._parts, self._size = [], 0
        return line.strip(b" \t\r")

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._cap:
            raise Malformed(message=f"a line is longer than {self._cap} bytes")
        if part:
            self._parts.append(part)


class SkippingSplitter:
    """Cuts a byte stream into lines and reads past one that is too long.

    Keeps at most `cap` bytes of an unfinished line, however long it becomes.
    """

    def __init__(self, *, cap: int) -> None:
        self._cap = cap
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Return the lines that `data` completes, without line ends; blank lines are left out."""
        first, *rest = data.split(b"\n")
        self._keep(first)
        lines: list[bytes | TooLong] = []
        for part in rest:
            line = b"".join(self._parts)
            if self._size > self._cap:
                lines.append(TooLong(head=line))
            elif stripped := line.strip(b" \t\r"):
                lines.append(stripped)
            self._parts, self._size = [], 0
            self._keep(part)
        return lines

    def _keep(self, part: bytes) -> None:
        within, self._size = self._size <= self._cap, self._size + len(part)
        if self._size <= self._cap:
            self._parts.append(part)
        elif within:
            self._parts = [b"".join([*self._parts, part])[: min(_HEAD, self._cap)]]
