"""The two tools of the report server: write a report, draw a chart.

Never writes outside its output directories, and nothing that depends on the time of day.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thoughtgate_servers.report.chart import Bar, bar_chart, day_chart, days_of
from thoughtgate_servers.report.markdown import Section, basis, document
from thoughtgate_servers.sandbox import Place, Sandbox
from thoughtgate_servers.schemas import array, flag, integer, nullable, number, record, text
from thoughtgate_servers.table import Effect, Reply, Request, Tool, ToolFailed
from thoughtgate_servers.writing import compare, make_directories, write_whole

MAX_ROWS = 5_000
MAX_BARS = 120
MAX_FILES = 1_000
_SLUG = 60

_ROW = record(
    {"key": text("What was counted.", maxLength=4096), "count": integer(minimum=0)},
    {
        "share": number("0 to 1; worked out from the counts when absent.", minimum=0, maximum=1),
        "first_seen": nullable(text(maxLength=64)),
        "last_seen": nullable(text(maxLength=64)),
    },
)
_ROWS = array(_ROW, "Rows as count_errors returns them.", maxItems=MAX_ROWS)
_COUNT = integer(minimum=0)
_READ = record(
    {"path": text(maxLength=4096), "lines": _COUNT},
    {
        "formats": array(text(maxLength=64), maxItems=100),
        "errors": _COUNT,
        "unrecognised_lines": _COUNT,
        "replaced_bytes": _COUNT,
        "cut_lines": _COUNT,
        "undated": _COUNT,
        "problem": nullable(text("Why it was not read to its end.", maxLength=4096)),
    },
)
_TITLE = text("One line.", minLength=1, maxLength=200)
_FILE = record({
    "path": text(),
    "size": integer(minimum=0),
    "sha256": text(pattern="^[0-9a-f]{64}$"),
    "outcome": text(enum=["created", "replaced", "unchanged"]),
})

WRITE_INPUT = record(
    {"title": _TITLE, "counts": _ROWS},
    {
        "heading": text("Heading of the table of counts.", maxLength=200),
        "summary": text("Paragraphs under the title, plain text.", maxLength=20_000),
        "files": array(
            _READ,
            "Files that the counts come from, as classify_errors returns them; the report says "
            "how many were read and which not to their end.",
            maxItems=MAX_FILES,
        ),
        "sections": array(
            record(
                {"heading": text(minLength=1, maxLength=200), "counts": _ROWS},
                {
                    "text": text(maxLength=20_000),
                    "chart": flag("Draw a chart of this section too.", default=True),
                },
            ),
            "Further tables.",
            maxItems=20,
        ),
        "directory": text("Below the output directory; made when missing.", maxLength=400),
        "name": text(
            "File name without ending.",
            pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$",
            maxLength=80,
            default="report",
        ),
        "overwrite": flag("Replace files of this name.", default=False),
    },
)
WRITE_OUTPUT = record({
    "markdown": _FILE,
    "charts": array(_FILE),
    "total": integer("Sum of counts.", minimum=0),
    "rows": integer("Rows of counts.", minimum=0),
})
CHART_INPUT = record({"title": _TITLE, "counts": _ROWS})
CHART_OUTPUT = record({"svg": text(), "bars": integer(minimum=0), "left_out": integer(minimum=0)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTools:
    """The tools over one set of output directories."""

    sandbox: Sandbox

    def table(self) -> tuple[Tool, ...]:
        """Return the rows of the server's table."""
        return (
            Tool(
                name="write_report",
                title="Write a report",
                description="Write a Markdown report with a table and a bar chart (SVG) per set "
                "of counts. Files of other content are never replaced unless overwrite is set; "
                "the same call again changes nothing.",
                input_schema=WRITE_INPUT,
                output_schema=WRITE_OUTPUT,
                run=self.write,
                effect=Effect.IDEMPOTENT,
                destructive=True,
            ),
            Tool(
                name="render_chart",
                title="Draw a bar chart",
                description=f"Return a bar chart of counts as SVG text: the first {MAX_BARS} "
                "rows, or a column for each when many rows are days. Writes nothing.",
                input_schema=CHART_INPUT,
                output_schema=CHART_OUTPUT,
                run=self.chart,
            ),
        )

    async def write(self, request: Request) -> Reply:
        """Write the report and its charts."""
        asked = request.arguments
        name = asked.get("name", "report")
        folder = self.sandbox.place(asked.get("directory", str(self.sandbox.roots[0])))
        files = _files(asked, name)
        overwrite = asked.get("overwrite", False)
        if not overwrite:
            await asyncio.to_thread(self._all_free, folder, files)
        written: list[dict[str, Any]] = []
        # charts first: a report never names a chart that is not there yet
        for done, (file_name, content) in enumerate(files):
            await request.progress(done, len(files), f"writing {file_name}")
            written.append(
                await asyncio.to_thread(self._put, folder, file_name, content, overwrite)
            )
        await request.progress(len(files), len(files), "written")
        counts = asked["counts"]
        structured = {
            "markdown": written[-1],
            "charts": written[:-1],
            "total": sum(row["count"] for row in counts),
            "rows": len(counts),
        }
        lines = [f"{file['outcome']} {file['path']} ({file['size']} bytes)" for file in written]
        return Reply(text="\n".join(lines), structured=structured)

    async def chart(self, request: Request) -> Reply:
        """Draw a chart."""
        asked = request.arguments
        counts = asked["counts"]
        svg, left_out = _drawn(asked["title"], counts)
        structured = {"svg": svg, "bars": len(counts) - left_out, "left_out": left_out}
        return Reply(text=svg, structured=structured)

    def _all_free(self, folder: Place, files: Sequence[tuple[str, str]]) -> None:
        """Refuse before anything is written when one of the names is taken."""
        for name, content in files:
            place = Place(root=folder.root, names=(*folder.names, name))
            if place.path.exists():
                compare(self.sandbox, place, content.encode(), overwrite=False)

    def _put(self, folder: Place, name: str, content: str, overwrite: bool) -> dict[str, Any]:
        make_directories(self.sandbox, folder)
        place = Place(root=folder.root, names=(*folder.names, name))
        data = content.encode()
        outcome = write_whole(self.sandbox, place, data, overwrite=overwrite)
        return {
            "path": str(place.path),
            "size": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "outcome": outcome.value,
        }


