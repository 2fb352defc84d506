"""JSON with comments and trailing commas, edited where it stands.

Never rewrites what it does not change: comments, order, indentation and line ends are the user's.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from thoughtgate.config.clients.text import MASK, Edit, edited, nested, newline
from thoughtgate.config.documents import (
    SPACE,
    TOKEN,
    Document,
    Member,
    Object,
    document_of,
    end_of,
    skip,
)
from thoughtgate.config.texts import BOM

_HIDDEN = f'"{MASK}"'
_KEPT = {BOM, "[", "]", "{", "}", ",", ":", "true", "false", "null"}


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with `value` at `path`; the objects on the way are made if need be.

    Raises:
        Unreadable: The text is not JSON, or something on the way is no object.
    """
    document = document_of(text)
    if document.root == len(text):
        return _begun(text, nested(path, value))
    inside, found, rest = _reach(document, path)
    if found is None:
        return _inserted(document, inside, path[-1 - len(rest)], nested(rest, value))
    flat = not document.begins_line(found.start)
    new = _written(value, document, document.line_indent(found.start), _unit(document), flat=flat)
    return edited(text, [Edit(found.value, found.end, new)])


def drop(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at `path`, which is there; comments stay.

    Raises:
        Unreadable: The text is not JSON, or something on the way is no object.
    """
    document = document_of(text)
    inside, found, rest = _reach(document, path)
    return text if found is None or rest else _removed(document, inside, found)


def masked(text: str, visible: frozenset[str]) -> str:
    """Return the text without comments and values, but for keys and the strings in `visible`."""
    plain = document_of(text).plain
    kept = _KEPT | {json.dumps(word, ensure_ascii=False) for word in visible}

    def shown(match: re.Match[str]) -> str:
        token = match[0]
        if token in kept:
            return token
        if token.startswith("//"):
            return f"// {MASK}"
        if token.startswith("/*"):
            return f"/* {MASK} */"
        after = match.end()
        is_key = plain[after : after + 1] == ":" or plain.startswith(":", skip(plain, after))
        return token if is_key else _HIDDEN

    return TOKEN.sub(shown, text).removeprefix(BOM)


def _reach(
    document: Document, path: Sequence[str], at: int | None = None, *, own: bool = True
) -> tuple[Object, Member | None, Sequence[str]]:
    """Return the last object on the way to `path`, the member there, and the keys after it."""
    inside = document.object_at(document.root if at is None else at, on_own_line=own)
    found = inside.find(path[0], document.text)
    if found is None or len(path) == 1:
        return inside, found, path[1:]
    own = document.begins_line(found.start)
    return _reach(document, path[1:], found.value, own=own)


def _begun(text: str, value: Any) -> str:
    """Return a text that held nothing but comments, with an object after them."""
    line = newline(text)
    lead = text if text.strip(SPACE + BOM) else text[: text.startswith(BOM)]
    gap = line if lead.strip(BOM) and not lead.endswith(("\n", "\r")) else ""
    whole = _written(value, document_of(text), "", "  ", flat=False)
    return f"{lead}{gap}{whole}{line}"


def _inserted(document: Document, inside: Object, key: str, value: Any) -> str:
    """Return the text with a new last member in an object."""
    if not inside.members:
        return _filled(document, inside, key, value)
    text, last = document.text, inside.members[-1]
    comma = document.trailing.get(inside.close)
    at = len(text[: inside.close].rstrip(SPACE))
    if document.begins_line(last.start):
        indent = document.line_indent(last.start)
        lead, flat = newline(text) + indent, False
    elif document.line_comment_at(at):
        indent = document.line_indent(inside.open) + _unit(document)
        lead, flat = newline(text) + indent, False
    else:
        indent, flat = "", True
        lead = " " if _spaced(document, inside) else ""
    unit = _step(document, inside, indent)
    new = lead + _member(key, value, document, (indent, unit), flat=flat)
    if comma is not None:
        return edited(text, [Edit(at, at, f"{new},")])
    if at == last.end:
        return edited(text, [Edit(at, at, f",{new}")])
    return edited(text, [Edit(last.end, last.end, ","), Edit(at, at, new)])


def _filled(document: Document, inside: Object, key: str, value: Any) -> str:
    """Return the text with a first member in an object that has none."""
    text, line = document.text, newline(document.text)
    inner = text[inside.open + 1 : inside.close]
    comments = bool(inner.strip(SPACE))
    if not inside.on_own_line and not comments:
        new = _member(key, value, document, ("", ""), flat=True)
        return edited(text, [Edit(inside.open + 1, inside.close, new)])
    base, unit = document.line_indent(inside.open), _unit(document)
    new = _member(key, value, document, (base + unit, unit), flat=False)
    start = inside.open + 1 + (len(inner.rstrip(SPACE)) if comments else 0)
    return edited(text, [Edit(start, inside.close, f"{line}{base}{unit}{new}{line}{base}")])


def _removed(document: Document, inside: Object, member: Member) -> str:
    text, at = document.text, inside.members.index(member)
    if at + 1 < len(inside.members):
        comma = document.plain.index(",", member.end)
        end = skip(document.text, comma + 1)
        return edited(text, [Edit(member.start, member.end, ""), Edit(comma, end, "")])
    trailing = document.trailing.get(inside.close)
    end = member.end if trailing is None else trailing + 1
    start = len(text[: member.start].rstrip(SPACE))
    if at == 0:
        left, right = text[inside.open + 1 : member.start], text[end : inside.close]
        if not (left + right + text[member.end : end - 1]).strip(SPACE):
            return edited(text, [Edit(inside.open + 1, inside.close, "")])
    edits = [Edit(start, member.end, _break(document, start, end))]
    if trailing is not None:
        edits.append(Edit(trailing, end, ""))
    elif at > 0:
        comma = document.plain.index(",", inside.members[at - 1].end)
        if comma + 1 == start:
            edits[0] = Edit(comma, member.end, edits[0].new)
        else:
            edits.append(Edit(comma, comma + 1, ""))
    return edited(text, edits)


def _break(document: Document, start: int, end: int) -> str:
    """Return the line end that must stay between a comment and what goes on after it."""
    rest = document.text[end:].lstrip(" \t")
    if not document.line_comment_at(start) or rest.startswith(("\r", "\n")):
        return ""
    return newline(document.text)


def _member(key: str, value: Any, document: Document, style: tuple[str, str], *, flat: bool) -> str:
    indent, unit = style
    colon = ": " if not flat or _colon_spaced(document) else ":"
    name = json.dumps(key, ensure_ascii=False)
    return f"{name}{colon}{_written(value, document, indent, unit, flat=flat)}"


def _written(value: Any, document: Document, indent: str, unit: str, *, flat: bool) -> str:
    """Return a value as text, objects over several lines with `indent` before each, or on one."""
    if flat or not isinstance(value, Mapping) or not value:
        tight = flat and not _colon_spaced(document)
        marks = (",", ":") if tight else (", ", ": ")
        return json.dumps(value, ensure_ascii=False, separators=marks)
    line, inner = newline(document.text) + indent, indent + unit
    members = [
        line + unit + _member(key, item, document, (inner, unit), flat=False)
        for key, item in value.items()
    ]
    return f"{{{','.join(members)}{line}}}"


def _colon_spaced(document: Document) -> bool:
    """Say whether the first key of the document has a blank after its colon, or there is none."""
    plain, root = document.plain, document.root
    first = skip(plain, root + 1)
    if plain[first : first + 1] != '"':
        return True
    colon = skip(plain, end_of(plain, first))
    return plain[colon + 1] in SPACE


def _spaced(document: Document, inside: Object) -> bool:
    """Say whether a blank follows the commas of an object on one line."""
    if len(inside.members) < 2:
        return _colon_spaced(document)
    comma = document.plain.index(",", inside.members[0].end)
    return document.plain[comma + 1] in SPACE


def _unit(document: Document) -> str:
    """Return the indentation of one level, as the document's first member shows."""
    first = skip(document.plain, document.root + 1)
    indent = document.line_indent(first) if document.begins_line(first) else ""
    base = document.line_indent(document.root)
    return indent.removeprefix(base) or "  "


def _step(document: Document, inside: Object, indent: str) -> str:
    """Return the indentation of one level below members that have `indent`."""
    base = document.line_indent(inside.open)
    more = indent.removeprefix(base) if indent.startswith(base) else ""
    return more or _unit(document)
