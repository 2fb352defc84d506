"""The journal of runs in the registry. The door to the journal's half of this room.

Never waits on the loop: `append` is a list append, and one thread commits in groups. Never drops
what it took: a full queue refuses, a failed group is tried again.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from json import JSONEncoder
from secrets import token_hex
from typing import TypeVar

import msgspec

from thoughtgate.core.errors import Conflict, Overloaded, StoreError
from thoughtgate.core.journal import Entry, Event, Level, NewRun, RunKey, RunStatus, Taken
from thoughtgate.core.json import JsonObject
from thoughtgate.registry import journal_prune, journal_read
from thoughtgate.registry.groups import Groups
from thoughtgate.registry.journal_file import Batch, Held, JournalFile, Row, taken
from thoughtgate.registry.journal_read import RunFilter, RunRecord
from thoughtgate.registry.journal_writer import Errand, Group, JournalWriter, Waiter, stopped
from thoughtgate.registry.store import Registry

__all__ = ["JournalLimits", "RunFilter", "RunJournal", "RunRecord"]

T = TypeVar("T")

_quickly = msgspec.json.Encoder().encode
_strictly = JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

_NS = 1_000_000_000

_PAUSE = 0.05
"""Seconds between two slices of deleting: whoever waits for the registry asks at least as often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLimits:
    """How groups are formed, and how long a run stays ours without a sign of life.

    `linger` is how many seconds an event may wait for company; so much may be lost in a crash.
    `group` events or `group_bytes` end the wait. `queue` events and `queue_bytes` may wait for the
    disk; `body` is the most that one event takes. `retry` is the pause after a failed group,
    `lease` for how long nobody else may take a run: call `beat` well within it.
    """

    linger: float = 0.02
    group: int = 256
    group_bytes: int = 1 << 20
    queue: int = 10_000
    queue_bytes: int = 64 << 20
    body: int = 16 << 20
    retry: float = 0.5
    lease: float = 15.0


