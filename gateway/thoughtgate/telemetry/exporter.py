"""The recorder that exports: tuples in on the path of a call, OTLP out in a thread of its own.

Never makes a caller wait and never raises to one; a target that is down costs spans, which are
counted, and nothing else. Create it in the process that uses it, after any fork.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from thoughtgate.core.traces import SpanKind, SpanRecord
from thoughtgate.telemetry.encode import Encoder, Origin

BATCH_BYTES = 1024 * 1024
"""How much one request carries, unless one span is larger: collectors often refuse 4 MiB."""

_SLICE = 64
"""Spans that are encoded at a time: so long may callers have to wait for the interpreter."""

_BREATH = 0.0001
"""Seconds that they get in between; with none the lock would be taken back before they have it."""

_LOG = logging.getLogger(__name__)


class Sink(Protocol):
    """Where requests go; used by the exporter's thread, and closed once, by any."""

    def send(self, request: bytes) -> bool:
        """Deliver one `ExportTraceServiceRequest`; tell whether it arrived.

        Raises:
            OSError: It did not, and will not if it is tried again.
            ValueError: It cannot be sent to such an address, or with such headers.
        """
        ...

    def close(self) -> None:
        """Give up what is being tried again; nothing is sent any more."""
        ...


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
        origin: Origin,
        *,
        limits: Limits | None = None,
        target: str = "the configured target",
    ) -> None:
        self._sink = sink
        self._limits = limits or Limits()
        self._target = target
        self._encoder = Encoder(origin)
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
        try:
            while not self._stopping:
                if len(self._queue) < self._limits.batch:
                    self._wake.wait(self._limits.delay)
                self._wake.clear()
                self._drain()
            self._drain()
        finally:
            self._close()

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

    def _batches(self) -> Iterator[list[bytes]]:
        """Yield what waits now, in portions bounded by count and by bytes."""
        batch: list[bytes] = []
        size = 0
        for number in range(1, len(self._queue) + 1):
            span = self._encoder.span(self._queue.popleft())
            self._in_flight = len(batch) + 1
            if batch and (len(batch) == self._limits.batch or size + len(span) > BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(span)
            size += len(span)
            if number % _SLICE == 0 and not self._stopping:
                time.sleep(_BREATH)
        if batch:
            yield batch

    def _send(self, batch: list[bytes]) -> None:
        try:
            ok = self._sink.send(self._encoder.request(batch))
        except (OSError, RuntimeError, TypeError, ValueError):  # what an HTTP client lets out
            ok = False
        if ok:
            self._exported += len(batch)
        else:
            self._failed += len(batch)
        if ok is self._failing and not self._closed:  # `shutdown` has said then what is lost
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
        self._sink.close()
