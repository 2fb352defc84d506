"""The four tools of the logs server: find, read, classify, count.

Never writes, and reads only what the sandbox opens.
"""

import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from thoughtgate_servers import cursors, times
from thoughtgate_servers.logs import schemas
from thoughtgate_servers.logs.classify import (
    Classification,
    FileReport,
    Key,
    Scope,
    Tally,
    ranked,
    summed,
)
from thoughtgate_servers.logs.finding import Found, Search, Wanted
from thoughtgate_servers.logs.reading import Lines, opened
from thoughtgate_servers.logs.records import SEVERITIES, iso_clock
from thoughtgate_servers.sandbox import Sandbox
from thoughtgate_servers.stepwise import stepwise
from thoughtgate_servers.table import Reply, Request, Tool, ToolFailed

MAX_PAGE = 400_000
"""Characters of log text in one page of read_log."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTools:
    """The tools over one sandbox."""

    sandbox: Sandbox
    max_bytes: int

    def table(self) -> tuple[Tool, ...]:
        """Return the rows of the server's table."""
        return (
            Tool(
                name="find_logs",
                title="Find log files",
                description="Find log files by directory, name pattern and age. Returns their "
                "paths, sizes, times and compression, sorted by path, in pages.",
                input_schema=schemas.FIND_INPUT,
                output_schema=schemas.FIND_OUTPUT,
                run=self.find,
            ),
            Tool(
                name="read_log",
                title="Read a log file",
                description="Read lines of one log file (gzip is seen through), a page at a time.",
                input_schema=schemas.READ_INPUT,
                output_schema=schemas.READ_OUTPUT,
                run=self.read,
            ),
            Tool(
                name="classify_errors",
                title="Classify errors",
                description="Read log files whole and classify their errors by type: syslog, nginx "
                "access and error logs, Python logging, JSON lines, gzip or not. A Python "
                "traceback is one error of its exception's type.",
                input_schema=schemas.CLASSIFY_INPUT,
                output_schema=schemas.CLASSIFY_OUTPUT,
                run=self.classify,
            ),
            Tool(
                name="count_errors",
                title="Count errors",
                description="Count errors by type, file, day or severity, with each one's share "
                "and when it was first and last seen; from files, or from the groups that "
                "classify_errors returned.",
                input_schema=schemas.COUNT_INPUT,
                output_schema=schemas.COUNT_OUTPUT,
                run=self.count,
            ),
        )

    async def find(self, request: Request) -> Reply:
        """Find files."""
        asked = request.arguments
        question = {name: value for name, value in asked.items() if name not in {"cursor", "limit"}}
        after = cursors.decode(asked.get("cursor"), question)
        place = self.sandbox.place(asked.get("directory", str(self.sandbox.roots[0])))
        search = Search(files=[])

        async def on_step(seen: int) -> None:
            await request.progress(seen, None, f"{seen} names looked at")

        await stepwise(search.run(self.sandbox, place, _wanted(asked)), on_step)
        rest = [found for found in search.files if str(found.path) > after]
        page = rest[: asked.get("limit", 200)]
        more = cursors.encode(str(page[-1].path), question) if len(rest) > len(page) else None
        structured = {
            "files": [_file(found) for found in page],
            "paths": [str(found.path) for found in page],
            "total": len(search.files),
            "complete": search.complete,
            "unspeakable": search.unspeakable,
            "next_cursor": more,
        }
        return Reply(text=_found_text(page, structured), structured=structured)

    async def read(self, request: Request) -> Reply:
        """Read a page."""
        asked = request.arguments
        place = self.sandbox.place(asked["path"])
        page = _Page(start=asked.get("start_line", 1), room=asked.get("max_lines", 200))

        async def on_step(seen: int) -> None:
            await request.progress(seen, None, f"{seen} lines passed")

        with opened(self.sandbox.open_file(place), max_bytes=self.max_bytes) as lines:
            await stepwise(page.fill(lines), on_step)
            structured = {
                "path": str(place.path),
                "start_line": page.first,
                "lines": list(page.lines),
                "next_line": page.next,
                "replaced_bytes": lines.replaced,
                "problem": lines.problem or None,
            }
        text = "\n".join(page.lines) or "(no lines here)"
        more = f"\n(goes on at line {page.next})" if page.next else ""
        trouble = f"\n({lines.problem})" if lines.problem else ""
        return Reply(text=text + more + trouble, structured=structured)

    async def classify(self, request: Request) -> Reply:
        """Classify the errors of files."""
        asked = request.arguments
        detail = asked.get("detail", "file")
        scope = Scope(
            **_bounds(asked),
            by_file=detail != "type",
            by_day=detail == "day",
            samples=asked.get("samples_per_type", 3),
        )
        found = await self._classified(asked["paths"], scope, request)
        groups = ranked(found.groups)
        shown = groups[: asked.get("max_groups", 5_000)]
        types = summed([(key.type, tally) for key, tally in groups])
        structured = {
            "total_errors": sum(tally.count for _, tally in groups),
            "total_lines": sum(report.lines for report in found.files),
            "types": [{"type": name, "count": tally.count} for name, tally in types],
            "groups": [_group(key, tally, scope) for key, tally in shown],
            "groups_cut": found.folded or len(shown) < len(groups),
            "samples": _samples(found, [name for name, _ in types]),
            "files": [_report(report) for report in found.files],
            "unreadable": sum(bool(report.problem) for report in found.files),
        }
        return Reply(text=_classified_text(structured), structured=structured)

    async def count(self, request: Request) -> Reply:
        """Count errors by one thing."""
        asked = request.arguments
        by = asked["by"]
        rows, problems = await self._tallies(by, request)
        if by == "day":
            rows.sort(key=lambda row: row[0])
        total = sum(tally.count for _, tally in rows)
        shown = rows[: asked.get("limit", 1_000)]
        structured = {
            "by": by,
            "total": total,
            "distinct": len(rows),
            "rows": [_row(name, tally, total) for name, tally in shown],
            "other": sum(tally.count for _, tally in rows[len(shown) :]),
        }
        lines = [f"{row['count']:>8}  {row['share']:>6.1%}  {row['key']}" for row in
                 structured["rows"]]  # fmt: skip
        text = f"{total} errors, {len(rows)} different by {by}\n" + "\n".join(lines) + problems
        return Reply(text=text, structured=structured)

    async def _tallies(self, by: str, request: Request) -> tuple[list[tuple[str, Tally]], str]:
        asked = request.arguments
        if ("paths" in asked) == ("groups" in asked):
            raise ToolFailed(message="give either paths or groups, one of the two")
        if "groups" in asked:
            if {"since", "until", "min_severity"} & asked.keys():
                raise ToolFailed(message="since, until and min_severity need paths, not groups")
            return summed([_named(group, by) for group in asked["groups"]]), ""
        scope = Scope(**_bounds(asked), by_file=by == "file", by_day=by == "day")
        found = await self._classified(asked["paths"], scope, request)
        problems = [f"\n({r.path}: {r.problem})" for r in found.files if r.problem]
        return summed([(getattr(k, by), tally) for k, tally in found.groups.items()]), "".join(
            problems
        )

    async def _classified(
        self, paths: Sequence[str], scope: Scope, request: Request
    ) -> Classification:
        found = Classification(scope)
        for number, path in enumerate(dict.fromkeys(paths)):

            async def on_step(lines: int, number: int = number, path: str = path) -> None:
                name = os.path.basename(path)
                # how long the file is nobody knows: its share of progress grows towards 1
                part = lines / (lines + 50_000)
                await request.progress(number + part, len(paths), f"{name}: {lines} lines")

            await stepwise(self._one(path, found), on_step)
        await request.progress(len(paths), len(paths), f"{len(paths)} files read")
        return found

    def _one(self, path: str, found: Classification) -> Iterator[int]:
        """Read one file into `found`; one that cannot be opened never fails the others."""
        try:
            place = self.sandbox.place(path)
            descriptor = self.sandbox.open_file(place)
        except ToolFailed as failure:
            found.refuse(path, failure.message)
            return
        written = os.fstat(descriptor).st_mtime
        with opened(descriptor, max_bytes=self.max_bytes) as lines:
            yield from found.read(place.path, lines, written)


