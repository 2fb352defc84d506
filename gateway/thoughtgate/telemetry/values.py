"""From recorded attributes to values that OTLP can hold: bounded, valid UTF-8, without secrets.

Never runs on the path of a call: the exporter's thread does this work.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from thoughtgate.telemetry import names
from thoughtgate.telemetry.redact import HIDDEN, is_secret_name

VALUE_LIMIT = 64 * 1024
"""Bytes of UTF-8 that one attribute value may have; longer ones are cut and marked."""

DESCRIPTION_LIMIT = 512
ATTRIBUTE_LIMIT = 128
LIST_LIMIT = 256
NAME_LIMIT = 256

Attribute = str | bool | int | float | tuple[str, ...]
Redact = Callable[[str], str]

_INT64 = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """Attributes to export; `cut` and `hidden` name those whose values were changed."""

    attributes: Mapping[str, Attribute]
    cut: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


def cleaned(found: Mapping[str, object], redact: Redact, *, room: int = ATTRIBUTE_LIMIT) -> Cleaned:
    """Return what can be exported of `found`: the first `room` of those that have a value."""
    out: dict[str, Attribute] = {}
    remarks: dict[str, list[str]] = {names.TRUNCATED: [], names.REDACTED: []}
    for name, value in found.items():
        if value is None or len(out) == room:
            continue
        shown, remark = _attribute(name, value, redact)
        name = text_value(name, NAME_LIMIT)
        out[name] = shown
        if remark:
            remarks[remark].append(name)
    cut, hidden = remarks.values()
    return Cleaned(attributes=out, cut=tuple(cut), hidden=tuple(hidden))


def description(error: str, redact: Redact) -> str:
    """Return one clean, bounded line."""
    printable = "".join(c if c.isprintable() else " " for c in error[: 4 * DESCRIPTION_LIMIT])
    return text_value(redact(printable), DESCRIPTION_LIMIT)


def text_value(text: str, limit: int = VALUE_LIMIT) -> str:
    """Return `text` as valid UTF-8 of at most `limit` bytes; a mark tells when some is gone."""
    shown, _ = _bounded(text, limit, len(text))
    return shown


def _bounded(text: str, limit: int, length: int) -> tuple[str, bool]:
    """Return the text and whether it was cut; `length` is what the mark says it had."""
    try:
        data = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        data = text.encode("utf-8", "replace")
        text = data.decode()
    if len(data) <= limit and len(text) >= length:
        return text, False
    return f"{data[:limit].decode('utf-8', 'ignore')}… [cut from {length} characters]", True


def _attribute(name: str, value: object, redact_text: Redact) -> tuple[Attribute, str]:
    """Return the value to export and which of our two remarks it earns, or an empty string."""
    if isinstance(value, bool | float):
        return value, ""
    if isinstance(value, int):
        return (value, "") if -_INT64 <= value < _INT64 else (_big(value), "")
    if is_secret_name(name):
        return HIDDEN, names.REDACTED
    if isinstance(value, list | tuple):
        items = tuple(text_value(redact_text(_text(item)), 4096) for item in value[:LIST_LIMIT])
        return items, names.TRUNCATED if len(value) > LIST_LIMIT else ""
    text = _text(value)
    clean = redact_text(text[: 4 * VALUE_LIMIT])
    gone = len(text) - 4 * VALUE_LIMIT
    shown, cut = _bounded(clean, VALUE_LIMIT, len(clean) if gone <= 0 else len(clean) + gone)
    if cut:
        return shown, names.TRUNCATED
    return shown, names.REDACTED if clean != text else ""


def _text(value: object) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return _big(value)
    if isinstance(value, Mapping | list | tuple):
        try:
            return json.dumps(value, ensure_ascii=False, default=_type_name)
        except (TypeError, ValueError, RecursionError):  # foreign keys, a cycle, too deep
            return _type_name(value)
    return _type_name(value)


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"


def _big(value: int) -> str:
    """Return the digits; Python refuses more than about 4,300 of them."""
    bits = value.bit_length()
    return str(value) if bits <= 8192 else f"<integer of {bits} bits>"
