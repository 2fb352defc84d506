"""What the verification of the audit log finds, and where."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.registries import Spawn, make_row, open_in, raw
from thoughtgate.core.errors import StoreError
from thoughtgate.registry.audit import (
    AuditLimits,
    AuditReport,
    AuditWriter,
    ChainHead,
    CheckpointRule,
    heads,
    latest,
    verify,
)
from thoughtgate.registry.store import Registry

ROWS = 10
STARTED, CLOSED = 1, ROWS + 2
"""Sequence numbers of the rows that a writer adds by itself."""

AT_ONCE = AuditLimits(linger=0)


def write(registry: Registry, *, limits: AuditLimits = AT_ONCE) -> str:
    """Write one whole chain and return its id."""
    writer = AuditWriter(registry, limits=limits)
    for number in range(ROWS):
        writer.append(make_row(number))
    assert writer.close() == 0
    return writer.chain


@pytest.fixture
def chains(registry: Registry) -> tuple[str, str]:
    """Two chains, one after the other."""
    return write(registry), write(registry)


def broken(report: AuditReport) -> dict[str, int | None]:
    return {chain.writer: chain.broken_at for chain in report.chains if not chain.ok}


def test_an_untouched_log_is_whole_and_counted(registry: Registry, chains: tuple[str, str]) -> None:
    report = verify(registry)
    assert report.ok
    assert [(chain.writer, chain.rows) for chain in report.chains] == [
        (chains[0], CLOSED),
        (chains[1], CLOSED),
    ]
    assert report.rows == 2 * CLOSED
    assert all(chain.first_ns <= chain.last_ns for chain in report.chains)


def test_an_empty_log_is_whole(registry: Registry) -> None:
    assert verify(registry) == AuditReport(chains=())


SWAP = """
UPDATE audit SET seq = -1 WHERE chain = 1 AND seq = 5;
UPDATE audit SET seq = 5 WHERE chain = 1 AND seq = 6;
UPDATE audit SET seq = 6 WHERE chain = 1 AND seq = -1
"""

CLOSE_RANKS = """
DELETE FROM audit WHERE chain = 1 AND seq = 5;
UPDATE audit SET seq = seq - 1 WHERE chain = 1 AND seq > 5;
UPDATE audit_chains SET head_seq = head_seq - 1 WHERE id = 1
"""

INSERT = """
UPDATE audit SET seq = -seq WHERE chain = 1 AND seq >= 5;
UPDATE audit SET seq = 1 - seq WHERE chain = 1 AND seq < 0;
INSERT INTO audit SELECT chain, 5, at_ns, hash, body FROM audit WHERE chain = 1 AND seq = 4;
UPDATE audit_chains SET head_seq = head_seq + 1 WHERE id = 1
"""

BORROW = """
DELETE FROM audit WHERE chain = 1 AND seq = 5;
UPDATE audit SET chain = 1 WHERE chain = 2 AND seq = 5
"""

APPEND = """
INSERT INTO audit SELECT chain, 13, at_ns, hash, body FROM audit WHERE chain = 1 AND seq = 12
"""

HEAD_TO_9 = """
UPDATE audit_chains SET head_seq = 9,
  head_hash = (SELECT hash FROM audit WHERE chain = 1 AND seq = 9) WHERE id = 1
