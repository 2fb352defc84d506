"""Sessions that their clients have ended, in a file that outlives the process.

Never holds an id, which would let its reader take the session up: only a digest and a date.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

_MOST: Final = 50_000
"""Rows that count, the newest; a file that has twice as many is cut."""

_SIZE: Final = 16
"""Bytes of a digest."""


class EndedSessions:
    """What was ended in the last `lifetime` seconds; without a file only what ends from now on.

    Several processes may append to one file; each knows what was in it when it started.
    """

    def __init__(self, file: Path | None, *, lifetime: float, clock: Callable[[], float]) -> None:
        self._file = file
        self._lifetime = lifetime
        self._clock = clock
        self._known = bytearray()  # one block: an object for each would keep apart what is freed
        self._rows = 0
        if file is not None:
            with suppress(OSError):
                rows = self._cut(file)
                self._known += b"".join(map(_read_digest, rows))

    def __contains__(self, session_id: str) -> bool:
        """Tell whether a session was ended."""
        return bool(self._known) and _holds(self._known, _digest(session_id))

    def add(self, session_id: str) -> None:
        """Remember that a session was ended, on disk too as far as there is room."""
        digest = _digest(session_id)
        self._known += digest
        del self._known[: max(len(self._known) - _MOST * _SIZE, 0)]
        if self._file is not None:
            with suppress(OSError):
                _append(self._file, f"{self._clock():.0f} {digest.hex()}\n")
                self._rows += 1
                if self._rows > 2 * _MOST:
                    self._cut(self._file)

    def _cut(self, file: Path) -> list[str]:
        """Return the rows that count, and leave no others in a file of too many."""
        rows = file.read_text(encoding="ascii", errors="replace").splitlines()
        since = self._clock() - self._lifetime
        young = [row for row in rows[-_MOST:] if _at(row) >= since]
        if len(rows) > _MOST:
            beside = file.with_suffix(f".{os.getpid()}")
            beside.unlink(missing_ok=True)
            _append(beside, "".join(f"{row}\n" for row in young))
            beside.replace(file)
        self._rows = len(young)
        return young


def _append(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)


def _digest(session_id: str) -> bytes:
    return sha256(session_id.encode()).digest()[:_SIZE]


def _read_digest(row: str) -> bytes:
    """Return a row's digest, nothing for what is none."""
    with suppress(ValueError):
        digest = bytes.fromhex(row.rpartition(" ")[2])
        return digest if len(digest) == _SIZE else b""
    return b""


def _holds(known: bytearray, digest: bytes) -> bool:
    """Tell whether a digest is among those that stand there one after the other."""
    at = known.find(digest)
    while at > 0 and at % _SIZE:
        at = known.find(digest, at + 1)
    return at >= 0


def _at(row: str) -> float:
    """Return a row's date; one that was torn is as old as can be."""
    date, _, digest = row.partition(" ")
    return float(date) if date.isdecimal() and len(digest) == 32 else 0.0
