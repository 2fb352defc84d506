"""Spans on a terminal, as an endpoint would have got them, each a JSON object.

Never writes to standard output: that belongs to the protocol in stdio mode.
"""

import json
from typing import TextIO

from thoughtgate.telemetry.otlp import SeenSpan, from_protobuf


class ConsoleSink:
    """Prints what it is sent; one span after the other, without their resource."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def send(self, request: bytes) -> bool:
        """Print the request's spans; False when nobody reads them any more."""
        try:
            for span in from_protobuf(request):
                print(json.dumps(_shown(span), indent=4, ensure_ascii=False), file=self._out)
            self._out.flush()
        except (OSError, ValueError):  # a closed pipe, a closed file, a terminal of few letters
            return False
        return True

    def close(self) -> None:
        """Do nothing: the stream is not ours."""


def _shown(span: SeenSpan) -> dict[str, object]:
    return {
        "name": span.name,
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "parent_id": span.parent_id,
        "kind": span.kind,
        "start_ns": span.start_ns,
        "end_ns": span.end_ns,
        "status": span.status,
        "description": span.description,
        "attributes": dict(span.attributes),
    }
