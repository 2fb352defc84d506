"""From recorded spans to the bytes of an OTLP request.

Never runs on the path of a call: the exporter's thread does this work. Never changes an id.

What many spans have in common is encoded once: in protobuf a message's parts may stand in any
order, and bytes of one part can simply be put behind those of another. So are the parts that every
span has, without a message of the library's in between, which would take most of the time.
"""

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from thoughtgate.core.traces import Shared, SpanKind, SpanRecord
from thoughtgate.telemetry import names
from thoughtgate.telemetry.redact import is_secret_name, redact
from thoughtgate.telemetry.values import (
    ATTRIBUTE_LIMIT,
    DESCRIPTION_LIMIT,
    NAME_LIMIT,
    VALUE_LIMIT,
    Attribute,
    Redact,
    cleaned,
    description,
    text_value,
)

KEPT = 1024
"""Names and shared attributes whose encoding is kept, each."""

_KINDS: Final = (Span.SPAN_KIND_INTERNAL, Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT)
_FIXED: Final = struct.Struct("<2s16s2s8scQcQ2sI").pack
"""Fields of one size, each behind its tag: trace and span id, start, end, flags."""
_PARENT: Final = b"\x22\x08"
_SERVER: Final = SpanKind.SERVER
_LOCAL_PARENT, _REMOTE_PARENT = 0x100, 0x300
"""Flags of a span: that it is known where its parent is, and where."""