"""


UNREADABLE = (
    "body = CAST(body AS TEXT)",
    "hash = 'text'",
    "at_ns = 'text'",
    "body = X'7B7D'",  # {}
    "body = X'5B5D'",  # []
    "body = substr(body, 1, 9)",
    "body = 7",
)
"""What an editor of SQLite files leaves of a row: other types, other JSON, half of it."""


@pytest.mark.parametrize(
    ("tampering", "seq"),
    [
        ("UPDATE audit SET body = CAST(replace(body, 'call-4', 'call-X') AS BLOB)", 6),
        ("UPDATE audit SET hash = zeroblob(32) WHERE chain = 1 AND seq = 6", 6),
        *((f"UPDATE audit SET {to} WHERE chain = 1 AND seq = 6", 6) for to in UNREADABLE),
        ("UPDATE audit_chains SET head_hash = 'text' WHERE id = 1", 12),
        ("UPDATE audit_chains SET head_seq = 'text' WHERE id = 1", 1),
        ("UPDATE audit SET at_ns = at_ns + 1 WHERE chain = 1 AND seq = 6", 6),
        ("DELETE FROM audit WHERE chain = 1 AND seq = 5", 5),
        ("DELETE FROM audit WHERE chain = 1 AND seq = 1", 1),
        (CLOSE_RANKS, 5),
        (SWAP, 5),
        (INSERT, 5),
        (BORROW, 5),
        (APPEND, 13),
        ("DELETE FROM audit WHERE chain = 1 AND seq > 9", 10),
        (f"DELETE FROM audit WHERE chain = 1 AND seq > 9; {HEAD_TO_9}", 12),
        ("DELETE FROM audit WHERE chain = 1", 1),
        ("UPDATE audit_chains SET head_hash = zeroblob(32) WHERE id = 1", 12),
        ("UPDATE audit_chains SET head_seq = 11 WHERE id = 1", 11),
        (HEAD_TO_9, 10),
        ("DELETE FROM audit WHERE chain = 1; DELETE FROM audit_chains WHERE id = 1", 12),
    ],
)
def test_tampering_is_found_in_its_chain_at_its_row(
    registry: Registry, folder: Path, chains: tuple[str, str], tampering: str, seq: int
) -> None:
    with raw(folder) as connection:
        connection.executescript(tampering)
    found = broken(verify(registry))
    assert found[chains[0]] == seq
    assert (chains[1] in found) is ("chain = 2" in tampering or "'call-4'" in tampering)


def test_rows_whose_chain_was_struck_off_are_found(
    registry: Registry, folder: Path, chains: tuple[str, str]
) -> None:
    with raw(folder) as connection:
        connection.execute("DELETE FROM audit_chains WHERE id = 2")
    assert broken(verify(registry)) == {"#2": 1}


CUT_THE_NEWEST = """
DELETE FROM audit WHERE chain = 2 AND seq > 9;
UPDATE audit_chains SET head_seq = 9,
  head_hash = (SELECT hash FROM audit WHERE chain = 2 AND seq = 9) WHERE id = 2
"""


def test_a_cut_tail_of_the_newest_chain_shows_only_against_an_exported_anchor(
    registry: Registry, folder: Path, chains: tuple[str, str]
) -> None:
    anchor = heads(registry)
    assert verify(registry, anchored=anchor).ok
    with raw(folder) as connection:
        connection.executescript(CUT_THE_NEWEST)
    assert verify(registry).ok
    assert broken(verify(registry, anchored=anchor)) == {chains[1]: CLOSED}


def test_a_chain_that_an_anchor_names_may_not_be_missing(registry: Registry) -> None:
    gone = ChainHead(chain="gone", seq=3, hash="00")
    assert broken(verify(registry, anchored=[gone])) == {"gone": 3}


@pytest.fixture
def neighbours(registry: Registry) -> Iterator[tuple[AuditWriter, AuditWriter]]:
    """Two writers that run side by side and often note where the other stands."""
    limits = AuditLimits(linger=0, checkpoint=CheckpointRule(rows=1))
    one, other = AuditWriter(registry, limits=limits), AuditWriter(registry, limits=limits)
    yield one, other
    one.close()
    other.close()


async def test_writers_that_run_side_by_side_note_each_others_heads(
    registry: Registry, folder: Path, neighbours: tuple[AuditWriter, AuditWriter]
) -> None:
    one, other = neighbours
    for number in range(3):
        for writer in (one, other):
            writer.append(make_row(number))
            await writer.flush()
    last = latest(registry, limit=1)[0]
    assert last.row["action"] == "audit.checkpoint"
    with raw(folder) as connection:
        connection.executescript(
            "DELETE FROM audit WHERE chain = 1 AND seq > 2; UPDATE audit_chains SET head_seq = 2,"
            " head_hash = (SELECT hash FROM audit WHERE chain = 1 AND seq = 2) WHERE id = 1"
        )
    assert one.chain in broken(verify(registry))


async def test_a_writer_whose_chain_was_cut_says_so_and_begins_another(
    registry: Registry, folder: Path
) -> None:
    writer = AuditWriter(registry, limits=AuditLimits(linger=0, retry=0))
    writer.append(make_row())
    await writer.flush()
    first = writer.chain
    with raw(folder) as connection:
        connection.execute("UPDATE audit_chains SET head_seq = 1")
    writer.append(make_row())
    with pytest.raises(StoreError, match="changed by another program"):
        await writer.flush()
    await writer.flush()
    assert writer.close() == 0
    assert writer.chain != first
    assert list(broken(verify(registry))) == [first]


def test_the_newest_rows_of_all_chains_come_first_and_page_back(
    registry: Registry, chains: tuple[str, str]
) -> None:
    calls = [row for row in latest(registry, limit=100) if row.row["action"] == "tool.call"]
    assert [row.row["call_id"] for row in calls[:4]] == ["call-9", "call-9", "call-8", "call-8"]
    older = latest(registry, limit=2, before_ns=calls[0].at_ns)
    assert [(row.chain, row.row["call_id"]) for row in older] == [
        (chains[1], "call-8"),
        (chains[0], "call-8"),
    ]


APPEND_MANY = """
import sys
from pathlib import Path
from tests.support.registries import make_row, open_in
from thoughtgate.core.servers import LocalTransport, Server
from thoughtgate.registry.audit import AuditWriter
registry = open_in(Path(sys.argv[1]), patience=30)
writer = AuditWriter(registry)
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    for more in range(50):
        writer.append(make_row(number))
    registry.put_server(Server(name=f"{sys.argv[2]}-{number}", transport=LocalTransport()))
