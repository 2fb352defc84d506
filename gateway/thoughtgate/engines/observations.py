"""Observations as text for models and people.

Never an instruction: what a tool returned is cleaned of hidden characters, cut at code points and
set between marks that its author cannot have known.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.wire.strict import dumps

_FIELDS = 6
_FIELD_CHARS = 80
_JOINERS = frozenset({"\u200c", "\u200d"})  # needed inside emoji and Indic words
_SPACES = frozenset({"\n", "\t"})


def failure(message: str, details: Iterable[str] = ()) -> JsonObject:
    """Return the observation of a call that brought no result."""
    text = "\n".join([message, *details])
    return {"content": [{"type": "text", "text": text}], "isError": True}


def is_error(observation: JsonValue) -> bool:
    """Say whether the observation is one of failure."""
    return isinstance(observation, Mapping) and observation.get("isError") is True


def as_text(observation: JsonValue) -> str:
    """Return what an observation says: its structured content, else its text blocks."""
    if not isinstance(observation, Mapping):
        return cleaned(dumps(observation).decode())
    if "structuredContent" in observation and not is_error(observation):
        return cleaned(dumps(observation["structuredContent"]).decode())
    content = observation.get("content")
    blocks = content if isinstance(content, list) else []
    return cleaned("\n".join(_block(block) for block in blocks))


def cleaned(text: str) -> str:
    """Return `text` without the characters that a reader cannot see."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(here for here in text if _visible(here))


def cut(text: str, limit: int) -> str:
    """Return at most `limit` code points of `text`, saying so when something is missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} … [cut: {limit} of {len(text)} characters shown]"


def delimited(text: str) -> str:
    """Return `text` between two marks made of its own digest, so that it cannot contain them."""
    mark = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
    return f"<data {mark}>\n{text}\n</data {mark}>"


def condensed(observation: JsonValue) -> str:
    """Return one line: the first fields of the structured content, or the start of the text."""
    if isinstance(observation, Mapping):
        inner = observation.get("structuredContent")
        if isinstance(inner, Mapping):
            shown = [f"{key} = {_short(inner[key])}" for key in list(inner)[:_FIELDS]]
            more = f"; {len(inner) - _FIELDS} more" if len(inner) > _FIELDS else ""
            return cleaned("; ".join(shown) + more)
    return cut(" ".join(as_text(observation).split()), 4 * _FIELD_CHARS)


def _short(value: JsonValue) -> str:
    if isinstance(value, (list, Mapping)) and value:
        kind = "entries" if isinstance(value, list) else "members"
        return f"[{len(value)} {kind}]"
    return cut(dumps(value).decode(), _FIELD_CHARS)


def _block(block: JsonValue) -> str:
    if not isinstance(block, Mapping):
        return ""
    if isinstance(block.get("text"), str):
        return str(block["text"])
    return f"[{block.get('type', 'unknown')} {block.get('mimeType', '')}]".replace(" ]", "]")


def _visible(here: str) -> bool:
    if here in _SPACES or here in _JOINERS:
        return True
    return unicodedata.category(here) not in {"Cc", "Cf", "Cs", "Co"}
