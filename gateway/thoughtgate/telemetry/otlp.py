"""Spans as OTLP carries them, decoded into plain values, from protobuf or JSON.

Never encodes and never opens a connection; it serves the terminal tree and the test receiver.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from thoughtgate.core.errors import Malformed
from thoughtgate.core.json import JsonObject

_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
_STATUSES = ("unset", "ok", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSpan:
    """One exported span.

    Ids are lower-case hex, `parent_id` empty for a root; `kind` and `status` are the lower-case
    names of the protocol; `resource` holds the attributes of who made it.
    """

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, object]
    status: str = "unset"
    description: str = ""
    trace_state: str = ""
    remote_parent: bool = False
    resource: Mapping[str, object]


def from_protobuf(body: bytes) -> tuple[SeenSpan, ...]:
    """Return the spans of an `ExportTraceServiceRequest`.

    Raises:
        Malformed: The bytes are not such a message.
    """
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError:
        raise Malformed(message="not an OTLP trace request in protobuf") from None
    return tuple(
        _from_message(span, _attributes(group.resource.attributes))
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    )


def from_json(body: bytes | str) -> tuple[SeenSpan, ...]:
    """Return the spans of an OTLP/JSON trace request (ids in hex, 64-bit integers as strings).

    Raises:
        Malformed: The text is not such a document.
    """
    try:
        document = json.loads(body)
        return tuple(
            _from_object(span, _members(group.get("resource", {}).get("attributes", ())))
            for group in document["resourceSpans"]
            for scope in group["scopeSpans"]
            for span in scope["spans"]
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise Malformed(message="not an OTLP trace request in JSON") from None


def _from_message(span: Span, resource: Mapping[str, object]) -> SeenSpan:
    return SeenSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        kind=_KINDS[span.kind],
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        status=_STATUSES[span.status.code],
        description=span.status.message,
        trace_state=span.trace_state,
        remote_parent=bool(span.flags & 0x200),
        resource=resource,
    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, object]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    plain: object = getattr(value, kind)
    return plain


def _from_object(span: JsonObject, resource: Mapping[str, object]) -> SeenSpan:
    status = span.get("status", {})
    return SeenSpan(
        name=span["name"],
        trace_id=span["traceId"].lower(),
        span_id=span["spanId"].lower(),
        parent_id=span.get("parentSpanId", "").lower(),
        kind=_KINDS[int(span.get("kind", 0))],
        start_ns=int(span["startTimeUnixNano"]),
        end_ns=int(span["endTimeUnixNano"]),
        attributes=_members(span.get("attributes", ())),
        status=_STATUSES[int(status.get("code", 0))],
        description=status.get("message", ""),
        trace_state=span.get("traceState", ""),
        remote_parent=bool(int(span.get("flags", 0)) & 0x200),
        resource=resource,
    )


def _members(pairs: Iterable[JsonObject]) -> dict[str, object]:
    return {pair["key"]: _json_value(pair.get("value", {})) for pair in pairs}


def _json_value(value: JsonObject) -> Any:
    for kind, inner in value.items():
        if kind == "intValue":
            return int(inner)
        if kind == "arrayValue":
            return [_json_value(item) for item in inner.get("values", ())]
        if kind == "kvlistValue":
            return _members(inner.get("values", ()))
        return inner
    return None
