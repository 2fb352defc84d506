"""An answer as the content of a file: CSV, JSON or Parquet.

Never touches the directory that the file goes to.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from thoughtgate_servers.data.cells import plain
from thoughtgate_servers.data.engines import Answer
from thoughtgate_servers.data.limits import Limits, Watch, counted
from thoughtgate_servers.data.opening import engine
from thoughtgate_servers.data.sources import Source
from thoughtgate_servers.table import ToolFailed

_FROM_FILES = "Parquet is written from CSV and Parquet sources only: take csv or json"


def exported(
    source: Source, asked: Mapping[str, Any], limits: Limits, watch: Watch
) -> tuple[bytes, int]:
    """Return the content of the file that is asked for, and how many rows it has.

    Raises:
        ToolFailed: The source has no such format, or the statement does not run.
    """
    if asked["format"] == "parquet":
        if source.database is not None:
            raise ToolFailed(message=_FROM_FILES)
        with engine(source, limits, watch):
            # says in words what is missing when DuckDB is
            parquet = import_module("thoughtgate_servers.data.parquet")
        content: tuple[bytes, int] = parquet.as_parquet(source, asked, limits, watch)
        return content
    with engine(source, limits, watch, as_text=asked.get("as_text", False)) as one:
        answer = one.select(asked["sql"])
        return as_csv(answer) if asked["format"] == "csv" else as_json(answer)


def as_csv(answer: Answer) -> tuple[bytes, int]:
    """Return the rows as CSV with a head line, and how many; null is nothing between commas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in answer.columns])
    rows = 0
    for row in answer.rows:
        writer.writerow([_field(value) for value in row])
        rows = counted(rows, text.tell())
    return text.getvalue().encode("utf-8", "replace"), rows


def as_json(answer: Answer) -> tuple[bytes, int]:
    """Return the rows as an array of objects, one a line, and how many."""
    names = [column.name for column in answer.columns]
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        said = f"two columns have the name {twice[0]}: give one another name with AS"
        raise ToolFailed(message=said)
    text = io.StringIO()
    rows = 0
    for row in answer.rows:
        members = {name: plain(value) for name, value in zip(names, row, strict=True)}
        text.write(("[\n" if rows == 0 else ",\n") + json.dumps(members, ensure_ascii=False))
        rows = counted(rows, text.tell())
    text.write("\n]\n" if rows else "[]\n")
    return text.getvalue().encode("utf-8", "replace"), rows


def _field(value: object) -> object:
    shown = plain(value)
    return json.dumps(shown, ensure_ascii=False) if isinstance(shown, list | dict) else shown
