"""The five tools of the data server: query, describe, statistics, chart, export.

Never runs a statement outside a watch, and never writes but below the output directory.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from thoughtgate_servers.data import schemas
from thoughtgate_servers.data.cells import plain, weight
from thoughtgate_servers.data.drawing import Drawn, drawn
from thoughtgate_servers.data.engines import Answer, Engine, meant, quoted
from thoughtgate_servers.data.exporting import exported
from thoughtgate_servers.data.limits import MAX_BYTES, MAX_STUDIED, Limits, T, Watch, watched
from thoughtgate_servers.data.opening import engine
from thoughtgate_servers.data.sources import opened
from thoughtgate_servers.data.studying import correlations, study
from thoughtgate_servers.sandbox import Sandbox
from thoughtgate_servers.table import Effect, Image, Reply, Request, Tool, ToolFailed
from thoughtgate_servers.writing import write_whole

_SHOWN = 50
"""Rows that stand in the text for people; the structured answer has all."""

_RELATED = 3
"""The strongest pairs, which stand in the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTools:
    """The tools over one sandbox; `out` is where charts and exports go, None for nowhere."""

    sandbox: Sandbox
    out: Sandbox | None
    limits: Limits

    def table(self) -> tuple[Tool, ...]:
        """Return the rows of the server's table."""
        reading = (
            Tool(
                name="query",
                title="Query",
                description="Run one SELECT over a SQLite, CSV or Parquet source.",
                input_schema=schemas.QUERY_INPUT,
                output_schema=schemas.QUERY_OUTPUT,
                run=self.query,
            ),
            Tool(
                name="describe",
                title="Describe a source",
                description="Tables, columns, types, row counts and some rows of a source.",
                input_schema=schemas.DESCRIBE_INPUT,
                output_schema=schemas.DESCRIBE_OUTPUT,
                run=self.describe,
            ),
            Tool(
                name="statistics",
                title="Statistics",
                description="Counts, nulls, mean, standard deviation, percentiles and "
                f"correlation of a table or a SELECT, over at most {MAX_STUDIED} rows.",
                input_schema=schemas.STATISTICS_INPUT,
                output_schema=schemas.STATISTICS_OUTPUT,
                run=self.statistics,
            ),
        )
        return (*reading, *self._drawing())

    def _drawing(self) -> Iterator[Tool]:
        writes = self.out is not None
        yield Tool(
            name="chart",
            title="Draw a chart",
            description="Draw what a SELECT gives as an SVG picture: bars, lines, points or a "
            "histogram." + (" With a name it is also written." if writes else ""),
            input_schema=schemas.CHART_AND_WRITE_INPUT if writes else schemas.CHART_INPUT,
            output_schema=schemas.CHART_OUTPUT,
            run=self.chart,
            effect=Effect.IDEMPOTENT if writes else Effect.READ,
        )
        if writes:
            yield Tool(
                name="export",
                title="Export",
                description="Write what a SELECT gives into a new CSV, JSON or Parquet file. No "
                "file is ever replaced; the same call again changes nothing.",
                input_schema=schemas.EXPORT_INPUT,
                output_schema=schemas.EXPORT_OUTPUT,
                run=self.export,
                effect=Effect.IDEMPOTENT,
            )

    async def query(self, request: Request) -> Reply:
        """Run a statement."""
        most = request.arguments.get("max_rows", 200)

        def work(one: Engine) -> dict[str, Any]:
            answer = one.select(request.arguments["sql"])
            rows, complete = _taken(answer, most)
            columns = [{"name": column.name, "type": column.type} for column in answer.columns]
            return {
                "columns": columns,
                "rows": rows,
                "row_count": len(rows),
                "complete": complete,
            }

        found = await self._asked(request, work)
        return Reply(text=_page(found), structured=found)

    async def describe(self, request: Request) -> Reply:
        """Describe a source."""
        asked = request.arguments

        def work(one: Engine) -> dict[str, Any]:
            known = one.tables()
            wanted = asked.get("tables") or list(known)
            for name in wanted:
                if name not in known:
                    said = f"no such table: {name[:100]}{meant(name, list(known))}"
                    raise ToolFailed(message=said)
            samples = asked.get("samples", 3)
            return {
                "dialect": one.dialect,
                "tables": [_described(one, name, samples) for name in wanted],
            }

        found = await self._asked(request, work)
        lines = [
            f"{table['name']} ({table['rows']} rows): "
            + ", ".join(f"{column['name']} {column['type']}".strip() for column in table["columns"])
            for table in found["tables"]
        ]
        return Reply(text="\n".join([f"{found['dialect']}:", *lines]), structured=found)

    async def statistics(self, request: Request) -> Reply:
        """Study columns."""
        asked = request.arguments
        if ("sql" in asked) == ("table" in asked):
            raise ToolFailed(message="give either sql or table")

        def work(one: Engine, watch: Watch) -> dict[str, Any]:
            columns, rows, complete = _columns(one.select(_statement(one, asked)))
            studied = []
            for name, values in columns.items():
                watch.check()
                studied.append(study(name, values))
            numeric = [(s["name"], columns[s["name"]]) for s in studied if s["numeric"]]
            related = correlations(numeric) if asked.get("correlation", True) else []
            return {
                "rows": rows, "complete": complete, "columns": studied, "correlation": related,
            }  # fmt: skip

        found = await self._watched(request, work)
        lines = [_summed_up(column) for column in found["columns"]]
        lines += [
            f"{one['a']} and {one['b']}: r = {one['r']:.3f} over {one['rows']} rows"
            for one in found["correlation"][:_RELATED]
        ]
        return Reply(text="\n".join([f"{found['rows']} rows", *lines]), structured=found)

    async def chart(self, request: Request) -> Reply:
        """Draw a chart."""

        def work(one: Engine) -> Drawn:
            columns, rows, _ = _columns(one.select(request.arguments["sql"]))
            return drawn(request.arguments, columns, rows)

        picture = await self._asked(request, work)
        svg = picture.svg.encode()
        name = request.arguments.get("name")
        file = None if name is None else await self._written(request, f"{name}.svg", svg)
        structured = {"points": picture.points, "left_out": picture.left_out, "file": file}
        where = f", written to {file['path']}" if file else ""
        return Reply(
            text=f"{picture.points} points drawn{where}",
            structured=structured,
            images=(Image(data=svg, mime_type="image/svg+xml"),),
        )

    async def export(self, request: Request) -> Reply:
        """Write a file."""
        asked = request.arguments

        def work(watch: Watch) -> tuple[bytes, int]:
            with opened(self.sandbox, asked["source"]) as source:
                return exported(source, asked, self.limits, watch)

        content, rows = await watched(work, self.limits.seconds, request.progress)
        file = await self._written(request, f"{asked['name']}.{asked['format']}", content)
        said = f"{file['outcome']} {file['path']} ({rows} rows, {file['size']} bytes)"
        return Reply(text=said, structured={"file": file, "rows": rows})

    async def _asked(self, request: Request, work: Callable[[Engine], T]) -> T:
        return await self._watched(request, lambda one, _watch: work(one))

    async def _watched(self, request: Request, work: Callable[[Engine, Watch], T]) -> T:
        def within(watch: Watch) -> T:
            with self._engine(request.arguments, watch) as one:
                return work(one, watch)

        return await watched(within, self.limits.seconds, request.progress)

    @contextmanager
    def _engine(self, asked: Mapping[str, Any], watch: Watch) -> Iterator[Engine]:
        as_text = asked.get("as_text", False)
        with (
            opened(self.sandbox, asked["source"]) as source,
            engine(source, self.limits, watch, as_text=as_text) as one,
        ):
            yield one

    async def _written(self, request: Request, name: str, content: bytes) -> dict[str, Any]:
        out = self.out
        if out is None:
            raise ToolFailed(message="nothing may be written: start the server with --out")

        def work(_watch: Watch) -> str:
            return write_whole(out, out.place(name), content, overwrite=False).value

        outcome = await watched(work, self.limits.seconds, request.progress)
        return {
            "path": str(out.place(name).path),
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "outcome": outcome,
        }