_STATE_MEMBER = re.compile(
    r"([a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_STATE_LIMIT = 32
_PLAIN_INT = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who made the spans, the same for all of them; `redact` looks at every text."""

    resource: Mapping[str, str | int]
    version: str = ""
    redact: Redact = redact


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """Shared attributes, encoded; `alone` when nothing of a span's own depends on their values."""

    data: bytes
    names: frozenset[str]
    alone: bool


_EMPTY = _Kept(data=Span(status=Status()).SerializeToString(), names=frozenset(), alone=True)


class Encoder:
    """Encodes spans of one origin; belongs to one thread."""

    def __init__(self, origin: Origin) -> None:
        self._redact = origin.redact
        resource = Resource()
        _fill(resource, cleaned(origin.resource, origin.redact).attributes)
        self._resource = ResourceSpans(resource=resource).SerializeToString()
        scope = InstrumentationScope(name="thoughtgate", version=origin.version)
        self._scope = ScopeSpans(scope=scope).SerializeToString()
        self._title = lru_cache(KEPT)(self._encode_title)
        self._kept = lru_cache(KEPT)(self._encode_shared)

    def span(self, record: SpanRecord) -> bytes:
        """Return one span, as `request` takes it.

        Success leaves the status unset, as instrumentations do. Cancelled does too, since the
        caller's change of mind is no failure of anybody, but `error.type` says `cancelled`, so that
        it does not look like success. A failure is ERROR with a cleaned, bounded description, even
        when cancelled.
        """
        name, kind, context, parent, start, end, own, error, cancelled, shared = record
        kept = self._kept(shared)
        if not kept.alone or not kept.names.isdisjoint(own):
            own, kept = {**shared.attributes, **own}, _EMPTY
        room = ATTRIBUTE_LIMIT - len(kept.names)
        parts = self._plain(own) if len(own) <= room else None
        if parts is None:
            parts = [self._any(own, room)]
        flags = _LOCAL_PARENT
        if parent:
            parts += (_PARENT, parent.to_bytes(8, "big"))
            flags = _REMOTE_PARENT if kind is _SERVER else _LOCAL_PARENT
        if error is not None or context.state or cancelled:
            parts.append(self._seldom(record, typed=own.get(names.ERROR_TYPE) is not None))
        trace_id, span_id = context.trace_id.to_bytes(16, "big"), context.span_id.to_bytes(8, "big")
        end = max(start, end)  # the wall clock may step back
        fixed = _FIXED(
            b"\x0a\x10", trace_id, b"\x12\x08", span_id, b"9", start, b"A", end, b"\x85\x01", flags
        )
        data = b"".join((fixed, self._title(name, kind), *parts, kept.data))
        return _head(ScopeSpans.SPANS_FIELD_NUMBER, len(data)) + data

    def request(self, spans: Iterable[bytes]) -> bytes:
        """Return the request that carries these spans."""
        parts = [self._scope, *spans]
        size = sum(map(len, parts))
        group = self._resource + _head(ResourceSpans.SCOPE_SPANS_FIELD_NUMBER, size)
        size += len(group)
        head = _head(ExportTraceServiceRequest.RESOURCE_SPANS_FIELD_NUMBER, size)
        return b"".join((head, group, *parts))

    def _encode_title(self, name: str, kind: SpanKind) -> bytes:
        shown = text_value(self._redact(name), DESCRIPTION_LIMIT)
        return Span(name=shown, kind=_KINDS[kind]).SerializeToString()

    def _plain(self, own: Mapping[str, object]) -> list[bytes] | None:
        """Encode attributes that are as they should be; None when one needs a closer look."""
        parts: list[bytes] = []
        for name, value in own.items():
            if type(value) is str and value.isascii() and len(value) <= VALUE_LIMIT:
                before = _before_text(name, len(value))
                if not before or self._redact(value) is not value:
                    return None
                parts += (before, value.encode())
            elif type(value) is int and 0 <= value < _PLAIN_INT and _is_plain(name):
                parts.append(_number(name, value))
            else:
                return None
        return parts

    def _any(self, own: Mapping[str, object], room: int) -> bytes:
        """Encode attributes with what there is to be said of them."""
        seen, span = cleaned(own, self._redact, room=room), Span()
        _fill(span, seen.attributes)
        if seen.cut:
            _fill(span, {names.TRUNCATED: seen.cut})
        if seen.hidden:
            _fill(span, {names.REDACTED: seen.hidden})
        return span.SerializeToString()

    def _seldom(self, record: SpanRecord, *, typed: bool) -> bytes:
        """Encode what most spans do not have; `typed` ones say already why they failed."""
        span = Span(trace_state=trace_state(record.context.state))
        if record.error is not None:
            span.status.code = Status.STATUS_CODE_ERROR
            span.status.message = description(record.error, self._redact)
        if record.cancelled and not typed:
            _fill(span, {names.ERROR_TYPE: names.ERROR_CANCELLED})
        return span.SerializeToString()

    def _encode_shared(self, shared: Shared) -> _Kept:
        seen = cleaned(shared.attributes, self._redact)
        span = Span(status=Status())  # an unset status adds nothing to one that is set
        _fill(span, seen.attributes)
        return _Kept(
            data=span.SerializeToString(),
            names=frozenset(seen.attributes),
            alone=not (seen.cut or seen.hidden or names.ERROR_TYPE in seen.attributes),
        )


@lru_cache(KEPT)
def _is_plain(name: str) -> bool:
    """Say whether an attribute's name can stand as it is, with whatever value."""
    return name == text_value(name, NAME_LIMIT) and not is_secret_name(name)


@lru_cache(4 * KEPT)
def _before_text(name: str, size: int) -> bytes:
    """Return what stands before an attribute's text of that size; nothing for an odd name."""
    if not _is_plain(name):
        return b""
    text = _head(AnyValue.STRING_VALUE_FIELD_NUMBER, size)
    value = _head(KeyValue.VALUE_FIELD_NUMBER, len(text) + size) + text
    key = KeyValue(key=name).SerializeToString()
    return _head(Span.ATTRIBUTES_FIELD_NUMBER, len(key) + len(value) + size) + key + value


@lru_cache(4 * KEPT)
def _number(name: str, value: int) -> bytes:
    """Return an attribute that is a number."""
    span = Span()
    _fill(span, {name: value})
    return span.SerializeToString()


def trace_state(text: str) -> str:
    """Return a `tracestate` without blanks, or nothing when it is not valid (W3C, 3.3)."""
    members = [member for part in text.split(",") if (member := part.strip(" \t"))]
    matches = [_STATE_MEMBER.fullmatch(member) for member in members]
    keys = {match[1] for match in matches if match}
    return ",".join(members) if len(keys) == len(members) <= _STATE_LIMIT else ""


def _fill(message: Span | Resource, found: Mapping[str, Attribute]) -> None:
    for name, value in found.items():
        _put(message.attributes.add(key=name).value, value)


def _put(place: AnyValue, value: Attribute) -> None:
    if isinstance(value, bool):
        place.bool_value = value
    elif isinstance(value, str):
        place.string_value = value
    elif isinstance(value, int):
        place.int_value = value
    elif isinstance(value, float):
        place.double_value = value
    else:
        place.array_value.values.extend(AnyValue(string_value=item) for item in value)
        place.array_value.SetInParent()  # an empty list is a value too


@lru_cache(4096)
def _head(field: int, size: int) -> bytes:
    """Return what stands before `size` bytes that are one field of a message."""
    return _varint(field << 3 | 2) + _varint(size)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
