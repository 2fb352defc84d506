"""From lines to entries: one error each, a traceback over several lines included.

Never keeps more than the entry that is still open.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from thoughtgate_servers.logs.formats import FORMATS
from thoughtgate_servers.logs.records import Record

_START = re.compile(r"\s*\+? ?(?:Exception Group )?Traceback \(most recent call last\):")
_CHAIN = re.compile(
    r"During handling of the above exception, another exception occurred:"
    r"|The above exception was the direct cause of the following exception:"
)
_EXCEPTION = re.compile(r"(?:  \| )?([^\W\d][\w.<>]*)(?:: (.*)|:?$)")
UNFINISHED = "(unfinished traceback)"
_ERROR = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One finished entry. `line` is where it starts; `record` is None for a bare traceback."""

    line: int
    kind: str
    rank: int
    type: str
    message: str
    when: datetime | None = None
    record: Record | None = None

    def time(self) -> datetime | None:
        """Return when it happened, as written; for a bare traceback when the last record did."""
        if self.record is None:
            return self.when
        return self.record.clock(self.record.when) if self.record.when else None


class Assembler:
    """Turns the lines of one file into entries.

    The counts are right when `entries` is exhausted: `kinds` is how many records of each format
    were seen, `unrecognised` how many lines belong to nothing known.
    """

    def __init__(self, written: datetime) -> None:
        self._written = written
        self._formats = list(FORMATS)
        self._open: _Open | None = None
        self._last: Record | None = None
        self.kinds: dict[str, int] = {}
        self.unrecognised = 0

    def entries(self, lines: Iterable[str]) -> Iterator[Entry | None]:
        """Yield each finished entry, and None for every line that finished none."""
        for number, line in enumerate(lines, 1):
            yield self._feed(number, line)
        if self._open is not None:
            yield self._open.close()
            self._open = None

    def _feed(self, number: int, line: str) -> Entry | None:
        if self._open is not None and self._open.takes(line):
            return None
        record = self._parse(line)
        if record is None and _START.match(line):
            return self._begin_traceback(number)
        if record is None:
            return self._stray(line)
        finished = self._open.close() if self._open else None
        self._open = _Open(number, record, None)
        self._last = record
        self.kinds[record.kind] = self.kinds.get(record.kind, 0) + 1
        if not record.open and finished is None:
            finished, self._open = self._open.close(), None
        return finished

    def _begin_traceback(self, number: int) -> Entry | None:
        """A traceback belongs to the Python error before it, else it is an error of its own.

        After a record that is no error it is an error too: mostly a crash that was written into
        the same file.
        """
        if self._open is not None and self._open.attach():
            return None
        finished = self._open.close() if self._open else None
        when = self._last.clock(self._last.when) if self._last and self._last.when else None
        self._open = _Open(number, None, when)
        self._open.attach()
        self.kinds["traceback"] = self.kinds.get("traceback", 0) + 1
        return finished

    def _stray(self, line: str) -> Entry | None:
        if self._open is None:
            if line.strip():
                self.unrecognised += 1
            return None
        if self._open.open:
            return None
        self.unrecognised += bool(line.strip())
        finished, self._open = self._open.close(), None
        return finished

    def _parse(self, line: str) -> Record | None:
        for position, known in enumerate(self._formats):
            record = known(line, self._written)
            if record is not None:
                if position:
                    # neighbours are mostly of one format: try this one first next time
                    self._formats.insert(0, self._formats.pop(position))
                return record
        return None


class _Open:
    """An entry that may still grow."""

    def __init__(self, line: int, record: Record | None, when: datetime | None) -> None:
        self._line = line
        self._record = record
        self._when = when
        self._tracing = False
        self._exception = ""
        self._said = ""

    @property
    def open(self) -> bool:
        return self._record is None or self._record.open

    def attach(self) -> bool:
        """Begin a traceback here, unless this entry cannot have one or already has."""
        tame = self._record is not None and self._record.rank > _ERROR
        if self._tracing or self._exception or tame or not self.open:
            return False
        self._tracing = True
        return True

    def takes(self, line: str) -> bool:
        """Say whether `line` goes on with the traceback of this entry."""
        if _CHAIN.match(line.lstrip(" |")) and (self._tracing or self._exception):
            self._tracing = True
            return True
        if not self._tracing:
            return False
        if not line.strip() or _START.match(line):
            return True
        found = _EXCEPTION.match(line)
        if found is not None:
            self._exception, self._said = found[1], found[2] or ""
            self._tracing = False
            return True
        return line[:1] in " \t"

    def close(self) -> Entry:
        record, exception = self._record, self._exception
        if self._tracing and not exception:
            exception = UNFINISHED
        return Entry(
            line=self._line,
            kind=record.kind if record else "traceback",
            rank=record.rank if record else _ERROR,
            type=exception or (record.type if record else UNFINISHED),
            message=self._said or (record.message if record else ""),
            when=self._when,
            record=record,
        )
