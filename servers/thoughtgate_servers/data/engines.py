"""What every engine that asks in SQL has in common: what it is asked, and what it answers.

Never an engine itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol


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