class RunJournal:
    """The `Journal` of one process. All its methods are called on one event loop.

    `owner` names this process among those that share the registry, for people who look.
    """

    def __init__(
        self, registry: Registry, *, owner: str = "", limits: JournalLimits | None = None
    ) -> None:
        self._database = registry.database
        self._limits = limits or JournalLimits()
        file = JournalFile(
            Groups(registry.database),
            owner=owner or token_hex(8),
            lease_ns=int(self._limits.lease * _NS),
        )
        self._writer = JournalWriter(file, retry=self._limits.retry)
        self._held: dict[str, Held] = {}
        self._ending: deque[Held] = deque()
        # what was queued since the start, and what waits to be handed over
        self._ticket = self._rows = self._bytes = 0
        self._handed_rows = self._handed_bytes = 0
        self._batches: list[Batch] = []
        self._level = Level.LAZY
        self._timer: asyncio.Handle | None = None
        self._closed = False

    def create(self, run: NewRun) -> RunKey:
        """Begin a run of a new `uid` and return the right to write to it; it is kept soon.

        Raises:
            Conflict: This process has a run of this `uid` already.
            StoreError: The queue is full, or the journal closed.
        """
        self._admit(1, 0)
        if run.uid in self._held:
            raise Conflict(message=f"the run {run.uid} is there already")
        held = self._held[run.uid] = Held(run.uid, epoch=1, head=0, new=run)
        self._queue(Batch(held, ()), Level.LAZY)
        return RunKey(run.uid, 1)

    def append(
        self,
        key: RunKey,
        events: Sequence[Event],
        level: Level = Level.LAZY,
        status: RunStatus | None = None,
    ) -> int:
        """Queue events, all or none of which are kept, and return the last one's `seq`.

        Raises:
            RunTaken: The run is not ours any more, or has been paused or finished.
            StoreError: The queue is full, or the journal closed; nothing was queued.
            Overloaded: An event is too large; nothing was queued.
        """
        held = self._held.get(key.uid)
        if held is None or held.epoch != key.epoch or held.ended:
            raise taken(key.uid)
        if held.error is not None:
            raise held.error
        if not events:
            return held.head
        rows = self._encoded(held.head, events)
        size = sum(len(row.body) for row in rows)
        self._admit(len(rows), size)
        self._rows += len(rows)
        self._bytes += size
        held.head = rows[-1].seq
        if status is not None and status is not RunStatus.OPEN:
            held.ended = True
            self._ending.append(held)
        self._queue(Batch(held, rows, status), level)
        return held.head

    async def settled(self, key: RunKey, level: Level = Level.COMMITTED) -> None:
        """Wait until all that was appended to a run is as safe as `level` and its own say.

        Raises:
            RunTaken: The run is another's now, and what was appended may be lost.
            StoreError: It could not be kept yet; it stays queued and is tried again.
        """
        held = self._held.get(key.uid)
        if held is not None and held.epoch != key.epoch:
            raise taken(key.uid)
        upto = self._ticket if held is None else held.ticket
        safe = self._writer.synced if level is Level.SYNCED else self._writer.committed
        if held is not None and held.error is not None:
            raise held.error
        if safe < upto:
            await self._flushed(held, level)

    async def flush(self, level: Level = Level.COMMITTED) -> None:
        """Wait until all that was appended to any run is safe.

        Raises:
            StoreError: It could not be kept yet; it stays queued and is tried again.
        """
        await self._flushed(None, level)

    async def take(self, uid: str) -> Taken:
        """Take over an unfinished run that nobody drives; who drove it can write no more.

        Raises:
            Missing: There is no such run.
            Conflict: It is finished, or somebody drives it.
            StoreError: It cannot be read; its lease is given back.
        """
        found = await self._errand(partial(JournalFile.take, uid=uid))
        held = Held(uid, epoch=found.epoch, head=found.head, new=None, id=found.id)
        try:
            # only now: until the epoch was raised, its old driver might still have written
            entries = await self.read(uid)
        except BaseException:
            self._leave_soon(held)
            raise
        held.ticket = self._ticket
        self._held[uid] = held
        return Taken(
            key=RunKey(uid, found.epoch), run=found.run, status=found.status, entries=entries
        )

    async def beat(self) -> None:
        """Renew the leases of all runs that are driven here; who lost one hears it from `append`.

        Raises:
            StoreError: They could not be renewed; call again before they expire.
        """
        self._forget_ended()
        driven = [held for held in self._held.values() if not held.ended and held.error is None]
        if driven:
            await self._errand(partial(JournalFile.beat, runs=driven))

    async def read(self, uid: str, *, after: int = 0) -> tuple[Entry, ...]:
        """Return what happened in a run behind the event `after`, as far as it is committed.

        Raises:
            Missing: There is no such run.
            StoreError: It cannot be read.
        """
        return await asyncio.to_thread(journal_read.entries, self._database, uid, after=after)

    async def find(self, uid: str) -> RunRecord | None:
        """Return how a run stands, None when there is none."""
        return await asyncio.to_thread(journal_read.find_run, self._database, uid)

    async def runs(self, wanted: RunFilter) -> tuple[RunRecord, ...]:
        """Return the runs that a filter lets through, newest first."""
        return await asyncio.to_thread(journal_read.list_runs, self._database, wanted)

    async def prune(self, *, older_than: float) -> int:
        """Delete what ended more than `older_than` seconds ago; return how many events and runs.

        Raises:
            StoreError: Something is left to delete.
        """
        before = time.time_ns() - int(older_than * _NS)
        total = 0
        prune = partial(journal_prune.prune, self._database, before_ns=before)
        while gone := await asyncio.to_thread(prune):
            total += gone
            await asyncio.sleep(_PAUSE)
        return total

    async def aclose(self, *, within: float = 5.0) -> int:
        """Write what is queued, give the runs back, and end; return how many events are lost.

        The registry is closed after it, not before.
        """
        driven = [held for held in self._held.values() if not held.ended and held.error is None]
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(within):
                if self._ticket:
                    await self.flush(Level.SYNCED)
                if driven:
                    await self._errand(partial(JournalFile.leave, runs=driven))
        self._closed = True
        await asyncio.to_thread(self._writer.close, within)
        return self._rows - self._writer.rows

    def _encoded(self, head: int, events: Sequence[Event]) -> list[Row]:
        now = time.time_ns()
        rows = []
        for seq, (kind, body, effect) in enumerate(events, head + 1):
            written = _json(body)
            if len(written) > self._limits.body:
                raise Overloaded(
                    message=f"an event {kind} has {len(written)} bytes; the journal takes "
                    f"{self._limits.body}"
                )
            rows.append(Row(seq, journal_read.VERSION, kind, effect, now, written))
        return rows

    def _admit(self, rows: int, size: int) -> None:
        """Refuse what the queue has no place for.

        Raises:
            StoreError: It has none, or nothing will ever be written again.
        """
        if self._closed or self._writer.ended:
            raise stopped()
        waiting = self._rows - self._writer.rows
        if (
            waiting + rows > self._limits.queue
            or self._bytes - self._writer.bytes + size > self._limits.queue_bytes
        ):
            raise StoreError(
                message=f"the journal has {waiting} events waiting and takes no more; try again "
                "when the disk has caught up"
            )

    def _queue(self, batch: Batch, level: Level) -> None:
        self._forget_ended()
        self._ticket += 1
        batch.held.ticket = self._ticket
        self._batches.append(batch)
        self._level = max(self._level, level)
        loop = asyncio.get_running_loop()
        if level is not Level.LAZY or self._is_large():
            self._cancel_timer()
            self._timer = loop.call_soon(self._hand_over)
        elif self._timer is None:
            self._timer = loop.call_later(self._limits.linger, self._hand_over)

    def _is_large(self) -> bool:
        return (
            self._rows - self._handed_rows >= self._limits.group
            or self._bytes - self._handed_bytes >= self._limits.group_bytes
        )

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hand_over(self, level: Level = Level.LAZY, waiter: Waiter | None = None) -> None:
        """Hand what was gathered to the thread; when that has ended, only a waiter is told."""
        self._cancel_timer()
        group = Group(
            batches=self._batches,
            waiters=[] if waiter is None else [waiter],
            level=max(self._level, level),
            ticket=self._ticket,
        )
        self._batches, self._level = [], Level.LAZY
        self._handed_rows, self._handed_bytes = self._rows, self._bytes
        try:
            self._writer.hand(group)
        except StoreError as error:
            if waiter is not None:
                waiter.done.set_exception(error)

    async def _flushed(self, held: Held | None, level: Level) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._hand_over(level, Waiter(done, held))
        await done

    async def _errand(self, do: Callable[[JournalFile], T]) -> T:
        """Have something done in the thread, behind all that was queued."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._hand_over()
        self._writer.hand(Errand(do, done))
        return await done

    def _leave_soon(self, held: Held) -> None:
        """Give a lease back without waiting for it; else it expires."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(lambda over: over.exception())
        with suppress(StoreError):
            self._writer.hand(Errand(partial(JournalFile.leave, runs=[held]), done))

    def _forget_ended(self) -> None:
        """Drop runs whose end is written; those that were lost stay, to be told so."""
        committed = self._writer.committed
        while self._ending and self._ending[0].ticket <= committed:
            held = self._ending.popleft()
            if held.error is None and self._held.get(held.uid) is held:
                del self._held[held.uid]


def _json(body: JsonObject) -> bytes:
    """Return JSON that is read as the same value; a tenth of the time for nearly all bodies.

    The quick encoder writes what is no number as null, and refuses lone surrogates and integers
    beyond 64 bits.

    Raises:
        ValueError: A number is not finite.
    """
    try:
        written = _quickly(body)
    except (OverflowError, UnicodeEncodeError):
        written = b"null"
    if b"null" in written:
        return _strictly(body).encode("utf-8", "surrogatepass")
    return written
