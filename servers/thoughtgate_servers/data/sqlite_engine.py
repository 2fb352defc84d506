"""SQLite, opened read-only, with everything refused that does not read its tables.

Never attaches, loads, writes or changes a setting, whatever a statement says.
"""

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

from thoughtgate_servers.data.engines import Answer, Column, meant, quoted
from thoughtgate_servers.data.limits import Limits, Watch
from thoughtgate_servers.data.sources import Source
from thoughtgate_servers.table import ToolFailed

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_ASKED = {"data_version"}
"""What full-text search asks of itself; it changes nothing."""
_FORBIDDEN_FUNCTIONS = {"load_extension", "fts3_tokenizer"}
_MAX_VALUE = 16 * 1024 * 1024
"""Bytes of one value; SQLite itself takes a thousand million."""
_MAX_SQL = 100_000
_STEPS = 20_000
"""Steps of the engine between two looks whether it shall stop: some milliseconds."""
_BATCH = 64


@contextmanager
def opened(source: Source, limits: Limits, watch: Watch, as_text: bool) -> Iterator["SqliteEngine"]:
    """Open the database of a source."""
    del as_text
    uri = f"file:{quote(str(source.database))}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            connection.execute("PRAGMA query_only=ON")
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA temp_store=MEMORY")
            connection.execute(f"PRAGMA hard_heap_limit={limits.memory_mb * 1024 * 1024}")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            columns = _tables(connection)
            # tables that functions make declare themselves once, which no statement may later
            connection.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')").fetchall()
        except sqlite3.Error as failure:
            raise ToolFailed(message=f"not to be read as a database: {failure}") from None
        status = os.stat(source.database or "")
        if (status.st_dev, status.st_ino) != source.identity:
            raise ToolFailed(message="the file was replaced while it was opened: try again")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _MAX_SQL)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_authorizer(_authorised)
        connection.set_progress_handler(lambda: watch.stopped, _STEPS)
        yield SqliteEngine(connection, columns, watch)


class SqliteEngine:
    """One open database."""

    dialect = "SQLite"

    def __init__(
        self,
        connection: sqlite3.Connection,
        columns: dict[str, tuple[Column, ...]],
        watch: Watch,
    ) -> None:
        self._connection = connection
        self._columns = columns
        self._watch = watch

    def tables(self) -> dict[str, tuple[Column, ...]]:
        """Return the tables and views with their columns."""
        return self._columns

    def select(self, sql: str) -> Answer:
        """Run one statement that only reads."""
        try:
            cursor = self._connection.execute(sql)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as failure:
            self._watch.check()
            raise ToolFailed(message=self._said(failure)) from None
        if cursor.description is None:
            raise ToolFailed(message="only statements that give rows: SELECT, WITH, VALUES")
        columns = tuple(Column(name=one[0], type="") for one in cursor.description)
        return Answer(columns=columns, rows=self._rows(cursor))

    def _rows(self, cursor: sqlite3.Cursor) -> Iterator[Sequence[Any]]:
        while True:
            try:
                batch = cursor.fetchmany(_BATCH)
            except sqlite3.Error as failure:
                self._watch.check()
                raise ToolFailed(message=self._said(failure)) from None
            self._watch.check(len(batch))
            if not batch:
                return
            yield from batch

    def _said(self, failure: Exception) -> str:
        text = str(failure)
        if any(word in text for word in ("not authorized", "authorization denied", "prohibited")):
            return "only reading is allowed: one SELECT over the tables of this source"
        if missing := re.match(r"no such (table|column): (.+)", text):
            known = (
                list(self._columns)
                if missing[1] == "table"
                else [one.name for columns in self._columns.values() for one in columns]
            )
            return text + meant(missing[2].rpartition(".")[2], sorted(set(known)))
        return text


def _authorised(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and first in _ASKED):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second not in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _tables(connection: sqlite3.Connection) -> dict[str, tuple[Column, ...]]:
    names = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    ).fetchall()
    found: dict[str, tuple[Column, ...]] = {}
    for (name,) in names:
        try:
            rows = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
        except sqlite3.Error:
            # a virtual table of a module that is not here, or a view of what is gone
            continue
        found[name] = tuple(Column(name=row[1], type=row[2] or "ANY") for row in rows)
    return found
