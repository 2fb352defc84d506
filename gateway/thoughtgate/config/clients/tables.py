"""TOML, edited where it stands: tables are added and removed as lines of text.

Never rewrites what it does not change: comments, order and line ends are the user's.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from thoughtgate.config.clients.text import MASK, Edit, Path, edited, newline
from thoughtgate.config.texts import BOM, fault
from thoughtgate.config.toml import BARE, key_text, read, value_text

_KEY = re.compile(r'[ \t]*("(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+)[ \t]*')
_LEAD = re.compile(rf"(?:[ \t\r\n{BOM}]|#[^\n]*)*")
_BLANKS = re.compile(r"[ \t]*")
_CLOSE = re.compile(r"\]*")
_REST = re.compile(r"[^\n]*\n?")
_VALUE = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' + r"'''.*?'{3,5}|"
    r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'|"
    r"#[^\n]*|[\[\]{},=]|\d{4}-\d\d-\d\d[Tt ]\d\d[^\s#\[\]{},=]*|\r?\n|[ \t]+|[^\s\"'#\[\]{},=]+",
    re.DOTALL,
)
_SHOWN = {"true", "false", *"[]{},="}


class _Statement(NamedTuple):
    """A header (`value` is None) or a key with its value: its full path, and where it stands.

    `value` is where the value begins, `body` where header or value end, `end` is behind the line.
    """

    path: Path
    start: int
    value: int | None
    body: int
    end: int


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with `value` at `path`: an entry of a table of tables, or a value in one.

    Raises:
        Unreadable: The text is not TOML, or is written in a way that is not edited.
    """
    root = read(text)
    statements = _statements(text)
    _refuse_inline(text, statements, path[:1])
    entry = tuple(path[:2])
    if len(path) == 2:
        kept = drop(text, path) if any(s.path[:2] == entry for s in statements) else text
        return _appended(kept, entry, value)
    for statement in statements:
        if statement.path == tuple(path) and statement.value is not None:
            return edited(text, [Edit(statement.value, statement.body, value_text(value))])
    header = [s for s in statements if s.path == tuple(path[:-1]) and s.value is None]
    if header:
        return _added(text, _last_of(statements, header[0]), path[-1], value)
    whole = root[path[0]][path[1]]
    inner = {**whole, path[2]: {**whole.get(path[2], {}), path[3]: value}} if path[3:] else None
    if inner and any(s.path == tuple(path[:3]) and s.value is not None for s in statements):
        return put(text, path[:3], inner[path[2]])
    return _appended(drop(text, entry), entry, inner or {**whole, path[2]: value})


def drop(text: str, path: Sequence[str]) -> str:
    """Return the text without everything at and below `path`, comments within it too.

    Raises:
        Unreadable: The text is not TOML, or is written in a way that is not edited.
    """
    read(text)
    statements = _statements(text)
    _refuse_inline(text, statements, path[:1])
    wanted = tuple(path)
    edits = list[Edit]()
    inside = False
    for statement in statements:
        ours = statement.path[: len(wanted)] == wanted
        if statement.value is None:
            inside = ours
            if ours:
                edits.append(Edit(_after_blank_line(text, statement.start), statement.end, ""))
        elif ours and inside:
            edits[-1] = Edit(edits[-1].start, statement.end, "")
        elif ours:
            edits.append(Edit(statement.start, statement.end, ""))
    return edited(text, edits)


def masked(text: str, visible: frozenset[str]) -> str:
    """Return the text without comments and values, but for keys and the strings in `visible`."""
    read(text)
    pieces, at = list[str](), 0
    for statement in _statements(text):
        value = statement.body if statement.value is None else statement.value
        pieces += (
            _no_comments(text[at : statement.start]),
            text[statement.start : value],
            _masked_value(text[value : statement.body], visible),
            _no_comments(text[statement.body : statement.end]),
        )
        at = statement.end
    return "".join([*pieces, _no_comments(text[at:])]).removeprefix(BOM)


def _statements(text: str) -> list[_Statement]:
    return list(_walk(text))


