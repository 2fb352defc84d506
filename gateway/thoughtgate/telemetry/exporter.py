"""The recorder that exports: tuples in on the path of a call, OTLP out in a thread of its own.

Never makes a caller wait and never raises to one; a target that is down costs spans, which are
counted, and nothing else. Create it in the process that uses it, after any fork.
"""

import logging
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter as Sink
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from thoughtgate.core.traces import SpanKind, SpanRecord
from thoughtgate.telemetry.convert import Origin, Redact, to_sdk
from thoughtgate.telemetry.redact import redact

BATCH_BYTES = 1024 * 1024
"""About how much one request carries: collectors often refuse more than 4 MiB."""

_LOG = logging.getLogger(__name__)

# these log each failed batch and each bad `tracestate`; we log changes of state instead
_NOISY = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.trace.span")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much waits, how much goes at once, and how long a span waits at most (seconds)."""

    queue: int = 16_384
    batch: int = 512
    delay: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What became of the spans.

    `exported` arrived; `failed` were refused or could not be sent; `dropped` found the queue full
    or came after shutdown; `waiting` are still here.
    """

    exported: int
    failed: int
    dropped: int
    waiting: int


class SpanExporter:
    """Implements `core.ports.Recorder`.

    A full queue refuses the newest span; its last eighth is kept for roots and SERVER spans, which
    end last and without which a trace cannot be found. `target` names the sink in the log.
    """

    def __init__(
        self,
        sink: Sink,
        resource: Resource,
        *,
        limits: Limits | None = None,
        target: str = "the configured target",
        redact_text: Redact = redact,
    ) -> None:
        self._sink = sink
        self._limits = limits or Limits()
        self._target = target
        self._origin = Origin(
            resource=resource,
            scope=InstrumentationScope(
                "thoughtgate", str(resource.attributes.get("service.version", ""))
            ),
            redact=redact_text,
        )
        self._queue: deque[SpanRecord] = deque()
        self._room = self._limits.queue - self._limits.queue // 8
        self._wake = threading.Event()
        self._stopping = False
        self._closed = False
        self._lock = threading.Lock()
        self._exported = 0
        self._failed = 0
        self._dropped = 0
        self._in_flight = 0
        self._failing = False
        self._dropped_told = 0
        self._thread = threading.Thread(target=self._work, name="span-exporter", daemon=True)
        self._thread.start()

    def record(self, span: SpanRecord) -> None:
        """Take one finished span."""
        waiting = len(self._queue)
        if waiting >= self._room or self._stopping:
            entry = not span.parent_id or span.kind is SpanKind.SERVER
            if self._stopping or not entry or waiting >= self._limits.queue:
                with self._lock:
                    self._dropped += 1
                return
        self._queue.append(span)
        if waiting == self._limits.batch:  # once per batch: a set event costs a lock
            self._wake.set()

    def counts(self) -> Counts:
        """Return what became of the spans so far."""
        return Counts(
            exported=self._exported,
            failed=self._failed,
            dropped=self._dropped,
            waiting=len(self._queue) + self._in_flight,
        )

    def shutdown(self, deadline_seconds: float = 5.0) -> bool:
        """Export what waits, but for no longer than the deadline; tell whether the thread is done.

        Blocks, so call it from a thread when a loop is running. A second call does nothing more.
        A target that failed the last time gets one second.
        """
        self._stopping = True
        self._wake.set()
        self._thread.join(min(deadline_seconds, 1.0) if self._failing else deadline_seconds)
        done = not self._thread.is_alive()
        if not done:
            self._close()  # interrupts a wait between two tries; a hung request is left behind
            lost = len(self._queue) + self._in_flight
            _LOG.warning("trace export stopped at its deadline: %d spans lost", lost)
        return done

    def _work(self) -> None:
        mute = _Mute(threading.get_ident())
        for name in _NOISY:
            logging.getLogger(name).addFilter(mute)
        try:
            while not self._stopping:
                if len(self._queue) < self._limits.batch:
                    self._wake.wait(self._limits.delay)
                self._wake.clear()
                self._drain()
            self._drain()
        finally:
            self._close()
            for name in _NOISY:
                logging.getLogger(name).removeFilter(mute)

    def _drain(self) -> None:
        for batch in self._batches():
            if self._closed:
                self._failed += len(batch)
                break
            self._send(batch)
        self._in_flight = 0
        if self._dropped != self._dropped_told and not self._stopping:
            if not self._dropped_told:
                _LOG.warning("trace queue full: %d spans dropped so far", self._dropped)
            self._dropped_told = self._dropped

    def _batches(self) -> Iterator[list[ReadableSpan]]:
        """Yield what waits now, in portions bounded by count and by bytes."""
        batch: list[ReadableSpan] = []
        size = 0
        for _ in range(len(self._queue)):
            span, span_size = to_sdk(self._queue.popleft(), self._origin)
            self._in_flight = len(batch) + 1
            if batch and (len(batch) == self._limits.batch or size + span_size > BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(span)
            size += span_size
        if batch:
            yield batch

    def _send(self, batch: Sequence[ReadableSpan]) -> None:
        try:
            ok = self._sink.export(batch) is SpanExportResult.SUCCESS
        except (OSError, RuntimeError, TypeError, ValueError):  # what a foreign sink may let out
            ok = False
        if ok:
            self._exported += len(batch)
        else:
            self._failed += len(batch)
        if ok is self._failing:
            self._failing = not ok
            if ok:
                _LOG.info("trace export works again: %s, %d spans lost", self._target, self._failed)
            else:
                _LOG.warning("trace export fails: %s; spans are lost until it works", self._target)

    def _close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._sink.shutdown()


class _Mute(logging.Filter):
    """Silences a logger for records of one thread; others that use the library are not touched."""

    def __init__(self, thread: int) -> None:
        super().__init__()
        self._thread = thread

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread
