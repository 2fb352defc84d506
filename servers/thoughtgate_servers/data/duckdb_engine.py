"""DuckDB over open files: in memory, without extensions, and with no way to any other file.

Never runs a statement that does more than read; its settings are locked before one is run.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import duckdb

from thoughtgate_servers.data.engines import Answer, Column, meant, quoted
from thoughtgate_servers.data.limits import Limits, Watch
from thoughtgate_servers.data.sources import File, Source
from thoughtgate_servers.table import ToolFailed

_READING = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
_MAX_SQL = 100_000
_BATCH = 64
_BUFFER = 8 * 1024 * 1024
"""Bytes of the longest line. The engine's own choice takes seconds to see that a line is longer."""


@contextmanager
def opened(
    source: Source, limits: Limits, watch: Watch, as_text: bool, *, also: str | None = None
) -> Iterator["DuckDbEngine"]:
    """Open the files of a source as views; `also` is a directory that our own COPY may use."""
    with closing(duckdb.connect(":memory:", config=_settings(limits))) as connection:
        watch.interrupts(connection.interrupt)
        try:
            connection.execute("SET python_enable_replacements=false")
            broken = _views(connection, source.files, as_text, watch)
            # a list of paths is no parameter of SET; they are ours, and hold no quotes
            paths = ", ".join(f"'{file.path}'" for file in source.files)
            connection.execute(f"SET allowed_paths=[{paths}]")
            if also is not None:
                folder = also.replace("'", "''")
                connection.execute(f"SET allowed_directories=['{folder}']")
            connection.execute("SET enable_external_access=false")
            connection.execute("SET lock_configuration=true")
            yield DuckDbEngine(connection, broken, watch)
        finally:
            watch.interrupts(None)


class DuckDbEngine:
    """One connection with a view for each file."""

    dialect = "DuckDB"

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, broken: dict[str, str], watch: Watch
    ) -> None:
        self._connection = connection
        self._broken = broken
        self._watch = watch

    def tables(self) -> dict[str, tuple[Column, ...]]:
        """Return the tables with their columns; those that cannot be read have none."""
        found: dict[str, tuple[Column, ...]] = dict.fromkeys(self._broken, ())
        rows = self._connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE NOT internal ORDER BY table_name, column_index"
        ).fetchall()
        for table, name, kind in rows:
            found[table] = (*found.get(table, ()), Column(name=name, type=kind))
        return dict(sorted(found.items()))

    def select(self, sql: str) -> Answer:
        """Run one statement that only reads."""
        self._read_only(sql)
        try:
            cursor = self._connection.execute(sql)
            described = cursor.description or []
        except duckdb.Error as failure:
            raise self._said(failure) from None
        columns = tuple(Column(name=str(one[0]), type=str(one[1])) for one in described)
        return Answer(columns=columns, rows=self._rows(cursor))

    def copy(self, sql: str, target: str, rows: int) -> int:
        """Write what a statement gives into a Parquet file of ours; return how many rows."""
        self._read_only(sql)
        path = target.replace("'", "''")
        try:
            cursor = self._connection.execute(
                f"COPY (SELECT * FROM (\n{sql.strip().rstrip(';')}\n) LIMIT {rows}) "
                f"TO '{path}' (FORMAT parquet)"
            )
            [(written,)] = cursor.fetchall()
        except duckdb.Error as failure:
            raise self._said(failure) from None
        return int(written)

    def _read_only(self, sql: str) -> None:
        if len(sql) > _MAX_SQL:
            raise ToolFailed(message=f"a statement has at most {_MAX_SQL} characters")
        try:
            statements = self._connection.extract_statements(sql)
        except duckdb.Error as failure:
            raise self._said(failure) from None
        if len(statements) != 1 or statements[0].type not in _READING:
            said = "only reading is allowed: one SELECT over the tables of this source"
            raise ToolFailed(message=said)

    def _rows(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[Sequence[Any]]:
        while True:
            try:
                batch = cursor.fetchmany(_BATCH)
            except duckdb.Error as failure:
                raise self._said(failure) from None
            except (ValueError, OverflowError):
                said = "a value that cannot be told, such as a very long interval: cast it to text"
                raise ToolFailed(message=said) from None
            self._watch.check(len(batch))
            if not batch:
                return
            yield from batch

    def _said(self, failure: duckdb.Error) -> ToolFailed:
        self._watch.check()
        text = _told(failure)
        if missing := re.search(r"Table with name (.+) does not exist", text):
            tables = self.tables()
            if reason := self._broken.get(missing[1]):
                return ToolFailed(message=f"{missing[1]} cannot be read: {reason}")
            hint = meant(missing[1], list(tables))
            return ToolFailed(message=f"no such table: {missing[1]}{hint}")
        if missing := re.search(r'Referenced column "(.+?)" not found', text):
            known = {one.name for columns in self.tables().values() for one in columns}
            return ToolFailed(
                message=f"no such column: {missing[1]}{meant(missing[1], sorted(known))}"
            )
        if "Out of Memory" in text:
            return ToolFailed(message="needs more memory than is allowed: ask for less")
        if "disabled by configuration" in text or "disabled through configuration" in text:
            return ToolFailed(message="only the tables of this source may be read, no other file")
        return ToolFailed(message=" ".join(text.split())[:1000])


def _told(failure: duckdb.Error) -> str:
    """Return what the engine says, without the statement and without descriptors."""
    text = re.split(r"\n+LINE \d+:", str(failure))[0]
    return re.sub(r"/(proc/self|dev)/fd/\d+", "the file", text)


def _settings(limits: Limits) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "memory_limit": f"{limits.memory_mb}MB",
        "temp_directory": "",
        "threads": 2,
    }


def _views(
    connection: duckdb.DuckDBPyConnection, files: Sequence[File], as_text: bool, watch: Watch
) -> dict[str, str]:
    """Make a view for each file; return why some cannot be read."""
    broken: dict[str, str] = {}
    for file in files:
        watch.check()
        options = ""
        if file.reader == "csv":
            packed = "gzip" if file.compressed else "none"
            options = f", compression='{packed}', buffer_size={_BUFFER}"
            options += ", all_varchar=true" if as_text else ""
        try:
            connection.execute(
                f"CREATE VIEW {quoted(file.table)} AS "
                f"SELECT * FROM read_{file.reader}('{file.path}'{options})"
            )
        except duckdb.Error as failure:
            watch.check()
            said = _told(failure).partition("Possible ")[0]
            broken[file.table] = " ".join(said.split())[:500]
    return broken
