"""Runs and their events in the registry's file, written group by group. Lives in one thread.

Never writes for a run that another process has taken over: each group moves the run's head from
where this process left it, under the epoch that it got, or nothing of the run is written.
"""

import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from thoughtgate.core.errors import Conflict, Missing, RunTaken, StoreError
from thoughtgate.core.journal import Level, NewRun, RunStatus
from thoughtgate.registry.groups import Groups

REMOVED = "removed"
"""The status of a run whose events are being deleted."""

_AT_ONCE = 32
"""Rows per INSERT: as many are bound before the interpreter lock is let go again."""

_INSERT = "INSERT OR ROLLBACK INTO journal (run, seq, version, kind, effect, at_ns, body) VALUES "
"""OR ROLLBACK: without it SQLite keeps a statement journal in a temporary file for many rows."""

_MARKS = "(?, ?, ?, ?, ?, ?, ?)"
_COLUMNS = 7

_CREATE = (
    "INSERT INTO runs (uid, engine, principal, domain, parent, forked_from, status, epoch, head,"
    " owner, lease_ns, created_ns) VALUES (?, ?, ?, ?, ?, ?, 'open', 1, 0, ?, ?, ?)"
)
_MINE = (
    " WHERE id = ? AND uid = ? AND epoch = ? AND head = ? AND status NOT IN ('finished', 'removed')"
)
_MOVE = "UPDATE runs SET head = ?, lease_ns = ?" + _MINE
_TURN = "UPDATE runs SET head = ?, lease_ns = ?, status = ?, owner = ?, ended_ns = ?" + _MINE
_HEAD = "SELECT head FROM runs WHERE id = ? AND uid = ? AND epoch = ?"
_FIND = (
    "SELECT id, epoch, head, lease_ns, status, engine, principal, domain, parent, forked_from"
    " FROM runs WHERE uid = ? AND status <> 'removed'"
)
_TAKE = "UPDATE runs SET epoch = epoch + 1, owner = ?, lease_ns = ? WHERE id = ?"
_BEAT = "UPDATE runs SET lease_ns = ? WHERE id = ? AND epoch = ?"
_LEAVE = "UPDATE runs SET lease_ns = 0, owner = '' WHERE id = ? AND epoch = ?"


class Row(NamedTuple):
    """One event as it is stored, but for its run."""

    seq: int
    version: int
    kind: str
    effect: str
    at_ns: int
    body: bytes


class Held:
    """A run that this process drives.

    `head`, `ticket` and `ended` are the loop's: what was queued. `id`, `stored` and `error` are
    the writing thread's: what was written, and why no more will be.
    """

    __slots__ = ("ended", "epoch", "error", "head", "id", "new", "stored", "ticket", "uid")

    def __init__(self, uid: str, *, epoch: int, head: int, new: NewRun | None, id: int = 0) -> None:
        self.uid = uid
        self.epoch = epoch
        self.new = new
        self.head = self.stored = head
        self.ticket = 0
        self.ended = False
        self.id = id
        self.error: RunTaken | None = None