class _Page:
    """A window over the lines of a file; a negative start counts from the end."""

    def __init__(self, *, start: int, room: int) -> None:
        if start == 0:
            raise ToolFailed(message="start_line counts from 1; negative counts from the end")
        self.first = max(start, 0)
        self.lines: deque[str] = deque()
        self.next: int | None = None
        self._start = start
        self._room = room
        self._characters = MAX_PAGE

    def fill(self, lines: Lines) -> Iterator[int]:
        if self._start < 0:
            yield from self._tail(lines)
        else:
            yield from self._window(lines)

    def _tail(self, lines: Lines) -> Iterator[int]:
        self.lines = deque(maxlen=-self._start)
        for line in lines:
            self.lines.append(line)
            if lines.count % 5_000 == 0:
                yield lines.count
        self.first = lines.count - len(self.lines) + 1 if self.lines else 0
        kept: deque[str] = deque()
        while self.lines and len(kept) < self._room and len(self.lines[0]) <= self._characters:
            self._characters -= len(self.lines[0])
            kept.append(self.lines.popleft())
        self.next = self.first + len(kept) if self.lines else None
        self.lines = kept

    def _window(self, lines: Lines) -> Iterator[int]:
        for line in lines:
            if lines.count % 5_000 == 0:
                yield lines.count
            if lines.count < self._start:
                continue
            if len(self.lines) == self._room or len(line) > self._characters:
                self.next = lines.count
                return
            self._characters -= len(line)
            self.lines.append(line)