def _taken(answer: Answer, most: int) -> tuple[list[list[Any]], bool]:
    """Return the rows that fit, and whether those are all."""
    rows: list[list[Any]] = []
    size = 0
    for row in answer.rows:
        cells = [plain(value) for value in row]
        size += weight(cells)
        if len(rows) == most or size > MAX_BYTES:
            return rows, False
        rows.append(cells)
    return rows, True


def _columns(answer: Answer) -> tuple[dict[str, Sequence[Any]], int, bool]:
    """Return the values column by column, how many rows, and whether those are all."""
    if not answer.columns:
        raise ToolFailed(message="the statement gives no columns")
    rows = list(islice(answer.rows, MAX_STUDIED + 1))
    complete = len(rows) <= MAX_STUDIED
    del rows[MAX_STUDIED:]
    found: dict[str, Sequence[Any]] = {}
    values = list(zip(*rows, strict=True)) or [()] * len(answer.columns)
    for column, one in zip(answer.columns, values, strict=True):
        name, number = column.name, 1
        while name in found:
            number += 1
            name = f"{column.name}_{number}"
        found[name] = one
    return found, len(rows), complete


def _statement(one: Engine, asked: Mapping[str, Any]) -> str:
    if "sql" in asked:
        return str(asked["sql"])
    name, known = asked["table"], list(one.tables())
    if name not in known:
        raise ToolFailed(message=f"no such table: {name[:100]}{meant(name, known)}")
    return f"SELECT * FROM {quoted(name)}"


def _described(one: Engine, name: str, samples: int) -> dict[str, Any]:
    columns = one.tables()[name]
    found: dict[str, Any] = {
        "name": name,
        "columns": [{"name": column.name, "type": column.type} for column in columns],
        "rows": None,
        "samples": [],
        "problem": None,
    }
    try:
        [[found["rows"]]] = one.select(f"SELECT count(*) FROM {quoted(name)}").rows
        sample = one.select(f"SELECT * FROM {quoted(name)} LIMIT {samples}")
        found["samples"] = _taken(sample, samples)[0]
    except ToolFailed as failure:
        found["problem"] = failure.message
    return found


def _page(found: Mapping[str, Any]) -> str:
    lines = [" | ".join(column["name"] for column in found["columns"])]
    lines += [" | ".join(map(str, row)) for row in found["rows"][:_SHOWN]]
    if found["row_count"] > _SHOWN or not found["complete"]:
        more = "" if found["complete"] else ", and there are more"
        lines.append(f"({found['row_count']} rows{more})")
    return "\n".join(lines)


def _summed_up(column: Mapping[str, Any]) -> str:
    """Return what was found of a column in one line."""
    said = [f"{column['name']}: {column['count']} values, {column['nulls']} null"]
    if column["mean"] is not None:
        said.append(f"mean {column['mean']:g}")
    if column["min"] is not None:
        said.append(f"from {column['min']} to {column['max']}")
    return ", ".join(said)
