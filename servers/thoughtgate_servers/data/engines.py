"""What asks in SQL: the two engines behind one small interface, and how they are told apart.

Never imports DuckDB for a source that needs none.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Protocol

from thoughtgate_servers.data.limits import Limits, Watch
from thoughtgate_servers.data.sources import Source
from thoughtgate_servers.table import ToolFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its name, and its type as the engine says it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a statement gives: its columns, then its rows as they come."""

    columns: tuple[Column, ...]
    rows: Iterator[Sequence[Any]]


class Engine(Protocol):
    """One open source."""

    @property
    def dialect(self) -> str:
        """Return whose SQL is understood."""

    def tables(self) -> dict[str, tuple[Column, ...]]:
        """Return the tables and views with their columns."""

    def select(self, sql: str) -> Answer:
        """Run one statement that only reads.

        Raises:
            ToolFailed: It is no such statement, or the engine does not take it.
        """


@contextmanager
def engine(
    source: Source, limits: Limits, watch: Watch, *, as_text: bool = False
) -> Iterator[Engine]:
    """Open the engine of a source; `as_text` reads every column of a CSV file as text.

    Raises:
        ToolFailed: The engine is not installed, or cannot read the source.
    """
    if source.database is not None:
        module = import_module("thoughtgate_servers.data.sqlite_engine")
    else:
        try:
            module = import_module("thoughtgate_servers.data.duckdb_engine")
        except ModuleNotFoundError:
            said = "CSV and Parquet need DuckDB: pip install 'thoughtgate[data]'"
            raise ToolFailed(message=said) from None
    with module.opened(source, limits, watch, as_text) as one:
        yield one


def quoted(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def meant(name: str, known: Sequence[str]) -> str:
    """Return what may have been meant by a name that is not known, in words."""
    folded = {one.casefold(): one for one in known}
    close = get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.5)
    if close:
        return "; did you mean " + " or ".join(folded[one] for one in close) + "?"
    shown = ", ".join(known[:20])
    return f"; known are {shown}" if shown else ""
