"""What the OpenTelemetry SDK sends of a recorded span: the witness that our bytes are held to."""

from collections.abc import Iterable

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from thoughtgate.core.traces import SpanRecord
from thoughtgate.telemetry import names
from thoughtgate.telemetry.encode import Origin
from thoughtgate.telemetry.values import DESCRIPTION_LIMIT, cleaned, description, text_value

_KINDS = {"INTERNAL": SpanKind.INTERNAL, "SERVER": SpanKind.SERVER, "CLIENT": SpanKind.CLIENT}


def sdk_request(spans: Iterable[SpanRecord], origin: Origin) -> ExportTraceServiceRequest:
    """Return the request that the SDK's exporter makes of these spans, in one batch."""
    resource = Resource(origin.resource)
    scope = InstrumentationScope("thoughtgate", origin.version)
    return encode_spans([_span(span, origin, resource, scope) for span in spans])


def _span(
    span: SpanRecord, origin: Origin, resource: Resource, scope: InstrumentationScope
) -> ReadableSpan:
    seen = cleaned({**span.shared.attributes, **span.attributes}, origin.redact)
    attributes = dict(seen.attributes)
    if seen.cut:
        attributes[names.TRUNCATED] = seen.cut
    if seen.hidden:
        attributes[names.REDACTED] = seen.hidden
    if span.cancelled:
        attributes.setdefault(names.ERROR_TYPE, names.ERROR_CANCELLED)
    status = Status(StatusCode.UNSET)
    if span.error is not None:
        status = Status(StatusCode.ERROR, description(span.error, origin.redact))
    return ReadableSpan(
        name=text_value(origin.redact(span.name), DESCRIPTION_LIMIT),
        context=_context(span, span.context.span_id, remote=False),
        parent=_parent(span),
        resource=resource,
        attributes=attributes,
        kind=_KINDS[span.kind.name],
        status=status,
        start_time=span.start_ns,
        end_time=max(span.start_ns, span.end_ns),
        instrumentation_scope=scope,
    )


def _parent(span: SpanRecord) -> SpanContext | None:
    if not span.parent_id:
        return None
    return _context(span, span.parent_id, remote=span.kind.name == "SERVER")


def _context(span: SpanRecord, span_id: int, *, remote: bool) -> SpanContext:
    state = TraceState.from_header([span.context.state])
    return SpanContext(span.context.trace_id, span_id, remote, TraceFlags(1), state)