def _walk(text: str) -> Iterator[_Statement]:
    """Yield the statements of a text that is known to be TOML."""
    table: Path = ()
    at = _end(_LEAD, text, 0)
    while at < len(text):
        start = at
        if text[at] == "[":
            at += 2 if text.startswith("[[", at) else 1
            table, at = _keys(text, at)
            at = _end(_CLOSE, text, at)
            end = _end(_REST, text, at)
            yield _Statement(table, start, None, at, end)
        else:
            keys, at = _keys(text, at)
            value = _end(_BLANKS, text, at + 1)
            after = _value_end(text, value)
            end = _end(_REST, text, after)
            yield _Statement((*table, *keys), start, value, after, end)
        at = _end(_LEAD, text, end)


def _keys(text: str, at: int) -> tuple[Path, int]:
    """Return a dotted key that begins at `at`, and where it ends."""
    keys = list[str]()
    while match := _KEY.match(text, at):
        keys.append(match[1] if BARE.fullmatch(match[1]) else next(iter(read(f"{match[1]}=0"))))
        at = match.end()
        if text[at : at + 1] != ".":
            break
        at += 1
    return tuple(keys), at


def _value_end(text: str, at: int) -> int:
    """Return where the value that begins at `at` ends: at the line end or comment after it."""
    depth, end = 0, at
    for match in _VALUE.finditer(text, at):
        token = match[0]
        if depth == 0 and (token.startswith("#") or token in ("\n", "\r\n")):
            break
        depth += (token in ("[", "{")) - (token in ("]", "}"))
        if token.strip():
            end = match.end()
    return end


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _refuse_inline(text: str, statements: Sequence[_Statement], path: Sequence[str]) -> None:
    for statement in statements:
        if statement.path == tuple(path) and statement.value is not None:
            raise fault(
                text,
                statement.start,
                f"{path[0]} is written in one piece; write each entry as a table, "
                f"[{path[0]}.NAME], and try again",
            )


def _last_of(statements: Sequence[_Statement], header: _Statement) -> _Statement:
    """Return the last statement of the table that `header` begins."""
    last = header
    for statement in statements[statements.index(header) + 1 :]:
        if statement.value is None:
            break
        last = statement
    return last


def _after_blank_line(text: str, start: int) -> int:
    """Return where the blank line before `start` begins, `start` itself if there is none."""
    found = re.search(r"(?:^|(?<=\n))[ \t]*\r?\n\Z", text[:start])
    return found.start() if found else start


def _appended(text: str, path: Path, entry: Mapping[str, Any]) -> str:
    """Return the text with a table at its end, after a blank line."""
    line = newline(text)
    lead = text
    if lead.strip(BOM):
        lead += "" if lead.endswith("\n") else line
        lead += "" if lead.endswith(("\n\n", "\n\r\n")) else line
    head = f"[{'.'.join(map(key_text, path))}]"
    lines = [head, *(f"{key_text(key)} = {value_text(value)}" for key, value in entry.items())]
    return lead + "".join(f"{each}{line}" for each in lines)


def _added(text: str, last: _Statement, key: str, value: Any) -> str:
    """Return the text with a line after a statement."""
    line = newline(text)
    gap = "" if text[: last.end].endswith("\n") else line
    return edited(
        text, [Edit(last.end, last.end, f"{gap}{key_text(key)} = {value_text(value)}{line}")]
    )


def _no_comments(text: str) -> str:
    return re.sub(r"#[^\r\n]*", f"# {MASK}", text)


def _masked_value(text: str, visible: frozenset[str]) -> str:
    def shown(match: re.Match[str]) -> str:
        token = match[0]
        if not token.strip() or token in _SHOWN:
            return token
        if token.startswith("#"):
            return f"# {MASK}"
        is_key = text[match.end() :].lstrip(" \t").startswith("=")
        if is_key or (token[0] in "\"'" and read(f"x={token}")["x"] in visible):
            return token
        return f'"{MASK}"'

    return _VALUE.sub(shown, text)
