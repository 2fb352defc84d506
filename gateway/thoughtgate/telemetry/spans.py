"""New span contexts: whose child a span is, and under which ids.

Never records anything; a context made here may be sent upstream before its span has ended.
"""

from random import getrandbits

from thoughtgate.core.traces import SpanContext


def child(parent: SpanContext | None) -> SpanContext:
    """Return the context of a new span: in its parent's trace, or the root of a new trace.

    Always sampled: a caller that switches sampling off must not be able to hide what it does. The
    parent's `state` is passed on.
    """
    if parent is None:
        return SpanContext(trace_id=_bits(128), span_id=_bits(64))
    return SpanContext(trace_id=parent.trace_id, span_id=_bits(64), state=parent.state)


def _bits(count: int) -> int:
    """Return a random number that is not 0, which the specification reserves for `invalid`."""
    while True:
        number = getrandbits(count)
        if number:
            return number
