"""The audit log's writer: one hash chain per writer, group-committed by one thread.

Never lets a call wait for the disk: `append` is a list append. Never invents: a row that is lost
is counted, and a gap row says so as soon as there is room again.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from thoughtgate.core.audit import AuditRow
from thoughtgate.core.errors import StoreError
from thoughtgate.registry.audit_file import AuditFile, CheckpointRule
from thoughtgate.registry.chain import Gap
from thoughtgate.registry.store import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLimits:
    """How the writer forms groups.

    `linger` is how many seconds a row may wait for company, `group` how many rows one transaction
    takes, `queue` how many may wait in all, `retry` how many seconds pass before a failed
    group is tried again, `checkpoint` when the heads of other chains are noted.
    """

    linger: float = 0.1
    group: int = 256
    queue: int = 10_000
    retry: float = 0.5
    checkpoint: CheckpointRule = field(default_factory=CheckpointRule)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiter:
    """Somebody who waits until the first `upto` rows are durable."""

    upto: int
    done: Future[None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What the thread does next: rows to write, whether to flush."""

    rows: Sequence[AuditRow | Gap]
    sync: bool


class AuditWriter:
    """Appends to a chain of its own in the registry; safe to use from any thread.

    With `required`, `append` refuses while the log cannot take rows; else it never raises, and
    what does not fit is counted. The chain and the thread begin with the first row.
    """

    def __init__(
        self, registry: Registry, *, required: bool = False, limits: AuditLimits | None = None
    ) -> None:
        self._limits = limits or AuditLimits()
        self._file = AuditFile(registry.database, self._limits.checkpoint)
        self._required = required
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None
        # all below is guarded by the lock; the counters count rows since the start
        self._rows: deque[AuditRow | Gap] = deque()
        self._waiters: list[_Waiter] = []
        self._taken = 0
        self._written = 0
        self._durable = 0
        self._lost = 0
        self._trouble: StoreError | None = None
        self._closing = False
        self._ended = False

    @property
    def lost(self) -> int:
        """Return how many rows were dropped since the start."""
        return self._lost

    @property
    def chain(self) -> str:
        """Return the id of this writer's chain, empty before its first row is written."""
        return self._file.uid

    def append(self, row: AuditRow) -> None:
        """Queue one row; it is durable soon.

        Raises:
            StoreError: The log is required and cannot take rows; this one was not taken.
        """
        with self._lock:
            refusal = self._refusal()
            if refusal is None:
                self._rows.append(row)
                self._taken += 1
                waiting = self._taken - self._written
            elif self._required:
                raise refusal
            else:
                self._drop(row)
                return
        if waiting == 1:
            self._start()
        elif waiting == self._limits.group:
            self._hurry.set()

    async def flush(self) -> None:
        """Wait until every row appended so far is durable.

        Raises:
            StoreError: The rows could not be written; they stay queued and are tried again.
        """
        await asyncio.wrap_future(self._flushed())

    def close(self, *, within: float = 5.0) -> int:
        """Write what is queued and end the chain; return how many rows had to be given up.

        Blocks for at most `within` seconds. The registry is closed after it, not before.
        """
        deadline = time.monotonic() + within
        with self._lock:
            self._closing = True
            thread = self._thread
        if thread is not None:
            with suppress(StoreError, TimeoutError):
                self._flushed().result(timeout=within)
            self._hurry.set()
            self._wake.set()
            thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            return self._taken - self._written

    def _refusal(self) -> StoreError | None:
        """Say why a row cannot be taken just now."""
        if self._closing:
            return StoreError(message="the audit log is closed; nothing can be recorded any more")
        if self._required and self._trouble is not None:
            return self._trouble
        if self._taken - self._written >= self._limits.queue:
            return StoreError(
                message=f"the audit log has {self._limits.queue} rows waiting and takes no more; "
                "try again when the disk has caught up"
            )
        return None

    def _drop(self, row: AuditRow) -> None:
        """Count a row that has no place, at the place where it would have stood.

        The queue is full, so a gap at its end stands behind as many rows as a group can take: it
        is not being written just now and may be replaced.
        """
        self._lost += 1
        if self._closing:
            return
        last = self._rows[-1]
        if isinstance(last, Gap):
            self._rows[-1] = replace(last, lost=last.lost + 1)
        else:
            self._rows.append(Gap(at_ns=row.at_ns, lost=1))

    def _start(self) -> None:
        """Wake the thread; the first time, make it."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="thoughtgate-audit", daemon=True
                )
                self._thread.start()
        self._wake.set()

    def _flushed(self) -> Future[None]:
        """Return a future that is done when the rows queued now are durable."""
        done: Future[None] = Future()
        with self._lock:
            if self._durable == self._taken:
                done.set_result(None)
                return done
            if self._ended:
                done.set_exception(self._trouble or _stopped())
                return done
            self._waiters.append(_Waiter(upto=self._taken, done=done))
        self._hurry.set()
        self._wake.set()
        return done

    # from here on: the thread

    def _run(self) -> None:
        try:
            while self._work_off():
                self._wake.wait()
                self._wake.clear()
        finally:
            self._give_up()

    def _work_off(self) -> bool:
        """Write all that is queued; return whether more may come."""
        while (work := self._next()) is not None:
            if not self._do(work):
                return False
        with self._lock:
            over = self._closing and not self._rows
        if over:
            with suppress(StoreError):
                self._file.end()
        return not over

    def _next(self) -> _Work | None:
        """Return what is to be written, after waiting for company; None when there is nothing."""
        with self._lock:
            patient = bool(self._rows) and len(self._rows) < self._limits.group
            if self._waiters or self._closing:
                patient = False
        if patient:
            self._hurry.wait(self._limits.linger)
        self._hurry.clear()
        with self._lock:
            rows = list(islice(self._rows, min(self._limits.group, self._limits.queue)))
            if not (rows or self._waiters):
                return None
            return _Work(rows=rows, sync=bool(self._waiters))

    def _do(self, work: _Work) -> bool:
        """Write one group; return False when it failed and there is no time to try again."""
        try:
            if work.rows:
                self._file.write(work.rows, sync=work.sync)
            elif work.sync:
                self._file.sync()
        except StoreError as error:
            return self._failed(error)
        self._succeeded(work)
        return True

    def _succeeded(self, work: _Work) -> None:
        with self._lock:
            for row in work.rows:
                self._rows.popleft()
                self._written += isinstance(row, AuditRow)
            self._trouble = None
            if work.sync:
                self._durable = self._written
            ready = [waiter for waiter in self._waiters if waiter.upto <= self._durable]
            self._waiters = [waiter for waiter in self._waiters if waiter.upto > self._durable]
        for waiter in ready:
            if waiter.done.set_running_or_notify_cancel():
                waiter.done.set_result(None)

    def _failed(self, error: StoreError) -> bool:
        """Tell everyone who waits, keep the rows, and try again after a pause."""
        with self._lock:
            self._trouble = error
            waiters, self._waiters = self._waiters, []
            closing = self._closing
        for waiter in waiters:
            if waiter.done.set_running_or_notify_cancel():
                waiter.done.set_exception(error)
        if closing:
            return False
        self._hurry.wait(self._limits.retry)
        return True

    def _give_up(self) -> None:
        """Mark the end of the thread; whoever still waits is told."""
        with suppress(StoreError):
            self._file.close()
        with self._lock:
            self._ended = True
            if not self._closing:
                self._trouble = _stopped()
            waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.done.set_running_or_notify_cancel():
                waiter.done.set_exception(self._trouble or _stopped())


def _stopped() -> StoreError:
    return StoreError(message="the audit writer has stopped; restart the gateway to record again")
