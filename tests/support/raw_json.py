"""JSON for raw peers: spelled by hand, read by the standard library, compared without mercy.

Knows nothing of the package under test, so that the two cannot share a mistake.
"""

import json
import struct
from dataclasses import dataclass
from typing import Any

RESERVED = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a spelling of its own."""

    text: str


@dataclass(frozen=True, slots=True)
class Style:
    """How a document is spelled: white space between tokens, and whether it is all ASCII."""

    pad: str = ""
    ascii: bool = False

    def on_one_line(self) -> "Style":
        return Style(self.pad.replace("\n", " ").replace("\r", " "), self.ascii)


PLAIN = Style()


def spell(value: Any, style: Style = PLAIN) -> str:
    """Return JSON in a style; a `Number` is spelled as it says."""
    pad = style.pad
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        members = f"{pad},{pad}".join(
            f"{json.dumps(key, ensure_ascii=style.ascii)}{pad}:{pad}{spell(item, style)}"
            for key, item in value.items()
        )
        return f"{{{pad}{members}{pad}}}"
    if isinstance(value, list):
        return f"[{pad}{f'{pad},{pad}'.join(spell(item, style) for item in value)}{pad}]"
    return json.dumps(value, ensure_ascii=style.ascii)


def read(text: str | bytes) -> Any:
    """Return what a document says; integers are exact, keys in order, nothing is repeated."""
    return json.loads(text, object_pairs_hook=_once)


def difference(sent: Any, got: Any, path: str = "") -> str | None:
    """Return where two documents differ, None when they are the same value for value."""
    if type(sent) is not type(got):
        return f"{path or '/'}: {type(sent).__name__} became {type(got).__name__}"
    if isinstance(sent, dict):
        if list(sent) != list(got):
            return f"{path or '/'}: keys {list(sent)!r:.200} became {list(got)!r:.200}"
        pairs = ((key, sent[key], got[key]) for key in sent)
    elif isinstance(sent, list):
        if len(sent) != len(got):
            return f"{path or '/'}: {len(sent)} items became {len(got)}"
        pairs = ((str(at), *both) for at, both in enumerate(zip(sent, got, strict=True)))
    else:
        return None if _equal(sent, got) else f"{path or '/'}: {sent!r:.80} became {got!r:.80}"
    found = (difference(before, after, f"{path}/{key}") for key, before, after in pairs)
    return next((where for where in found if where), None)


def kept_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """Return `_meta` without what belongs to a hop."""
    hop = {"progressToken", "traceparent", "tracestate"}
    return {
        key: value for key, value in meta.items() if key not in hop and not key.startswith(RESERVED)
    }


def without_hop(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without what belongs to a hop; a `_meta` of only that is none."""
    kept = {key: value for key, value in result.items() if key != "resultType"}
    if isinstance(kept.get("_meta"), dict):
        kept["_meta"] = {
            key: value for key, value in kept["_meta"].items() if not key.startswith(RESERVED)
        }
        if not kept["_meta"]:
            del kept["_meta"]
    return kept


def _equal(sent: Any, got: Any) -> bool:
    if isinstance(sent, float):
        return struct.pack("d", sent) == struct.pack("d", got)
    return bool(sent == got)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    assert len(value) == len(pairs), "a key came twice"
    return value
