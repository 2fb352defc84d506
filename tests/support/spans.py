"""Recorded spans with fixed ids and times, so that what is exported can be compared whole."""

from collections.abc import Mapping

from thoughtgate.core.traces import SpanContext, SpanKind, SpanRecord

TRACE = 0x0AF7651916CD43DD8448EB211C80319C
START = 1_790_000_000_000_000_000


def make_span(
    number: int = 1,
    *,
    name: str = "tools/call find",
    kind: SpanKind = SpanKind.INTERNAL,
    parent: int = 0,
    attributes: Mapping[str, object] | None = None,
    error: str | None = None,
    cancelled: bool = False,
    context: SpanContext | None = None,
) -> SpanRecord:
    """Return the span with id `number`, which starts `number` milliseconds after START."""
    start = START + number * 1_000_000
    return SpanRecord(
        name=name,
        kind=kind,
        context=context or SpanContext(trace_id=TRACE, span_id=number),
        parent_id=parent,
        start_ns=start,
        end_ns=start + 2_500_000,
        attributes=attributes or {},
        error=error,
        cancelled=cancelled,
    )
