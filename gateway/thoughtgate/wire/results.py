"""Tool results as bytes: looked into where something must be known, never rebuilt.

Works only on bytes that `wire.messages` or `wire.strict` have checked.
"""

from typing import Any

import msgspec

from thoughtgate.core.json import JsonValue
from thoughtgate.wire.methods import RESERVED
from thoughtgate.wire.strict import dumps

_ABSENT = msgspec.Raw(b"")


class Peek(msgspec.Struct, frozen=True, kw_only=True):
    """What the path needs to know of a result.

    `structured_raw` is the bytes of `structuredContent`, empty when it is absent; `result_type` is
    the `resultType` of the stateless era, empty when it is absent.
    """

    is_error: bool
    has_structured: bool
    structured_raw: bytes
    result_type: str

    def structured(self) -> JsonValue:
        """Return `structuredContent`, None when it is absent."""
        return _value(self.structured_raw) if self.structured_raw else None


class _Outline(msgspec.Struct, rename="camel"):
    is_error: Any = False
    structured_content: msgspec.Raw = _ABSENT
    result_type: Any = ""


class _Text(msgspec.Struct):
    type: Any = ""
    text: Any = ""


class _Content(msgspec.Struct):
    content: list[_Text] = []


_outline = msgspec.json.Decoder(_Outline).decode
_content = msgspec.json.Decoder(_Content).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value = msgspec.json.Decoder().decode


def peek(raw: bytes) -> Peek:
    """Return the outline of a result object."""
    found = _outline(raw)
    structured = bytes(found.structured_content)
    return Peek(
        is_error=found.is_error is True,
        has_structured=bool(structured),
        structured_raw=structured,
        result_type=found.result_type if type(found.result_type) is str else "",
    )


def result_type(raw: bytes) -> str:
    """Return the `resultType`, empty when there is none; cheap when nothing hints at one."""
    return peek(raw).result_type if _may_be_typed(raw) else ""


def untyped(raw: bytes) -> bytes:
    """Return a result without `resultType`, which a server of the handshake era cannot mean."""
    if not _may_be_typed(raw):
        return raw
    members = _members(raw)
    if "resultType" not in members:
        return raw
    del members["resultType"]
    return dumps(members)


def structured(raw: bytes) -> JsonValue:
    """Return `structuredContent`, None when it is absent (ask `peek` to tell absent from null)."""
    return peek(raw).structured()


def _may_be_typed(raw: bytes) -> bool:
    """Tell whether a result may have a `resultType`, as it is or with a letter escaped."""
    return b'"resultType"' in raw or b"\\u00" in raw


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
