"""JSON objects inside a model's text: found by looking at strings, then read strictly.

Never mends: a text that is almost JSON is an error with a position, so that the model is asked
again and no key is lost or made up.
"""

from dataclasses import dataclass

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonObject
from thoughtgate.wire.strict import parse

MAX_OBJECT = 262_144


class Unreadable(ValueError):
    """A text that does not hold what was asked for; its text says why, for the model."""

    def __init__(self, *, why: str) -> None:
        super().__init__(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An object and where its text ends."""

    value: JsonObject
    end: int


def object_at(text: str, start: int) -> Found:
    """Return the JSON object that begins at `text[start]`, which is `{`.

    Raises:
        Unreadable: It has no end, or is not strict JSON.
    """
    end = _end_of_object(text, start)
    if end - start > MAX_OBJECT:
        raise Unreadable(why=f"the JSON object is longer than {MAX_OBJECT} characters")
    try:
        value = parse(text[start:end].encode())
    except (Malformed, UnicodeEncodeError) as error:
        reason = error.message if isinstance(error, Malformed) else "it holds half a character"
        raise Unreadable(why=f"not valid JSON: {reason}") from None
    return Found(value=value, end=end)


def object_in(text: str) -> JsonObject:
    """Return the one object that `text` starts with, white space and a code fence left aside.

    Raises:
        Unreadable: It starts with something else.
    """
    start = opening(text)
    if start < 0:
        raise Unreadable(why='a JSON object is needed, such as {} or {"key": "value"}')
    return object_at(text, start).value


def opening(text: str) -> int:
    """Return where the object begins that `text` starts with, -1 when it starts otherwise."""
    head = text.lstrip()
    if head.startswith("```"):
        _, _, head = head.partition("\n")
        head = head.lstrip()
    elif head.startswith("`{"):
        head = head[1:]
    return len(text) - len(head) if head.startswith("{") else -1


def _end_of_object(text: str, start: int) -> int:
    depth, at, quoted = 0, start, False
    while at < len(text):
        here = text[at]
        if quoted:
            if here == "\\":
                at += 1
            quoted = here != '"'
        elif here == '"':
            quoted = True
        elif here in "{[":
            depth += 1
        elif here in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    raise Unreadable(why="the JSON object has no end; was the reply cut?")
