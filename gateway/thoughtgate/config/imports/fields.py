"""One server's table, read key by key; what is not as it must be is noted, never guessed.

Never raises for what stands in the file: every problem is wanted, not only the first.
"""

from collections.abc import Callable, Mapping
from typing import Any

from thoughtgate.config.imports.places import Place, Remark
from thoughtgate.config.imports.variables import Filler
from thoughtgate.core.errors import ConfigError


class Fields:
    """The values of a table with their variables filled in; `problems` and `notes` grow."""

    def __init__(self, table: Mapping[str, Any], server: str, place: Place, fill: Filler) -> None:
        self.table = table
        self.place = place
        self.fill = fill
        self.problems: list[Remark] = []
        self.notes: list[Remark] = []
        self._server = server

    def problem(self, text: str, *steps: str | int) -> None:
        """Say what is wrong at a key; it keeps everything from being imported."""
        key = str(self.place.at(*steps))
        self.problems.append(Remark(server=self._server, key=key, text=text))

    def note(self, text: str, *steps: str | int) -> None:
        """Say what a person should know about a key."""
        key = str(self.place.at(*steps))
        self.notes.append(Remark(server=self._server, key=key, text=text))

    def inside(self, key: str) -> "Fields":
        """Return the table that stands at `key`; what is said of it is said here."""
        inner = Fields(self.table[key], self._server, self.place.at(key), self.fill)
        inner.problems, inner.notes = self.problems, self.notes
        return inner

    def given(self, key: str) -> bool:
        """Say whether there is a value; null is none."""
        return self.table.get(key) is not None

    def to_be_asked(self, key: str) -> bool:
        """Say whether the value at `key` cannot be judged before somebody was asked."""
        return bool(self.fill.wanted) and "${input:" in str(self.table.get(key))

    def text(self, key: str) -> str:
        """Return a text; empty when there is none."""
        value = self.table.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.problem("must be text", key)
            return ""
        return self._filled(value, key)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; numbers in it are taken as they are written."""
        value = self.table.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.problem("must be a list of texts", key)
            return ()
        return tuple(self._item(item, key, at) for at, item in enumerate(value))

    def pairs(self, key: str) -> dict[str, str]:
        """Return a table of texts; an entry that is null is left out."""
        value = self.table.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.problem("must be a table of names and texts", key)
            return {}
        return {
            name: self._item(item, key, name) for name, item in value.items() if item is not None
        }

    def flag(self, key: str) -> bool | None:
        """Return true or false; None when not given."""
        value = self.table.get(key)
        if value is not None and not isinstance(value, bool):
            self.problem("must be true or false", key)
            return None
        return value

    def seconds(self, key: str, unit: float = 1.0) -> float | None:
        """Return a time in seconds, given in `unit` seconds; None when not given."""
        value = self.table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.problem("must be a number", key)
            return None
        if not 0.1 / unit <= value <= 86_400 / unit:  # an integer may be beyond any float
            self.problem("must be between 0.1 and 86400 seconds", key)
            return None
        return float(value * unit)

    def found(self, look: Callable[[], str], *steps: str | int) -> str:
        """Return what `look` returns; what it raises is a problem of that key."""
        try:
            return look()
        except ConfigError as error:
            self.problem(error.message, *steps)
            return ""

    def _item(self, item: object, *steps: str | int) -> str:
        if isinstance(item, bool):
            return str(item).lower()
        if isinstance(item, int | float):
            return str(item)
        if not isinstance(item, str):
            self.problem("must be text", *steps)
            return ""
        return self._filled(item, *steps)

    def _filled(self, value: str, *steps: str | int) -> str:
        text = self.found(lambda: self.fill(value), *steps)
        if "\0" in text or not _is_text(text):
            self.problem("holds a character that no program can be given", *steps)
            return ""
        return text


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as JSON may spell it
        return False
    return True
