"""Runs and their events as they stand in the registry. Never takes part in writing them.

Each read fetches all that it needs at once: a read that stays open stops checkpoints.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select

from thoughtgate.core.errors import Missing, StoreNewer
from thoughtgate.core.journal import Entry, Event, NewRun, RunStatus
from thoughtgate.registry import trouble, values
from thoughtgate.registry.database import Database
from thoughtgate.registry.journal_file import REMOVED
from thoughtgate.registry.tables import journal, runs

VERSION = 1
"""The shape of the bodies that this release writes."""

VERSIONS = frozenset({1})
"""The shapes that it can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as it stands: `head` events, `driven` by somebody whose lease has not expired.

    `place` orders runs by when they were created; times are Unix nanoseconds.
    """

    place: int
    run: NewRun
    status: RunStatus
    head: int
    driven: bool
    created_ns: int
    ended_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs: newest first, older than the place `before`, at most `limit`.

    `principal` None means everybody's. `left` are the open ones that nobody drives any more.
    """

    principal: str | None = None
    left: bool = False
    before: int | None = None
    limit: int = 50


def entries(database: Database, uid: str, *, after: int = 0) -> tuple[Entry, ...]:
    """Return what happened in a run, in its order, behind the event `after`.

    Raises:
        Missing: There is no such run.
        StoreNewer: A newer release wrote some of it.
        StoreCorrupt: Something in it cannot be read, or is missing.
    """
    columns = journal.c
    with database.read() as connection:
        found = connection.execute(_known(select(runs.c.id, runs.c.head), uid)).one_or_none()
        if found is None:
            raise Missing(message=f"there is no run {uid[:80]}")
        rows = connection.execute(
            select(
                columns.seq,
                columns.version,
                columns.kind,
                columns.effect,
                columns.at_ns,
                columns.body,
            )
            .where(columns.run == found.id, columns.seq > after)
            .order_by(columns.seq)
        ).all()
    if [row[0] for row in rows] != list(range(after + 1, found.head + 1)):
        raise trouble.corrupt(database.path, f"lacks events of the run {uid}")
    return _read(database, uid, rows)


def list_runs(database: Database, wanted: RunFilter) -> tuple[RunRecord, ...]:
    """Return the runs that a filter lets through, newest first."""
    now = time.time_ns()
    query = select(runs).where(runs.c.status != REMOVED)
    if wanted.principal is not None:
        query = query.where(runs.c.principal == wanted.principal)
    if wanted.before is not None:
        query = query.where(runs.c.id < wanted.before)
    if wanted.left:
        query = query.where(runs.c.status == RunStatus.OPEN.value, runs.c.lease_ns <= now)
    with database.read() as connection:
        rows = connection.execute(query.order_by(runs.c.id.desc()).limit(wanted.limit)).all()
    return tuple(_record(row, now) for row in rows)


def find_run(database: Database, uid: str) -> RunRecord | None:
    """Return how one run stands, None when there is none."""
    with database.read() as connection:
        row = connection.execute(_known(select(runs), uid)).one_or_none()
    return None if row is None else _record(row, time.time_ns())


def _known(query: Select[Any], uid: str) -> Select[Any]:
    return query.where(runs.c.uid == uid, runs.c.status != REMOVED)


def _record(row: Any, now: int) -> RunRecord:
    return RunRecord(
        place=row.id,
        run=NewRun(
            uid=row.uid,
            engine=row.engine,
            principal=row.principal,
            domain=row.domain,
            parent=row.parent,
            forked_from=row.forked_from,
        ),
        status=RunStatus(row.status),
        head=row.head,
        driven=row.lease_ns > now,
        created_ns=row.created_ns,
        ended_ns=row.ended_ns,
    )


def _read(database: Database, uid: str, rows: Sequence[Any]) -> tuple[Entry, ...]:
    newer = next((row[1] for row in rows if row[1] not in VERSIONS), None)
    if newer is not None:
        raise StoreNewer(
            message=f"the run {uid} has events of version {newer}, this release knows "
            f"{VERSION}; use the newer thoughtgate that wrote them"
        )
    with trouble.translated(database.path):
        return tuple(
            Entry(seq, at_ns, Event(kind, values.from_json(body), effect))
            for seq, _, kind, effect, at_ns, body in rows
        )
