"""Terminal output: JSON or aligned text on stdout, progress and errors on stderr.

Never lets a control character from a tool server reach the terminal.
"""

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_KEPT = {"\n", "\t"}


def json_flag(command: F) -> F:
    """Add `--json` to a command as its argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


def show(value: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print `value` as JSON, or `lines` (already clean) as text."""
    if as_json:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=_plain)
        click.echo("".join(c if _harmless(c) else json.dumps(c)[1:-1] for c in text))
        return
    for line in lines:
        click.echo(line)


def changed(value: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Say what a command changed: as JSON on stdout, else in words on stderr."""
    if as_json:
        show(value, (), as_json=True)
        return
    for line in lines:
        note(line)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    """Yield aligned lines; wide East Asian characters count twice."""
    grid = [tuple(head), *(tuple(map(one_line, row)) for row in rows)]
    widths = [max(_width(row[at]) for row in grid) for at in range(len(head))]
    for at, row in enumerate(grid):
        cells = [c + " " * (w - _width(c)) for c, w in zip(row, widths, strict=True)]
        line = "  ".join(cells).rstrip()
        yield strong(line) if at == 0 else line


def note(text: str) -> None:
    """Say something about progress, on stderr; once nobody reads there, to nobody."""
    try:
        click.echo(clean(text), err=True)
    except BrokenPipeError:  # what is done does not depend on who listens
        with Path(os.devnull).open("wb") as nobody:
            os.dup2(nobody.fileno(), sys.stderr.fileno())


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 tool` or `2 tools`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def said(value: object, *, nothing: str = "none") -> str:
    """Return a value in words for people: yes and no, lists by commas, `nothing` for what is empty.

    Anything else than these and text is shown as JSON.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ("", [], {}):
        return nothing
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def strong(text: str) -> str:
    """Return `text` in bold where the terminal shows colours."""
    return click.style(text, bold=True) if colours() else text


def colours() -> bool:
    """Say whether stdout takes colours: a terminal, and NO_COLOR is not set."""
    return not os.environ.get("NO_COLOR") and sys.stdout.isatty()


def clean(text: str) -> str:
    """Return `text` with control, format and direction characters made visible."""
    return "".join(c if _harmless(c) else _named(c) for c in text)


def one_line(text: str) -> str:
    """Return clean text with its line ends made visible too."""
    return clean(text).replace("\n", "\\n").replace("\t", "\\t")


def _named(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _harmless(char: str) -> bool:
    return char in _KEPT or unicodedata.category(char) not in {"Cc", "Cf", "Cs"}


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _plain(value: object) -> object:
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)
