"""Tool results as bytes: looked into where something must be known, never rebuilt.

Works only on bytes that `wire.messages` or `wire.strict` have checked.
"""

from typing import Any

import msgspec

from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.wire.methods import RESERVED
from thoughtgate.wire.strict import dumps


class _Text(msgspec.Struct):
    type: Any = ""
    text: Any = ""


class _Content(msgspec.Struct):
    content: list[_Text] = []


_content = msgspec.json.Decoder(_Content).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value = msgspec.json.Decoder(dict[str, Any]).decode


def inside(raw: bytes) -> JsonObject:
    """Return what a result object spells."""
    return _value(raw)


def untyped(raw: bytes) -> bytes:
    """Return a result without `resultType`, which a server of the handshake era cannot mean."""
    if b'"resultType"' not in raw and b"\\u00" not in raw:  # as it is, or with a letter escaped
        return raw
    members = _members(raw)
    if "resultType" not in members:
        return raw
    del members["resultType"]
    return dumps(members)


def structured(raw: bytes) -> JsonValue:
    """Return `structuredContent`, None when it is absent (`inside` tells absent from null)."""
    return inside(raw).get("structuredContent")


def text(raw: bytes) -> str:
    """Return the text blocks of the content, joined by line ends."""
    try:
        blocks = _content(raw).content
    except msgspec.ValidationError:  # content is not a list of objects: there is no text
        return ""
    return "\n".join(
        block.text for block in blocks if block.type == "text" and type(block.text) is str
    )


def make_result(
    *, text: str, structured: JsonValue = msgspec.UNSET, is_error: bool = False
) -> bytes:
    """Return a result of our own: one text block, and structured content when it is given."""
    made: dict[str, JsonValue] = {"content": [{"type": "text", "text": text}]}
    if structured is not msgspec.UNSET:
        made["structuredContent"] = structured
    if is_error:
        made["isError"] = True
    return dumps(made)


def without_reserved(meta: msgspec.Raw) -> msgspec.Raw | None:
    """Return `_meta` without the keys that belong to a hop; None when nothing is left.

    A `_meta` that is not an object is kept as it came.
    """
    try:
        members = _members(meta)
    except msgspec.ValidationError:
        return meta
    kept = {key: value for key, value in members.items() if not key.startswith(RESERVED)}
    if len(kept) == len(members):
        return meta
    return msgspec.Raw(dumps(kept)) if kept else None
