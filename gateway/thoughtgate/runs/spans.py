"""The spans of a run: one per Thought, Action and Observation, below one root.

Never waits, and never holds content unless capture is on.
"""

from dataclasses import dataclass, field
from time import time_ns

from thoughtgate.core.json import JsonValue, canonical
from thoughtgate.core.ports import Recorder
from thoughtgate.core.traces import SpanContext, SpanKind, SpanRecord
from thoughtgate.telemetry import names
from thoughtgate.telemetry.spans import child


@dataclass(slots=True, kw_only=True)
class OpenSpan:
    """A span that has begun."""

    name: str
    context: SpanContext
    parent_id: int
    attributes: dict[str, object]
    kind: SpanKind = SpanKind.INTERNAL
    start_ns: int = field(default_factory=time_ns)


class Spans:
    """Begins and ends spans. `recorder` None: contexts are still made, nothing is recorded.

    `capture` is how many bytes of any content are kept, 0 for none.
    """

    def __init__(self, recorder: Recorder | None, *, capture: int = 0) -> None:
        self._recorder = recorder
        self._capture = capture

    def begin(
        self,
        name: str,
        parent: SpanContext | None,
        attributes: dict[str, object],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> OpenSpan:
        """Begin a span below `parent`, or a new trace."""
        return OpenSpan(
            name=name,
            context=child(parent),
            parent_id=parent.span_id if parent else 0,
            attributes=attributes,
            kind=kind,
        )

    def end(self, span: OpenSpan, *, error: str | None = None, cancelled: bool = False) -> None:
        """End a span."""
        if self._recorder is None:
            return
        self._recorder.record(
            SpanRecord(
                name=span.name,
                kind=span.kind,
                context=span.context,
                parent_id=span.parent_id,
                start_ns=span.start_ns,
                end_ns=time_ns(),
                attributes=span.attributes,
                error=error,
                cancelled=cancelled,
            )
        )

    def keep(self, span: OpenSpan, key: str, value: JsonValue) -> None:
        """Keep content on a span, when capture is on: text as it is, else as JSON."""
        if not self._capture:
            return
        text = value if isinstance(value, str) else canonical(value).decode()
        shown = text.encode(errors="replace")[: self._capture].decode(errors="ignore")
        span.attributes[key] = shown
        mime = _MIMES.get(key)
        if mime:
            is_text = isinstance(value, str)
            span.attributes[mime] = names.MIME_TEXT if is_text else names.MIME_JSON


_MIMES = {
    names.INPUT_VALUE: names.INPUT_MIME_TYPE,
    names.OUTPUT_VALUE: names.OUTPUT_MIME_TYPE,
}
