"""The thread that writes the journal: takes groups from the loop, commits them in their order.

Never gives up a group while the process lives: what could not be written is tried again, and
whoever waits for it is told each time.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from thoughtgate.core.errors import GateError, StoreError
from thoughtgate.core.journal import Level
from thoughtgate.registry.journal_file import Batch, Held, JournalFile

if TYPE_CHECKING:
    import asyncio

_TOGETHER = 1024
"""Rows that one commit takes of groups which piled up behind the last one."""


class Waiter(NamedTuple):
    """Somebody who waits until a group is written, for the sake of a run or of them all."""

    done: "asyncio.Future[None]"
    held: Held | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What the loop hands over at once; `ticket` counts the batches so far."""

    batches: list[Batch] = field(default_factory=list)
    waiters: list[Waiter] = field(default_factory=list)
    level: Level = Level.LAZY
    ticket: int = 0


class Errand(NamedTuple):
    """Something else that is done with the file, in its turn."""

    do: Callable[[JournalFile], Any]
    done: "asyncio.Future[Any]"


class JournalWriter:
    """Writes in a thread of its own, which begins with the first thing that is handed over."""

    def __init__(self, file: JournalFile, *, retry: float) -> None:
        self._file = file
        self._retry = retry
        self._queue: SimpleQueue[Group | Errand | None] = SimpleQueue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._lock = threading.Lock()
        # the thread's; whole numbers, so that the loop may read them at any time
        self._left = self._now = Group()
        self._ahead: Errand | None = None
        self._stopping = False
        self.committed = 0
        self.synced = 0
        self.rows = 0
        self.bytes = 0

    @property
    def ended(self) -> bool:
        """Say whether the thread has ended, so that nothing more can be written."""
        return self._ended

    def hand(self, job: Group | Errand) -> None:
        """Hand something over.

        Raises:
            StoreError: The thread has ended.
        """
        with self._lock:
            if self._ended or self._closing.is_set():
                raise stopped()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="thoughtgate-journal", daemon=True
                )
                self._thread.start()
            self._queue.put(job)

    def close(self, within: float) -> None:
        """Do what was handed over, once, and end; blocks for at most `within` seconds."""
        with self._lock:
            self._closing.set()
            thread = self._thread
        if thread is not None:
            self._queue.put(None)
            thread.join(within)

    # from here on: the thread

    def _run(self) -> None:
        try:
            while self._work():
                pass
        finally:
            self._give_up()

    def _work(self) -> bool:
        """Do what there is to do; return whether more may come."""
        self._now = self._gathered()
        well = self._write(self._now)
        if self._ahead is not None:
            self._run_errand(self._ahead)
            self._ahead = None
        if self._stopping:
            return False
        if not well:
            self._closing.wait(self._retry)
        return True

    def _gathered(self) -> Group:
        """Return what failed last and what was handed over since, up to an errand."""
        group, self._left = self._left, Group()
        batches, waiters, level = group.batches, group.waiters, group.level
        ticket, rows = group.ticket, 0
        wait, failed = not batches, bool(batches)
        while failed or rows < _TOGETHER:
            try:
                job = self._queue.get(block=wait)
            except Empty:
                break
            wait = False
            if job is None:
                self._stopping = True
                break
            if isinstance(job, Errand):
                self._ahead = job
                break
            batches += job.batches
            waiters += job.waiters
            level, ticket = max(level, job.level), max(ticket, job.ticket)
            rows += sum(len(batch.rows) for batch in job.batches)
        return Group(batches=batches, waiters=waiters, level=level, ticket=ticket)

    def _write(self, group: Group) -> bool:
        try:
            wrote = self._file.write(group.batches, group.level)
            if group.level is Level.SYNCED and not wrote and self.synced < self.committed:
                self._file.sync()
        except StoreError as error:
            self._left = Group(batches=group.batches, level=group.level, ticket=group.ticket)
            _tell([(waiter.done, _why(waiter, error)) for waiter in group.waiters])
            return False
        self._succeeded(group)
        return True

    def _succeeded(self, group: Group) -> None:
        for batch in group.batches:
            self.rows += len(batch.rows)
            self.bytes += sum(len(row.body) for row in batch.rows)
        self.committed = max(self.committed, group.ticket)
        if group.level is Level.SYNCED:
            self.synced = self.committed
        _tell([(waiter.done, _why(waiter, None)) for waiter in group.waiters])

    def _run_errand(self, errand: Errand) -> None:
        try:
            result = errand.do(self._file)
        except GateError as error:
            _tell([(errand.done, error)])
        else:
            _tell([(errand.done, None)], result)

    def _give_up(self) -> None:
        """Mark the end of the thread; whoever still waits is told."""
        with suppress(StoreError):
            self._file.close()
        with self._lock:
            self._ended = True
        jobs: list[Group | Errand | None] = [self._now, self._ahead]
        with suppress(Empty):
            while True:
                jobs.append(self._queue.get(block=False))
        for job in jobs:
            if isinstance(job, Group):
                _tell([(waiter.done, stopped()) for waiter in job.waiters])
            elif job is not None:
                _tell([(job.done, stopped())])


def stopped() -> StoreError:
    """Return the error for a journal that can take no more."""
    return StoreError(message="the journal is closed; restart the gateway to go on with its runs")


def _why(waiter: Waiter, error: StoreError | None) -> StoreError | None:
    """Return what a waiter is told: of its own run first."""
    return error if waiter.held is None else waiter.held.error or error


def _tell(
    found: "list[tuple[asyncio.Future[Any], GateError | None]]", result: object = None
) -> None:
    """Complete futures on their loop, woken once; one that is over hears nothing."""
    if not found:
        return
    loop = found[0][0].get_loop()
    with suppress(RuntimeError):  # the loop is closed, so nobody waits
        loop.call_soon_threadsafe(_complete, found, result)


def _complete(found: "list[tuple[asyncio.Future[Any], GateError | None]]", result: object) -> None:
    for done, error in found:
        if done.done():
            continue
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)