def _files(asked: Mapping[str, Any], name: str) -> list[tuple[str, str]]:
    """Return (file name, content) of every chart, then of the report."""
    title: str = asked["title"]
    first = {"heading": asked.get("heading", ""), "counts": asked["counts"]}
    charts: list[tuple[str, str]] = []
    sections: list[Section] = []
    for position, section in enumerate([first, *asked.get("sections", ())]):
        chart = ""
        if section.get("chart", True):
            chart = _chart_name(name, section["heading"], position, dict(charts))
            charts.append((chart, _drawn(section["heading"] or title, section["counts"])[0]))
        sections.append(
            Section(
                heading=section["heading"],
                rows=section["counts"],
                text=section.get("text", ""),
                chart=chart,
            )
        )
    read = basis(asked["files"], asked["counts"]) if asked.get("files") else ""
    page = document(title, asked.get("summary", ""), sections, read=read)
    return [*charts, (f"{name}.md", page)]


def _chart_name(name: str, heading: str, position: int, taken: Mapping[str, str]) -> str:
    """Return a file name after the heading; after its place where that says nothing, or twice."""
    slug = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")[:_SLUG]
    chosen = f"{name}-{slug}.svg" if slug else f"{name}-{position + 1}.svg"
    if not heading:
        chosen = f"{name}.svg"
    while chosen in taken:
        chosen = f"{chosen.removesuffix('.svg')}-{position + 1}.svg"
    return chosen


def _drawn(title: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """Return the chart, and how many rows are not in it."""
    bars = [Bar(label=row["key"], count=row["count"]) for row in rows]
    if days := days_of(bars):
        return day_chart(title, bars, days), 0
    left_out = max(len(rows) - MAX_BARS, 0)
    return bar_chart(title, bars[:MAX_BARS], left_out=left_out), left_out


def output_directory(path: Path) -> Sandbox:
    """Make the output directory when it is missing and return the sandbox over it.

    Raises:
        ToolFailed: It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        reason = failure.strerror or "no reason given"
        raise ToolFailed(message=f"--out {path} cannot be made: {reason.lower()}") from None
    return Sandbox([path])
