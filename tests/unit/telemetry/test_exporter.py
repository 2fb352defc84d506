"""The exporter's thread: what is delivered, what is counted, and that nobody waits for it."""

import logging
import threading
from collections.abc import Callable

import pytest

from tests.support.spans import make_span
from tests.support.waiting import GUARD
from thoughtgate.core.traces import SpanKind
from thoughtgate.telemetry.encode import Origin
from thoughtgate.telemetry.exporter import BATCH_BYTES, Counts, Limits, Sink, SpanExporter
from thoughtgate.telemetry.otlp import from_protobuf

ORIGIN = Origin(resource={"service.name": "test"})
LONG = 3600.0
"""A delay that no test waits for: only a full batch or shutdown moves the thread."""


class HeldSink:
    """A target that answers only when it is let go."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.sizes: list[int] = []
        self.outcome: Callable[[], bool] = lambda: True
        self.entered = threading.Event()
        self.go = threading.Event()
        self.closed = threading.Event()

    def send(self, request: bytes) -> bool:
        self.entered.set()
        self.go.wait(GUARD)
        spans = from_protobuf(request)
        self.names += [span.name for span in spans]
        self.sizes.append(len(spans))
        return self.outcome()

    def close(self) -> None:
        assert not self.closed.is_set(), "a sink is closed once"
        self.closed.set()


def open_sink() -> HeldSink:
    sink = HeldSink()
    sink.go.set()
    return sink


def exporter_to(
    sink: Sink, *, queue: int = 1000, batch: int = 10, delay: float = LONG
) -> SpanExporter:
    return SpanExporter(sink, ORIGIN, limits=Limits(queue=queue, batch=batch, delay=delay))


def test_what_waits_at_shutdown_is_delivered_in_order_and_in_batches() -> None:
    sink = HeldSink()
    exporter = exporter_to(sink, batch=10)
    for number in range(25):
        exporter.record(make_span(number + 1, name=str(number)))
    sink.go.set()
    assert exporter.shutdown(GUARD)
    assert sink.names == [str(number) for number in range(25)]
    assert max(sink.sizes) <= 10
    assert exporter.counts() == Counts(exported=25, failed=0, dropped=0, waiting=0)
    assert sink.closed.is_set()


def test_a_lone_span_leaves_after_the_delay() -> None:
    sink = open_sink()
    exporter = exporter_to(sink, delay=0.01)
    exporter.record(make_span())
    assert sink.entered.wait(GUARD)
    assert exporter.shutdown(GUARD)


def test_a_full_batch_leaves_before_the_delay() -> None:
    sink = open_sink()
    exporter = exporter_to(sink, batch=4)
    for number in range(5):
        exporter.record(make_span(number + 1))
    assert sink.entered.wait(GUARD)
    assert exporter.shutdown(GUARD)
    assert exporter.counts().exported == 5


def test_a_batch_is_bounded_by_bytes_too() -> None:
    """One big batch was refused whole by collectors with a limit of 4 MiB."""
    sink = open_sink()
    exporter = exporter_to(sink, batch=512)
    for number in range(40):
        exporter.record(make_span(number + 1, attributes={"big": "x" * 60_000}))
    assert exporter.shutdown(GUARD)
    assert sum(sink.sizes) == 40
    assert max(sink.sizes) <= BATCH_BYTES // 60_000
    assert len(sink.sizes) < 5


def test_a_full_queue_refuses_the_newest_and_keeps_room_for_roots_and_entries() -> None:
    sink = HeldSink()
    exporter = exporter_to(sink, queue=80, batch=200)
    for number in range(100):
        exporter.record(make_span(number + 1, name=f"inner {number}", parent=7))
    for number in range(8):
        exporter.record(make_span(number + 200, name=f"root {number}"))
    for number in range(8):
        exporter.record(
            make_span(number + 300, name=f"entry {number}", parent=7, kind=SpanKind.SERVER)
        )
    assert exporter.counts() == Counts(exported=0, failed=0, dropped=30 + 6, waiting=80)
    sink.go.set()
    assert exporter.shutdown(GUARD)
    assert sink.names[:70] == [f"inner {number}" for number in range(70)]
    assert sink.names[70:] == [f"root {number}" for number in range(8)] + ["entry 0", "entry 1"]


def test_a_hung_target_makes_no_caller_wait_and_holds_no_shutdown() -> None:
    """While the thread is provably inside the target, recording and closing return."""
    sink = HeldSink()
    exporter = exporter_to(sink, queue=16, batch=1)
    exporter.record(make_span(1))
    exporter.record(make_span(2))
    assert sink.entered.wait(GUARD)
    for number in range(100):
        exporter.record(make_span(number + 3))
    assert exporter.shutdown(0.01) is False
    assert not sink.go.is_set()
    assert sink.closed.is_set()
    counts = exporter.counts()
    assert (counts.exported, counts.dropped + counts.waiting) == (0, 102)
    sink.go.set()


def test_after_shutdown_spans_are_dropped_and_counted() -> None:
    exporter = exporter_to(open_sink())
    assert exporter.shutdown(GUARD)
    exporter.record(make_span())
    assert exporter.counts().dropped == 1
    assert exporter.shutdown(GUARD)


def refuse() -> bool:
    return False


def burst() -> bool:
    raise OSError


@pytest.mark.parametrize("outcome", [refuse, burst])
def test_a_target_that_fails_is_logged_once_and_once_more_when_it_works_again(
    outcome: Callable[[], bool], caplog: pytest.LogCaptureFixture
) -> None:
    sink = HeldSink()
    answers: list[Callable[[], bool]] = [outcome, outcome, outcome, lambda: True]
    sink.outcome = lambda: answers.pop(0)()
    exporter = exporter_to(sink, batch=1)
    with caplog.at_level(logging.INFO):
        for number in range(4):
            exporter.record(make_span(number + 1))
        sink.go.set()
        assert exporter.shutdown(GUARD)
    assert exporter.counts() == Counts(exported=1, failed=3, dropped=0, waiting=0)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_threads_may_record_at_the_same_time() -> None:
    sink = open_sink()
    exporter = exporter_to(sink, queue=100_000, batch=64)

    def many() -> None:
        for number in range(500):
            exporter.record(make_span(number + 1))

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert exporter.shutdown(GUARD)
    assert exporter.counts() == Counts(exported=2000, failed=0, dropped=0, waiting=0)