class Batch(NamedTuple):
    """Events of one run that were appended together; with `status` they change how it stands."""

    held: Held
    rows: Sequence[Row]
    status: RunStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A run as it stands after it was taken over."""

    id: int
    epoch: int
    head: int
    run: NewRun
    status: RunStatus


class _Part(NamedTuple):
    """All that one group writes of one run; `first` is the head that it builds on."""

    held: Held
    rows: list[Row]
    status: RunStatus | None
    first: int


class _Fenced(Exception):
    """A run of the group is no longer ours."""


class JournalFile:
    """Writes runs for one owner, whose leases last `lease_ns` after each sign of life."""

    def __init__(self, groups: Groups, *, owner: str, lease_ns: int) -> None:
        self._groups = groups
        self._owner = owner
        self._lease_ns = lease_ns

    def write(self, batches: Iterable[Batch], level: Level) -> bool:
        """Commit batches in their order, as one group; say whether anything was written.

        A run that is no longer ours gets its `error`, and the others are written all the same.

        Raises:
            StoreError: Some runs were not written; writing the same again writes only those.
        """
        parts = _by_run(batches)
        if not parts:
            return False
        try:
            self._commit(parts, level)
        except _Fenced:
            for part in parts:
                self._alone(part, level)
        return True

    def sync(self) -> None:
        """Flush what was committed without to the disk.

        Raises:
            StoreError: It may be lost if the machine stops now.
        """
        self._groups.sync()

    def take(self, uid: str) -> Found:
        """Take a run over if its lease has expired; from then on its old driver can write nothing.

        Raises:
            Missing: There is no such run.
            Conflict: It is finished, or its driver lives.
            StoreError: It could not be taken.
        """
        now = time.time_ns()
        with self._groups.group(sync=False) as connection:
            with closing(connection.execute(_FIND, (uid,))) as rows:
                row = rows.fetchone()
            if row is None:
                raise Missing(message=f"there is no run {uid[:80]}")
            run, epoch, head, lease_ns, status, *about = row
            if status == RunStatus.FINISHED:
                raise Conflict(message=f"the run {uid} is finished; it cannot go on")
            if lease_ns > now:
                raise Conflict(
                    message=f"the run {uid} is driven by another gateway, which showed signs of "
                    "life; try again when it has ended"
                )
            connection.execute(_TAKE, (self._owner, now + self._lease_ns, run))
        new = NewRun(
            uid=uid,
            engine=about[0],
            principal=about[1],
            domain=about[2],
            parent=about[3],
            forked_from=about[4],
        )
        return Found(id=run, epoch=epoch + 1, head=head, run=new, status=RunStatus(status))

    def beat(self, runs: Iterable[Held]) -> None:
        """Renew the leases of runs; one that is no longer ours gets its `error`.

        Raises:
            StoreError: No lease was renewed.
        """
        stored = [held for held in runs if held.id and held.error is None]
        if not stored:
            return
        with self._groups.group(sync=False) as connection:
            until = time.time_ns() + self._lease_ns
            lost = [
                held
                for held in stored
                if connection.execute(_BEAT, (until, held.id, held.epoch)).rowcount != 1
            ]
        for held in lost:
            held.error = taken(held.uid)

    def leave(self, runs: Iterable[Held]) -> None:
        """Give back the leases of runs, so that others need not wait for their end.

        Raises:
            StoreError: No lease was given back; they expire.
        """
        with self._groups.group(sync=False) as connection:
            connection.executemany(_LEAVE, [(held.id, held.epoch) for held in runs])

    def close(self) -> None:
        """Close the connection.

        Raises:
            StoreLocked: Others write for too long; the connection stays open.
        """
        self._groups.close()

    def _alone(self, part: _Part, level: Level) -> None:
        """Commit one run of a group that failed, or find out that it is lost."""
        try:
            self._commit([part], level)
        except _Fenced:
            part.held.error = taken(part.held.uid)

    def _commit(self, parts: Sequence[_Part], level: Level) -> None:
        with self._groups.group(sync=level is Level.SYNCED) as connection:
            try:
                ids = self._put(connection, parts)
            except sqlite3.IntegrityError as error:  # a name or a place that is somebody else's
                raise _Fenced from error
        for part, run in zip(parts, ids, strict=True):
            part.held.id = run
            if part.rows:
                part.held.stored = part.rows[-1].seq

    def _put(self, connection: sqlite3.Connection, parts: Sequence[_Part]) -> list[int]:
        """Write the parts within a transaction and return the ids of their runs."""
        now = time.time_ns()
        ids = []
        values: list[object] = []
        for part in parts:
            run = part.held.id or self._created(connection, part.held, now)
            ids.append(run)
            for row in self._moved(connection, part, run, now) if part.rows else ():
                values += (run, *row)
        _insert(connection, values)
        return ids

    def _created(self, connection: sqlite3.Connection, held: Held, now: int) -> int:
        new = held.new
        if new is None:
            raise StoreError(message=f"the run {held.uid} was neither made nor taken over here")
        about = (new.uid, new.engine, new.principal, new.domain, new.parent, new.forked_from)
        done = connection.execute(_CREATE, (*about, self._owner, now + self._lease_ns, now))
        if done.lastrowid is None:
            raise sqlite3.IntegrityError(held.uid)
        return done.lastrowid

    def _moved(self, connection: sqlite3.Connection, part: _Part, run: int, now: int) -> list[Row]:
        """Move the head and return the rows that are still to be written.

        Some may stand there already, by a commit that seemed to fail: nobody else has our epoch.
        """
        if self._move(connection, part, (run, part.first), now):
            return part.rows
        mine = (run, part.held.uid, part.held.epoch)
        at = connection.execute(_HEAD, mine).fetchone()
        if at is None or not part.first < at[0] <= part.rows[-1].seq:
            raise _Fenced
        rest = [row for row in part.rows if row.seq > at[0]]
        if rest and not self._move(connection, part, (run, at[0]), now):
            raise _Fenced
        return rest

    def _move(
        self, connection: sqlite3.Connection, part: _Part, place: tuple[int, int], now: int
    ) -> bool:
        """Move the head from where we left it; say whether it stood there."""
        run, head = place
        last, status = part.rows[-1].seq, part.status
        mine = (run, part.held.uid, part.held.epoch, head)
        until = now + self._lease_ns
        if status is None:
            done = connection.execute(_MOVE, (last, until, *mine))
        elif status is RunStatus.OPEN:
            done = connection.execute(_TURN, (last, until, status.value, self._owner, None, *mine))
        else:
            ended = now if status is RunStatus.FINISHED else None
            done = connection.execute(_TURN, (last, 0, status.value, "", ended, *mine))
        return done.rowcount == 1


def taken(uid: str) -> RunTaken:
    """Return the error for a run that this process may write no more."""
    return RunTaken(
        message=f"the run {uid} was taken over by another gateway; it goes on there, and nothing "
        "more is done for it here"
    )


def _by_run(batches: Iterable[Batch]) -> list[_Part]:
    """Gather what is still to be written of each run, in the order of their first batches."""
    parts: dict[Held, _Part] = {}
    for held, rows, status in batches:
        if held.error is not None or (rows and rows[-1].seq <= held.stored):
            continue
        part = parts.get(held) or _Part(held, [], None, held.stored)
        part.rows.extend(rows)
        parts[held] = part if status is None else part._replace(status=status)
    return [part for part in parts.values() if part.rows or not part.held.id]


def _insert(connection: sqlite3.Connection, values: list[object]) -> None:
    for start in range(0, len(values), _AT_ONCE * _COLUMNS):
        some = values[start : start + _AT_ONCE * _COLUMNS]
        marks = ", ".join([_MARKS] * (len(some) // _COLUMNS))
        with closing(connection.execute(_INSERT + marks, some)):
            pass