def _wanted(asked: Mapping[str, Any]) -> Wanted:
    since, until = (
        times.bound(asked.get("since"), "since"),
        times.bound(asked.get("until"), "until"),
    )
    if "max_age_days" in asked:
        oldest = times.days_ago(asked["max_age_days"])
        since = oldest if since is None else max(since, oldest)
    return Wanted(
        pattern=asked.get("pattern", "*"),
        since=since,
        until=until,
        recursive=asked.get("recursive", True),
    )


def _bounds(asked: Mapping[str, Any]) -> Json:
    return {
        "rank": SEVERITIES.index(asked.get("min_severity", "error")),
        "since": times.bound(asked.get("since"), "since"),
        "until": times.bound(asked.get("until"), "until"),
    }


def _file(found: Found) -> Json:
    return {
        "path": str(found.path),
        "size": found.size,
        "modified": times.shown(found.modified),
        "compression": "gzip" if found.compressed else "none",
    }


def _found_text(page: Sequence[Found], structured: Mapping[str, Any]) -> str:
    lines = [f"{structured['total']} files"]
    lines += [f"{f.path}  {times.size(f.size)}  {times.shown(f.modified)}" for f in page]
    if structured["next_cursor"]:
        lines.append("(more: ask again with next_cursor)")
    return "\n".join(lines)


def _written(when: datetime | None) -> str | None:
    return when.isoformat() if when else None


def _group(key: Key, tally: Tally, scope: Scope) -> Json:
    group: Json = {
        "type": key.type,
        "severity": key.severity,
        "count": tally.count,
        "first_seen": _written(tally.first),
        "last_seen": _written(tally.last),
    }
    if scope.by_file:
        group["file"] = key.file
    if scope.by_day:
        group["day"] = key.day
    return group


def _named(group: Mapping[str, Any], by: str) -> tuple[str, Tally]:
    if by not in group:
        raise ToolFailed(message=f"these groups have no {by}: classify with detail = {by}")
    first, last = group["first_seen"], group["last_seen"]
    tally = Tally(
        count=group["count"],
        first=iso_clock(first) if first else None,
        last=iso_clock(last) if last else None,
    )
    return group[by], tally


def _row(name: str, tally: Tally, total: int) -> Json:
    return {
        "key": name or "(none)",
        "count": tally.count,
        "share": round(tally.count / total, 6) if total else 0.0,
        "first_seen": _written(tally.first),
        "last_seen": _written(tally.last),
    }


def _samples(found: Classification, types: Sequence[str]) -> list[Json]:
    return [
        {
            "type": sample.type,
            "file": sample.file,
            "line": sample.line,
            "time": _written(sample.when),
            "message": sample.message,
        }
        for name in islice(types, 200)
        for sample in found.samples.get(name, ())
    ]


def _report(report: FileReport) -> Json:
    return {
        "path": report.path,
        "formats": report.formats,
        "lines": report.lines,
        "errors": report.errors,
        "unrecognised_lines": report.unrecognised,
        "replaced_bytes": report.replaced,
        "cut_lines": report.cut,
        "undated": report.undated,
        "problem": report.problem or None,
    }


def _classified_text(structured: Mapping[str, Any]) -> str:
    files = structured["files"]
    lines = [f"{structured['total_errors']} errors in {len(files)} files"]
    lines += [f"{row['count']:>8}  {row['type']}" for row in structured["types"][:30]]
    formats = Counter(name for report in files for name in report["formats"])
    lines.append("formats: " + (", ".join(sorted(formats)) or "none known"))
    lines += [f"problem: {f['path']}: {f['problem']}" for f in files if f["problem"]]
    return "\n".join(lines)
