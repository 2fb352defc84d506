"""From a recorded tuple to a span of the SDK, fit to be encoded.

Never runs on the path of a call: the exporter's thread does this work. Never changes an id.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext as SdkContext
from opentelemetry.trace import SpanKind as SdkKind
from opentelemetry.trace import Status, StatusCode, TraceFlags, TraceState

from thoughtgate.core.traces import SpanContext, SpanKind, SpanRecord
from thoughtgate.telemetry import names
from thoughtgate.telemetry.redact import HIDDEN, is_secret_name, redact

VALUE_LIMIT = 64 * 1024
"""Bytes of UTF-8 that one attribute value may have; longer ones are cut and marked."""

DESCRIPTION_LIMIT = 512
ATTRIBUTE_LIMIT = 128
LIST_LIMIT = 256

Attribute = str | bool | int | float | tuple[str, ...]
Redact = Callable[[str], str]

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NO_STATE = TraceState()
_KINDS = {
    SpanKind.INTERNAL: SdkKind.INTERNAL,
    SpanKind.SERVER: SdkKind.SERVER,
    SpanKind.CLIENT: SdkKind.CLIENT,
}
_UNSET = Status(StatusCode.UNSET)
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who made the spans, the same for all of them; `redact` looks at every text."""

    resource: Resource
    scope: InstrumentationScope
    redact: Redact = redact


def to_sdk(span: SpanRecord, origin: Origin) -> tuple[ReadableSpan, int]:
    """Return the SDK's span and about how many bytes it will take on the wire.

    Success leaves the status unset, as instrumentations do. Cancelled does too, since the caller's
    change of mind is no failure of anybody, but `error.type` says `cancelled`, so that it does not
    look like success. A failure is ERROR with a cleaned, bounded description, even when cancelled.
    """
    attributes, size = _attributes(span, origin.redact)
    return (
        ReadableSpan(
            name=text_value(origin.redact(span.name), DESCRIPTION_LIMIT),
            context=_context(span.context, span.context.span_id, is_remote=False),
            parent=_parent(span),
            resource=origin.resource,
            attributes=attributes,
            kind=_KINDS[span.kind],
            status=_status(span, origin.redact),
            start_time=span.start_ns,
            end_time=max(span.start_ns, span.end_ns),  # the wall clock may step back
            instrumentation_scope=origin.scope,
        ),
        size + 256,
    )


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


def _context(context: SpanContext, span_id: int, *, is_remote: bool) -> SdkContext:
    state = TraceState.from_header([context.state]) if context.state else _NO_STATE
    # always sampled: a caller's flag must not be a way around tracing
    return SdkContext(context.trace_id, span_id, is_remote, _SAMPLED, state)


def _parent(span: SpanRecord) -> SdkContext | None:
    if not span.parent_id:
        return None
    return _context(span.context, span.parent_id, is_remote=span.kind is SpanKind.SERVER)


def _status(span: SpanRecord, redact_text: Redact) -> Status:
    if span.error is None:
        return _UNSET
    printable = "".join(c if c.isprintable() else " " for c in span.error[: 4 * DESCRIPTION_LIMIT])
    return Status(StatusCode.ERROR, text_value(redact_text(printable), DESCRIPTION_LIMIT))


def _attributes(span: SpanRecord, redact_text: Redact) -> tuple[dict[str, Attribute], int]:
    out: dict[str, Attribute] = {}
    cut: list[str] = []
    hidden: list[str] = []
    size = 0
    for name, value in span.attributes.items():
        if value is None or len(out) == ATTRIBUTE_LIMIT:
            continue
        shown, remark = _attribute(name, value, redact_text)
        out[text_value(name, 256)] = shown
        size += len(name) + _size(shown)
        if remark == names.TRUNCATED:
            cut.append(name)
        elif remark == names.REDACTED:
            hidden.append(name)
    if span.cancelled:
        out.setdefault(names.ERROR_TYPE, names.ERROR_CANCELLED)
    if cut:
        out[names.TRUNCATED] = tuple(cut)
    if hidden:
        out[names.REDACTED] = tuple(hidden)
    return out, size


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


def _size(value: Attribute) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(map(len, value)) if isinstance(value, tuple) else 8
