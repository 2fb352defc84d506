"""Classifies the errors of many log files and adds them up.

Never holds entries: only tallies, at most `MAX_GROUPS`, and a few samples per type.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path

from thoughtgate_servers.logs.entries import Assembler, Entry
from thoughtgate_servers.logs.reading import Lines
from thoughtgate_servers.logs.records import MAX_TYPE, SEVERITIES, clean, instant
from thoughtgate_servers.times import moment

MAX_GROUPS = 20_000
OTHER = "(other)"
"""Where types go when there are more than `MAX_GROUPS` groups."""

SLICE = 5_000
"""Lines between two looks at progress and cancel."""

_MESSAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What counts: severity at least `rank`, time within the bounds (undated entries count)."""

    rank: int
    since: float | None = None
    until: float | None = None
    by_file: bool = False
    by_day: bool = False
    samples: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a tally is about; `file` and `day` are empty when not asked for."""

    type: str
    severity: str
    file: str = ""
    day: str = ""


@dataclass(slots=True)
class Tally:
    """How many, and when first and last, as written in the log."""

    count: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def add(self, count: int, first: datetime | None, last: datetime | None) -> None:
        """Add another tally's numbers."""
        self.count += count
        if first and (self.first is None or instant(first) < instant(self.first)):
            self.first = first
        if last and (self.last is None or instant(last) > instant(self.last)):
            self.last = last


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One error, for people."""

    type: str
    file: str
    line: int
    when: datetime | None
    message: str


@dataclass(slots=True, kw_only=True)
class FileReport:
    """What one file held; `problem` says why it was not read to its end."""

    path: str
    formats: list[str] = field(default_factory=list)
    lines: int = 0
    errors: int = 0
    unrecognised: int = 0
    replaced: int = 0
    cut: int = 0
    undated: int = 0
    problem: str = ""


class Classification:
    """The sum over all files so far."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.groups: dict[Key, Tally] = {}
        self.samples: dict[str, list[Sample]] = {}
        self.files: list[FileReport] = []
        self.folded = False

    def read(self, path: Path, lines: Lines, written: float) -> Iterator[int]:
        """Add a file, yielding the lines read so far every `SLICE` lines."""
        report = FileReport(path=str(path))
        self.files.append(report)
        assembler = Assembler(moment(written))
        entries = assembler.entries(lines)
        more = True
        while more:
            more = self._take(islice(entries, SLICE), report)
            yield lines.count
        report.formats = sorted(assembler.kinds, key=lambda kind: -assembler.kinds[kind])
        report.lines, report.unrecognised = lines.count, assembler.unrecognised
        report.replaced, report.cut, report.problem = lines.replaced, lines.cut, lines.problem

    def refuse(self, path: str, problem: str) -> None:
        """Note a file that could not be opened."""
        self.files.append(FileReport(path=path, problem=problem))

    def _take(self, entries: Iterable[Entry | None], report: FileReport) -> bool:
        seen = False
        for entry in entries:
            seen = True
            if entry is not None and entry.rank <= self._scope.rank:
                self._count(entry, report)
        return seen

    def _count(self, entry: Entry, report: FileReport) -> None:
        scope, when = self._scope, entry.time()
        if when is None:
            report.undated += 1
        elif not _within(instant(when), scope):
            return
        report.errors += 1
        key = Key(
            type=clean(entry.type, MAX_TYPE) or OTHER,
            severity=SEVERITIES[entry.rank],
            file=report.path if scope.by_file else "",
            day=when.date().isoformat() if scope.by_day and when else "",
        )
        if key not in self.groups and len(self.groups) >= MAX_GROUPS:
            self.folded = True
            key = Key(type=OTHER, severity=key.severity)
        self.groups.setdefault(key, Tally()).add(1, when, when)
        self._sample(key.type, entry, report, when)

    def _sample(self, kind: str, entry: Entry, report: FileReport, when: datetime | None) -> None:
        kept = self.samples.setdefault(kind, []) if self._scope.samples else None
        if kept is not None and len(kept) < self._scope.samples:
            message = clean(entry.message, _MESSAGE)
            sample = Sample(
                type=kind, file=report.path, line=entry.line, when=when, message=message
            )
            kept.append(sample)


def ranked(groups: dict[Key, Tally]) -> list[tuple[Key, Tally]]:
    """Return the groups, most frequent first; equal counts by name."""
    return sorted(
        groups.items(),
        key=lambda row: (-row[1].count, row[0].type, row[0].severity, row[0].file, row[0].day),
    )


def summed(rows: Sequence[tuple[str, Tally]]) -> list[tuple[str, Tally]]:
    """Add up rows of the same name; most frequent first, equal counts by name."""
    total: dict[str, Tally] = {}
    for name, tally in rows:
        total.setdefault(name, Tally()).add(tally.count, tally.first, tally.last)
    return sorted(total.items(), key=lambda row: (-row[1].count, row[0]))


def _within(when: float, scope: Scope) -> bool:
    after = scope.since is None or when >= scope.since
    return after and (scope.until is None or when < scope.until)
