"""New span contexts."""

from thoughtgate.core.traces import SpanContext
from thoughtgate.telemetry.spans import child


def test_a_root_starts_a_trace_of_its_own() -> None:
    roots = [child(None) for _ in range(100)]
    assert len({root.trace_id for root in roots}) == 100
    assert all(0 < root.trace_id < 2**128 and 0 < root.span_id < 2**64 for root in roots)


def test_a_child_stays_in_the_trace_and_hands_the_state_on() -> None:
    parent = SpanContext(trace_id=5, span_id=6, state="a=1")
    made = child(parent)
    assert (made.trace_id, made.state) == (5, "a=1")
    assert made.span_id not in {0, 6}


def test_a_caller_cannot_switch_tracing_off() -> None:
    assert child(SpanContext(trace_id=5, span_id=6, sampled=False)).sampled
