"""What is common to texts that are edited where they stand: edits, paths, line ends.

Never knows a format.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MASK = "***"
"""What stands for a value that is not shown."""

Path = tuple[str, ...]
"""The keys that lead from the root of a file to a value."""


class Edit(NamedTuple):
    """One piece of a text, and what takes its place."""

    start: int
    end: int
    new: str


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return `text` with edits made that do not overlap."""
    for start, end, new in sorted(edits, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


def newline(text: str) -> str:
    """Return the line end that a text uses, as its first line shows."""
    found = re.search(r"\r\n|\n|\r", text)
    return found[0] if found else "\n"


def nested(path: Sequence[str], value: Any) -> Any:
    """Return `value` in objects of one key each, the outermost first."""
    for key in reversed(path):
        value = {key: value}
    return value


def with_value(root: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return `root` with the value at `path` set; the objects on the way are there or made."""
    first, *rest = path
    inner = with_value(root.get(first, {}), rest, value) if rest else value
    return {**root, first: inner}


def without(root: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return `root` without the value at `path`, which is there."""
    first, *rest = path
    if not rest:
        return {key: value for key, value in root.items() if key != first}
    return {**root, first: without(root[first], rest)}
