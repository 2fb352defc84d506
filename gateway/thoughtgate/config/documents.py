"""JSON with comments and trailing commas: what it says, and where each part of it stands.

Never changes a text.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from thoughtgate.config.texts import BOM, fault

TOKEN = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?'
    r'|[\[\]{},:]|[^\s"\[\]{},:/]++|/',
    re.DOTALL,
)
"""Strings and comments that nothing ends are whole, too: each would be looked through again."""

SPACE = " \t\r\n"
_NEXT = re.compile(r"[ \t\r\n]*")
_CONSTANTS = {"NaN", "Infinity", "-Infinity"}


class _Number(str):
    """A number as it is written: nothing is computed from it, so it stays exact."""

    __slots__ = ()


class Member(NamedTuple):
    """A member of an object: its key, and where key and value begin and the value ends."""

    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """An object of the text: its braces, its members, and whether its own key begins a line."""

    open: int
    close: int
    members: tuple[Member, ...]
    on_own_line: bool

    def find(self, key: str, text: str) -> Member | None:
        """Return the member with a key of this object of `text`.

        Raises:
            Unreadable: The key is there twice.
        """
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise fault(text, found[1].start, f"{json.dumps(key)} stands here a second time")
        return found[0] if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text and the same as plain JSON: comments and trailing commas are blanks there.

    `trailing` holds the place of an object's or list's last comma by that of its closing bracket,
    `line_comments` where each comment begins and ends that a line end closes.
    """

    text: str
    plain: str
    trailing: Mapping[int, int] = field(default_factory=dict)
    line_comments: Sequence[tuple[int, int]] = ()

    @property
    def root(self) -> int:
        """Return where the value of the document begins; its length when there is none."""
        return skip(self.plain, 0)

    def object_at(self, at: int, *, on_own_line: bool) -> Object:
        """Return the object that begins at `at`.

        Raises:
            Unreadable: Something else stands there.
        """
        if self.plain[at] != "{":
            raise fault(self.text, at, "an object is needed here")
        members = list[Member]()
        here = skip(self.plain, at + 1)
        while self.plain[here] != "}":
            key, end = _EXACT.raw_decode(self.plain, here)
            value = skip(self.plain, skip(self.plain, end) + 1)
            end = end_of(self.plain, value)
            members.append(Member(key, here, value, end))
            here = skip(self.plain, end)
            if self.plain[here] == ",":
                here = skip(self.plain, here + 1)
        return Object(open=at, close=here, members=tuple(members), on_own_line=on_own_line)

    def line_indent(self, at: int) -> str:
        """Return the blanks that the line of `at` begins with."""
        start = _line_start(self.text, at)
        return self.text[start : _skip_blanks(self.text, start)].replace(BOM, "")

    def begins_line(self, at: int) -> bool:
        """Say whether only blanks stand before `at` on its line."""
        return not self.text[_line_start(self.text, at) : at].strip(" \t")

    def line_comment_at(self, at: int) -> bool:
        """Say whether `at` is in or at the end of a comment that only a line end closes."""
        return any(start < at <= end for start, end in self.line_comments)


def read(text: str) -> Any:
    """Return what the text says, numbers as they are written; an empty text is an empty object.

    Raises:
        Unreadable: Not JSON, comments and trailing commas aside.
    """
    return parse(text, _EXACT)[1]


def document_of(text: str) -> Document:
    """Return a text with its plain JSON.

    Raises:
        Unreadable: Not JSON, comments and trailing commas aside.
    """
    return parse(text, _EXACT)[0]


def parse(text: str, how: json.JSONDecoder) -> tuple[Document, Any]:
    """Return a text with its plain JSON, and what it says by a decoder; `{}` if it is empty.

    The decoder takes `refuse` as its `parse_constant`: what is Python's only is not JSON.

    Raises:
        Unreadable: Not JSON, comments and trailing commas aside.
    """
    with suppress(ValueError, RecursionError):  # most files are plain JSON
        return Document(text=text, plain=text), how.decode(text)
    document = _plain(text)
    try:
        return document, how.decode(document.plain) if document.plain.strip(SPACE) else {}
    except json.JSONDecodeError as error:
        raise fault(text, error.pos, f"not valid JSON: {error.msg}") from None
    except ValueError:  # more digits than Python turns into a number
        raise fault(text, 0, "not valid JSON: a number has too many digits") from None
    except RecursionError:
        raise fault(text, 0, "not valid JSON: nested too deeply") from None


def _plain(text: str) -> Document:
    """Blank comments and trailing commas; every other character keeps its place."""
    blanks, trailing, comments = dict[int, str](), dict[int, int](), list[tuple[int, int]]()
    last, before, comma = "", "", 0
    for match in TOKEN.finditer(text):
        token, start = match[0], match.start()
        if token.startswith("//") or (token.startswith("/*") and token.endswith("*/", 2)):
            blanks[start] = re.sub(r"[^\r\n]", " ", token)
            comments += [match.span()] if token.startswith("//") else []
            continue
        if token in _CONSTANTS:
            raise fault(text, start, f"not valid JSON: {token} is no value")
        if token in ("]", "}") and last == "," and before not in ("", "[", "{", ",", ":"):
            trailing[start] = comma
            blanks[comma] = " "
        before, last, comma = last, token, start
    if text.startswith(BOM):
        blanks[0] = " "
    plain = _blanked(text, blanks)
    return Document(text=text, plain=plain, trailing=trailing, line_comments=comments)


def _blanked(text: str, blanks: Mapping[int, str]) -> str:
    """Return `text` with blanks in the place of what stands at their offsets, in one pass."""
    pieces, at = list[str](), 0
    for start, blank in sorted(blanks.items()):
        pieces += (text[at:start], blank)
        at = start + len(blank)
    return "".join([*pieces, text[at:]])


def end_of(plain: str, at: int) -> int:
    """Return where the value that begins at `at` ends."""
    return _EXACT.raw_decode(plain, at)[1]


def skip(text: str, at: int) -> int:
    """Return where the blanks and line ends that begin at `at` end."""
    found = _NEXT.match(text, at)
    return found.end() if found else at


def _skip_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", BOM):
        at += 1
    return at


def _line_start(text: str, at: int) -> int:
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    return start + text.startswith(BOM, start)


def refuse(name: str) -> NoReturn:
    """Refuse a constant of Python's that is none of JSON's."""
    raise json.JSONDecodeError(name, "", 0)


_EXACT = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=refuse)
