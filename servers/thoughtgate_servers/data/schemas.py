"""The schemas of the data server's tools.

Never knows how the answers are found.
"""

from thoughtgate_servers.data.cells import WORDS
from thoughtgate_servers.data.limits import MAX_ROWS
from thoughtgate_servers.schemas import (
    Schema,
    array,
    flag,
    integer,
    nullable,
    number,
    record,
    text,
)

MAX_SERIES = 6
CHARTS = ("bar", "line", "scatter", "histogram")

_SOURCE = text(
    "A SQLite, CSV or Parquet file, or a directory of CSV and Parquet files; under the allowed "
    "directories.",
    minLength=1,
    maxLength=4096,
)
_SQL = text(
    "One SELECT. The tables are those of describe; a CSV or Parquet file is a table of its name "
    "without the ending.",
    minLength=1,
    maxLength=100_000,
)
_AS_TEXT = flag(
    "Read every column of CSV files as text, to cast it exactly yourself.", default=False
)
_NAME = text("File name without ending.", pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$", maxLength=80)
_COLUMN = record({"name": text(), "type": text("As the engine says it; empty when it does not.")})
_ROW: Schema = {"type": "array", "items": {}}
_FILE = record({
    "path": text(),
    "size": integer(minimum=0),
    "sha256": text(pattern="^[0-9a-f]{64}$"),
    "outcome": text(enum=["created", "unchanged"]),
})

QUERY_INPUT = record(
    {"source": _SOURCE, "sql": _SQL},
    {
        "max_rows": integer(minimum=1, maximum=MAX_ROWS, default=200),
        "as_text": _AS_TEXT,
    },
)
QUERY_OUTPUT = record({
    "columns": array(_COLUMN),
    "rows": array(_ROW, f"In the order of the columns. {WORDS}."),
    "row_count": integer("Rows in this answer.", minimum=0),
    "complete": flag("False when there are more rows than max_rows or than fit."),
})

DESCRIBE_INPUT = record(
    {"source": _SOURCE},
    {
        "tables": array(text(maxLength=1000), "Only these; all when absent.", maxItems=100),
        "samples": integer("Rows to show of each table.", minimum=0, maximum=20, default=3),
    },
)
DESCRIBE_OUTPUT = record({
    "dialect": text("Whose SQL is understood."),
    "tables": array(
        record({
            "name": text(),
            "columns": array(_COLUMN),
            "rows": nullable(integer("Null when they cannot be counted.", minimum=0)),
            "samples": array(_ROW, WORDS + "."),
            "problem": nullable(text("Why the table cannot be read.")),
        })
    ),
})

STATISTICS_INPUT = record(
    {"source": _SOURCE},
    {
        "sql": text("One SELECT whose columns are studied; or name a table.", maxLength=100_000),
        "table": text("A table to study whole; or give sql.", maxLength=1000),
        "correlation": flag("Work out how numeric columns go together.", default=True),
        "as_text": _AS_TEXT,
    },
)
_NUMBER = nullable(number())
STATISTICS_OUTPUT = record({
    "rows": integer("Rows that were looked at.", minimum=0),
    "complete": flag("False when there are more rows than were looked at."),
    "columns": array(
        record({
            "name": text(),
            "numeric": flag("Whether every value is a number."),
            "count": integer("Values that are not null.", minimum=0),
            "nulls": integer(minimum=0),
            "not_finite": integer("NaN and infinities, left out of the rest.", minimum=0),
            "distinct": integer("Different values.", minimum=0),
            "mean": _NUMBER,
            "stddev": nullable(number("Of a sample.")),
            "min": {"description": "Smallest value; null when values cannot be compared."},
            "max": {"description": "Largest value; null when values cannot be compared."},
            "percentiles": {
                **record({}, {f"p{n}": number() for n in (1, 5, 25, 50, 75, 95, 99)}),
                "description": "Linear between neighbours; empty when not numeric.",
            },
            "frequent": array(
                record({"value": {}, "count": integer(minimum=1)}),
                "The most frequent values of a column that is not numeric.",
            ),
        })
    ),
    "correlation": array(
        record({"a": text(), "b": text(), "r": number(minimum=-1, maximum=1), "rows": integer()}),
        "Pearson's r of each pair of numeric columns, where it exists; strongest first.",
    ),
})

_PICTURE: dict[str, Schema] = {
    "title": text("One line.", maxLength=200),
    "x": text("Column along the bottom; the first one when absent.", maxLength=1000),
    "y": array(
        text(maxLength=1000),
        "Columns to draw; the other numeric ones when absent.",
        maxItems=MAX_SERIES,
    ),
    "bins": integer("Of a histogram.", minimum=1, maximum=100, default=20),
    "as_text": _AS_TEXT,
}
CHART_INPUT = record({"source": _SOURCE, "sql": _SQL, "kind": text(enum=list(CHARTS))}, _PICTURE)
CHART_AND_WRITE_INPUT = record(
    {"source": _SOURCE, "sql": _SQL, "kind": text(enum=list(CHARTS))},
    {**_PICTURE, "name": {**_NAME, "description": "Also write it as NAME.svg."}},
)
CHART_OUTPUT = record({
    "points": integer("Points, bars or values in the picture.", minimum=0),
    "left_out": integer("Rows that are not in it: null, not finite, or too many.", minimum=0),
    "file": {"anyOf": [_FILE, {"type": "null"}], "description": "Null when nothing is written."},
})

EXPORT_INPUT = record(
    {
        "source": _SOURCE,
        "sql": _SQL,
        "name": _NAME,
        "format": text(enum=["csv", "json", "parquet"]),
    },
    {"as_text": _AS_TEXT},
)
EXPORT_OUTPUT = record({"file": _FILE, "rows": integer(minimum=0)})
