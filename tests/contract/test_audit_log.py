"""What every audit log promises, and what the registry's promises when it cannot write."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.registries import make_row, open_in, raw
from tests.support.waiting import until, within
from thoughtgate.core.errors import StoreError, StoreLocked
from thoughtgate.core.json import JsonObject
from thoughtgate.core.ports import AuditLog
from thoughtgate.registry.audit import AuditLimits, AuditWriter, latest, verify
from thoughtgate.registry.store import Registry
from thoughtgate.testing.recorder import ListAuditLog

QUICK = AuditLimits(linger=0.001, group=3, queue=5, retry=0.001)

Read = Callable[[], list[str]]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    """A registry whose writers lose their patience at once."""
    registry = open_in(tmp_path, patience=0.02)
    yield registry
    registry.close()


@pytest.fixture
def open_writer(registry: Registry) -> Iterator[Callable[..., AuditWriter]]:
    writers: list[AuditWriter] = []

    def opened(*, required: bool = False, limits: AuditLimits = QUICK) -> AuditWriter:
        writers.append(AuditWriter(registry, required=required, limits=limits))
        return writers[-1]

    yield opened
    for writer in writers:
        writer.close()


@contextmanager
def held_by_another(folder: Path) -> Iterator[sqlite3.Connection]:
    with raw(folder) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield connection


def stored(registry: Registry) -> list[JsonObject]:
    """Return what stands in the log, oldest first, without what writers add about chains."""
    with registry.database.read() as connection:
        bodies = connection.exec_driver_sql("SELECT body FROM audit ORDER BY chain, seq")
        count = len(bodies.all())
    rows = sorted(latest(registry, limit=count), key=lambda row: (row.chain, row.seq))
    return [row.row for row in rows if "heads" not in row.row]


def calls(registry: Registry) -> list[str]:
    return [str(row.get("call_id", f"lost {row.get('lost')}")) for row in stored(registry)]


@pytest.fixture(params=["list", "best effort", "required"])
def log(
    request: pytest.FixtureRequest, registry: Registry, open_writer: Callable[..., AuditWriter]
) -> tuple[AuditLog, Read]:
    """Each implementation, with a way to read back the calls that it holds."""
    if request.param == "list":
        listed = ListAuditLog()
        return listed, lambda: [row.call_id for row in listed.rows]
    limits = AuditLimits(linger=0.001, group=3)
    writer = open_writer(required=request.param == "required", limits=limits)
    return writer, lambda: calls(registry)


async def test_what_was_flushed_can_be_read_in_the_order_of_appending(
    log: tuple[AuditLog, Read],
) -> None:
    audit, read = log
    for number in range(20):
        audit.append(make_row(number))
    await within(audit.flush())
    assert read() == [f"call-{number}" for number in range(20)]


async def test_flushing_nothing_returns_at_once(log: tuple[AuditLog, Read]) -> None:
    audit, read = log
    await within(audit.flush())
    assert read() == []
    audit.append(make_row(1))
    await within(asyncio.gather(*(audit.flush() for _ in range(5))))
    await within(audit.flush())
    assert read() == ["call-1"]


async def test_a_flush_that_is_given_up_does_not_disturb_the_others(
    log: tuple[AuditLog, Read],
) -> None:
    audit, read = log
    audit.append(make_row(1))
    given_up = asyncio.ensure_future(audit.flush())
    other = asyncio.ensure_future(audit.flush())
    await asyncio.sleep(0)
    given_up.cancel()
    await within(other)
    audit.append(make_row(2))
    await within(audit.flush())
    assert read() == ["call-1", "call-2"]


async def test_any_text_can_be_recorded(log: tuple[AuditLog, Read]) -> None:
    audit, read = log
    audit.append(make_row(1, tool="\ud800\x00\x1b\n", reason="x" * 100_000))
    await within(audit.flush())
    assert read() == ["call-1"]


async def test_rows_reach_the_disk_without_a_flush(
    registry: Registry, open_writer: Callable[..., AuditWriter]
) -> None:
    writer = open_writer()
    writer.append(make_row(1))
    await until(lambda: calls(registry) == ["call-1"])


def test_rows_from_many_threads_are_all_kept(registry: Registry) -> None:
    writer = AuditWriter(registry, limits=AuditLimits(linger=0.001, group=7))

    def append_many() -> None:
        for number in range(200):
            writer.append(make_row(number))

    threads = [threading.Thread(target=append_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert writer.close() == 0
    assert len(calls(registry)) == 800
    assert verify(registry).ok


def test_closing_writes_what_is_queued_and_nothing_comes_after(registry: Registry) -> None:
    best, required = AuditWriter(registry), AuditWriter(registry, required=True)
    for writer in (best, required):
        for number in range(3):
            writer.append(make_row(number))
        assert writer.close() == writer.close() == 0
    best.append(make_row(4))
    with pytest.raises(StoreError, match="closed"):
        required.append(make_row(4))
    assert best.lost == 1
    assert len(calls(registry)) == 6


def test_a_writer_that_never_wrote_leaves_no_chain(registry: Registry) -> None:
    assert AuditWriter(registry).close() == 0
    assert verify(registry).chains == ()


async def test_a_locked_log_is_told_to_who_waits_and_loses_nothing(
    registry: Registry, tmp_path: Path, open_writer: Callable[..., AuditWriter]
) -> None:
    writer = open_writer()
    with held_by_another(tmp_path):
        writer.append(make_row(1))
        with pytest.raises(StoreLocked):
            await within(writer.flush())
        writer.append(make_row(2))
    await until(lambda: calls(registry) == ["call-1", "call-2"])
    assert writer.lost == 0


async def test_what_best_effort_could_not_keep_is_counted_where_it_is_missing(
    registry: Registry, tmp_path: Path, open_writer: Callable[..., AuditWriter]
) -> None:
    writer = open_writer()
    with held_by_another(tmp_path):
        for number in range(QUICK.queue + 3):
            writer.append(make_row(number))
    await within(flushed(writer))
    writer.append(make_row(9))
    await within(flushed(writer))
    expected = [f"call-{number}" for number in range(QUICK.queue)]
    assert calls(registry) == [*expected, "lost 3", "call-9"]
    assert writer.lost == 3
    assert verify(registry).ok


async def test_a_required_log_refuses_while_it_cannot_write_and_recovers(
    registry: Registry, tmp_path: Path, open_writer: Callable[..., AuditWriter]
) -> None:
    writer = open_writer(required=True)
    with held_by_another(tmp_path):
        writer.append(make_row(1))
        with pytest.raises(StoreLocked):
            await within(writer.flush())
        with pytest.raises(StoreLocked):
            writer.append(make_row(2))
    await within(flushed(writer))
    writer.append(make_row(3))
    await within(flushed(writer))
    assert calls(registry) == ["call-1", "call-3"]


async def test_a_required_log_refuses_when_its_queue_is_full(
    registry: Registry, open_writer: Callable[..., AuditWriter]
) -> None:
    writer = open_writer(required=True)
    with registry.database.lock.held():
        for number in range(QUICK.queue):
            writer.append(make_row(number))
        with pytest.raises(StoreError):
            writer.append(make_row(9))
    await within(flushed(writer))
    assert writer.lost == 0
    assert len(calls(registry)) == QUICK.queue


def test_closing_a_log_that_cannot_write_is_bounded_and_says_what_was_given_up(
    registry: Registry, tmp_path: Path
) -> None:
    writer = AuditWriter(registry, limits=QUICK)
    with held_by_another(tmp_path):
        for number in range(4):
            writer.append(make_row(number))
        assert writer.close(within=1) == 4
    assert calls(registry) == []


async def flushed(writer: AuditWriter) -> None:
    """Flush until it succeeds: the disk has just come back."""
    while True:
        try:
            await writer.flush()
        except StoreError:
            continue
        return
