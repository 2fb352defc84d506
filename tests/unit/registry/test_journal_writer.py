"""The journal's thread: what reaches the disk, and what is told when it ends."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.journals import make_run
from tests.support.registries import raw
from tests.support.waiting import within
from thoughtgate.core.errors import StoreError
from thoughtgate.core.journal import Level
from thoughtgate.registry.database import WAL_LIMIT
from thoughtgate.registry.groups import Groups
from thoughtgate.registry.journal_file import Batch, Held, JournalFile, Row
from thoughtgate.registry.journal_read import entries
from thoughtgate.registry.journal_writer import Errand, Group, JournalWriter, Waiter
from thoughtgate.registry.store import Registry


class NotedGroups(Groups):
    """Notes what SQLite was told about each group, and when its log was flushed by hand."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry.database)
        self.seen: list[object] = []

    @contextmanager
    def group(self, *, sync: bool) -> Iterator[sqlite3.Connection]:
        with super().group(sync=sync) as connection:
            yield connection
            self.seen += connection.execute("PRAGMA synchronous").fetchone()

    def sync(self) -> None:
        super().sync()
        self.seen.append("flushed")


@pytest.fixture
def groups(registry: Registry) -> NotedGroups:
    return NotedGroups(registry)


@pytest.fixture
def writer(groups: NotedGroups) -> Iterator[JournalWriter]:
    writer = JournalWriter(JournalFile(groups, owner="me", lease_ns=10**10), retry=0.01)
    yield writer
    writer.close(5)


async def written(writer: JournalWriter, level: Level, ticket: int, *batches: Batch) -> None:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    group = Group(batches=list(batches), waiters=[Waiter(done, None)], level=level, ticket=ticket)
    writer.hand(group)
    await within(done)


def batch(held: Held, seq: int, body: bytes = b"{}") -> Batch:
    return Batch(held, [Row(seq, 1, "noted", "", 0, body)])


@pytest.fixture
def held() -> Held:
    return Held("run-1", epoch=1, head=0, new=make_run())


def numbers_of(registry: Registry) -> list[int]:
    return [entry.seq for entry in entries(registry.database, "run-1")]


async def test_only_a_synced_group_is_flushed_and_what_was_before_it_once(
    writer: JournalWriter, groups: NotedGroups, held: Held
) -> None:
    normal, full = 1, 2
    await written(writer, Level.LAZY, 1, batch(held, 1))
    await written(writer, Level.COMMITTED, 2, batch(held, 2))
    assert (groups.seen, writer.committed, writer.synced) == ([normal, normal], 2, 0)
    await written(writer, Level.SYNCED, 3, batch(held, 3))
    assert (groups.seen[2:], writer.synced) == ([full], 3)
    await written(writer, Level.SYNCED, 3)
    assert groups.seen[3:] == []
    await written(writer, Level.COMMITTED, 4, batch(held, 4))
    await written(writer, Level.SYNCED, 4)
    assert (groups.seen[3:], writer.synced) == ([normal, "flushed"], 4)


async def test_what_seemed_to_fail_but_was_written_is_not_written_twice(
    groups: NotedGroups, registry: Registry, held: Held
) -> None:
    file = JournalFile(groups, owner="me", lease_ns=10**10)
    assert file.write([batch(held, 1)], Level.COMMITTED)
    held.stored = 0  # as if the answer to the commit had been lost
    assert file.write([batch(held, 1)], Level.COMMITTED)
    held.stored = 0
    assert file.write([batch(held, 1), batch(held, 2)], Level.COMMITTED)
    assert (held.error, held.stored) == (None, 2)
    assert numbers_of(registry) == [1, 2]
    held.stored = 1
    assert file.write([batch(held, 2)], Level.COMMITTED)
    held.stored = -1
    file.write([batch(held, 1)], Level.COMMITTED)
    assert held.error is not None, "what was written there was more than that"
    assert numbers_of(registry) == [1, 2]
    file.close()


async def test_the_log_is_shortened_by_the_writer(
    writer: JournalWriter, registry: Registry, held: Held
) -> None:
    log = registry.database.path.with_name(f"{registry.database.path.name}-wal")
    for seq in range(1, 13):
        await written(writer, Level.LAZY, seq, batch(held, seq, b"x" * 1_000_000))
    assert log.stat().st_size <= 2 * WAL_LIMIT


async def test_who_waits_when_the_thread_ends_is_told(writer: JournalWriter, held: Held) -> None:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    behind: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    writer.hand(Group(batches=[batch(held, 1)], waiters=[Waiter(done, held)], ticket=1))
    writer.hand(Errand(lambda _: "read", behind))
    await asyncio.to_thread(writer.close, 5)
    await within(done)
    assert await within(behind) == "read"
    assert writer.ended
    with pytest.raises(StoreError):
        writer.hand(Group())


async def test_a_file_that_was_removed_is_told(
    writer: JournalWriter, registry: Registry, held: Held
) -> None:
    await written(writer, Level.COMMITTED, 1, batch(held, 1))
    path = registry.database.path
    aside = path.with_name("aside")
    os.rename(path, aside)
    with pytest.raises(StoreError):
        await written(writer, Level.COMMITTED, 2, batch(held, 2))
    os.rename(aside, Path(path))
    await written(writer, Level.COMMITTED, 2)
    with raw(path.parent) as connection:
        assert connection.execute("SELECT head FROM runs").fetchone() == (2,)
