"""Opens the engine of a source: SQLite for a database, DuckDB for files.

Never imports DuckDB for a source that needs none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from thoughtgate_servers.data import sqlite_engine
from thoughtgate_servers.data.engines import Engine
from thoughtgate_servers.data.limits import Limits, Watch
from thoughtgate_servers.data.sources import Source
from thoughtgate_servers.table import ToolFailed


@contextmanager
def engine(
    source: Source, limits: Limits, watch: Watch, *, as_text: bool = False
) -> Iterator[Engine]:
    """Open the engine of a source; `as_text` reads every column of a CSV file as text.

    Raises:
        ToolFailed: The engine is not installed, or cannot read the source.
    """
    module: Any = sqlite_engine
    if source.database is None:
        try:
            module = import_module("thoughtgate_servers.data.duckdb_engine")
        except ModuleNotFoundError:
            said = "CSV and Parquet need DuckDB: pip install 'thoughtgate[data]'"
            raise ToolFailed(message=said) from None
    with module.opened(source, limits, watch, as_text) as one:
        yield one
