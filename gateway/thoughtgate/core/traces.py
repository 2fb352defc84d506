"""Trace context and finished spans as plain values (W3C Trace Context level 2).

Never talks to an exporter. Identifiers are ints: 128 bits for a trace, 64 for a span, never 0.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class SpanContext(NamedTuple):
    """Which span of which trace; `state` is the `tracestate` header, passed on as it came."""

    trace_id: int
    span_id: int
    sampled: bool = True
    state: str = ""


class SpanKind(IntEnum):
    """Numbered as OpenTelemetry's `SpanKind`."""

    INTERNAL = 0
    SERVER = 1
    CLIENT = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shared:
    """Attributes that many spans have, as one value, told from others by identity.

    Whoever records spans keeps it and gives it again, so that it is encoded once for all of them.
    """

    attributes: Mapping[str, object] = field(default_factory=dict)


NOTHING_SHARED = Shared()


class SpanRecord(NamedTuple):
    """One finished span, recorded on the path of a call and encoded in the exporter's thread.

    `parent_id` is 0 for a root; times are `time.time_ns()`; attribute values are str, int, float,
    bool or lists of str; `error` is None for success, `""` for a failure without description, else
    the description; `cancelled` marks a call that its caller gave up; `attributes` are the span's
    own, beside those that it shares with others, and go before them where both have a name.
    """

    name: str
    kind: SpanKind
    context: SpanContext
    parent_id: int
    start_ns: int
    end_ns: int
    attributes: Mapping[str, object]
    error: str | None = None
    cancelled: bool = False
    shared: Shared = NOTHING_SHARED


def parse_traceparent(value: object, state: object = "") -> SpanContext | None:
    """Return the context in a `traceparent` value, or None when it is absent or not valid."""
    if not isinstance(value, str):
        return None
    match = _TRACEPARENT.fullmatch(value.strip())
    if match is None or match[1] == "ff" or (match[1] == "00" and match[5]):
        return None
    trace_id, span_id = int(match[2], 16), int(match[3], 16)
    if not trace_id or not span_id:
        return None
    kept = state if isinstance(state, str) and len(state) <= 512 else ""
    return SpanContext(
        trace_id=trace_id, span_id=span_id, sampled=bool(int(match[4], 16) & 1), state=kept
    )


def format_traceparent(context: SpanContext) -> str:
    """Return the `traceparent` value of `context`."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{'01' if context.sampled else '00'}"