left = writer.close(within=30)
registry.close()
print(left, flush=True)
"""


def test_two_processes_write_one_registry_and_lose_nothing(folder: Path, spawn: Spawn) -> None:
    processes = [spawn(APPEND_MANY, folder, name) for name in ("one", "other")]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.communicate("go\n", timeout=40) == ("0\n", "")
    registry = open_in(folder)
    report = verify(registry)
    assert report.ok
    assert [chain.rows >= 1002 for chain in report.chains] == [True, True]
    assert len(registry.server_names()) == 40
    assert registry.revision() == 41
    with registry.database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    registry.close()


APPEND_FOREVER = """
import asyncio, sys
from itertools import count
from pathlib import Path
from tests.support.registries import make_row, open_in
from thoughtgate.registry.audit import AuditLimits, AuditWriter
async def main():
    writer = AuditWriter(open_in(Path(sys.argv[1])), limits=AuditLimits(linger=0.001, group=16))
    for number in count(1):
        writer.append(make_row(number))
        if number % 100 == 0:
            await writer.flush()
            print(number, flush=True)
asyncio.run(main())
"""


def test_a_writer_killed_at_work_leaves_a_whole_chain_with_all_that_was_flushed(
    folder: Path, spawn: Spawn
) -> None:
    process = spawn(APPEND_FOREVER, folder)
    assert process.stdout is not None
    for _ in range(7):
        flushed = int(process.stdout.readline())
    process.kill()
    process.wait(timeout=5)
    registry = open_in(folder)
    report = verify(registry)
    assert report.ok
    assert report.rows > flushed
    write(registry)
    assert verify(registry).ok
    registry.close()


@pytest.mark.parametrize("to", UNREADABLE)
def test_a_row_that_was_made_unreadable_does_not_hide_the_others(
    registry: Registry, folder: Path, chains: tuple[str, str], to: str
) -> None:
    with raw(folder) as connection:
        connection.execute(f"UPDATE audit SET {to} WHERE chain = 1 AND seq = 6")
    rows = latest(registry, limit=100)
    assert len(rows) == 2 * CLOSED
    assert sum(row.row.get("action") == "tool.call" for row in rows) >= 2 * ROWS - 1
    assert write(registry)  # and does not stop the next writer


def test_a_head_that_was_made_unreadable_does_not_stop_the_next_writer(
    registry: Registry, folder: Path, chains: tuple[str, str]
) -> None:
    with raw(folder) as connection:
        connection.execute("UPDATE audit_chains SET head_hash = 'text' WHERE id = 1")
    written = write(registry)
    assert broken(verify(registry)) == {chains[0]: CLOSED}
    assert written in {row.chain for row in latest(registry, limit=1)}
    assert heads(registry)[0].hash == ""


def test_the_rows_of_the_log_itself_can_be_left_out(
    registry: Registry, chains: tuple[str, str]
) -> None:
    rows = latest(registry, limit=100, notes=False)
    assert [row.row["action"] for row in rows] == ["tool.call"] * 2 * ROWS
