"""What a fake server was asked and what it did, one JSON line each in a file that outlives it.

Never loses a line that was written before a crash of the process; nothing is synced to the disk.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from thoughtgate.core.json import JsonObject, JsonValue


class FaultLog:
    """A file that several processes, one after the other or at once, append to.

    `start` is how many had started before this one. The words: `started`, `came` (a call arrived),
    `ran` (its tool has its effect now), `struck` (a fault met it), `cancelled`.
    """

    def __init__(self, path: str = "") -> None:
        self._file = -1
        self.start = 0
        if path:
            self.start = sum(row["what"] == "started" for row in read_log(Path(path)))
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self.note("started")

    def note(self, what: str, **details: JsonValue) -> None:
        """Append one row, in one write."""
        if self._file >= 0:
            row = {"what": what, "pid": os.getpid(), "start": self.start, **details}
            os.write(self._file, json.dumps(row).encode() + b"\n")


def read_log(path: Path) -> Iterator[JsonObject]:
    """Return the rows that were written so far."""
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
