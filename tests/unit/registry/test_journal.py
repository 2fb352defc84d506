"""The journal of runs: what is kept, in which order, how safe, and who may write it."""

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.journals import QUICK, head_of, make_events, make_run, numbers, open_journal
from tests.support.registries import open_in, outcome_of, raw
from tests.support.waiting import until, within
from thoughtgate.core.errors import (
    Conflict,
    Missing,
    Overloaded,
    RunTaken,
    StoreCorrupt,
    StoreError,
    StoreLocked,
    StoreNewer,
)
from thoughtgate.core.journal import Event, Level, RunStatus
from thoughtgate.registry.journal import RunFilter, RunJournal
from thoughtgate.registry.journal_prune import prune
from thoughtgate.registry.journal_read import list_runs
from thoughtgate.registry.store import Registry

EXPIRED = replace(QUICK, lease=-1.0)
"""Leases that are over at once: as if the driver had been silent for long."""

SLOW = replace(QUICK, linger=30.0)


async def test_events_are_read_in_the_order_in_which_they_were_appended(registry: Registry) -> None:
    async with open_journal(registry) as journal:
        key = journal.create(make_run())
        assert journal.append(key, make_events(2)) == 2
        assert journal.append(key, make_events(1, start=3), Level.COMMITTED) == 3
        await within(journal.settled(key))
        entries = await journal.read("run-1")
    assert [entry.seq for entry in entries] == [1, 2, 3]
    assert [entry.event for entry in entries] == make_events(3)


async def test_a_run_that_was_only_created_is_there(registry: Registry) -> None:
    async with open_journal(registry) as journal:
        key = journal.create(make_run(parent="run-0"))
        await within(journal.settled(key))
        found = await journal.find("run-1")
    assert found is not None
    assert (found.run, found.status, found.head, found.driven) == (
        make_run(parent="run-0"),
        RunStatus.OPEN,
        0,
        True,
    )


async def test_a_lazy_event_is_written_after_the_linger_without_being_awaited(
    registry: Registry,
) -> None:
    async with open_journal(registry) as journal:
        key = journal.create(make_run())
        journal.append(key, make_events(1))
        await until(lambda: head_of(registry) == 1)


async def test_waiting_for_a_run_does_not_wait_for_the_linger(registry: Registry) -> None:
    async with open_journal(registry, SLOW) as journal:
        key = journal.create(make_run())
        journal.append(key, make_events(1))
        await within(journal.settled(key))


async def test_an_urgent_event_and_a_large_group_do_not_linger(registry: Registry) -> None:
    async with open_journal(registry, replace(SLOW, group=4)) as journal:
        urgent, large = journal.create(make_run("urgent")), journal.create(make_run("large"))
        for key, events, level in (
            (urgent, make_events(1), Level.COMMITTED),
            (large, make_events(4), Level.LAZY),
        ):
            journal.append(key, events, level)
            await until(partial(head_of, registry, key.uid))


@pytest.mark.parametrize("level", list(Level))
async def test_what_is_settled_is_seen_by_another_process(
    registry: Registry, folder: Path, level: Level
) -> None:
    async with open_journal(registry) as journal:
        key = journal.create(make_run())
        journal.append(key, make_events(2), level)
        await within(journal.settled(key, level))
        with raw(folder) as other:
            assert other.execute("SELECT count(*) FROM journal").fetchone() == (2,)


async def test_many_runs_at_once_keep_their_own_order(registry: Registry) -> None:
    async def drive(journal: RunJournal, uid: str) -> None:
        key = journal.create(make_run(uid))
        for n in range(1, 11):
            journal.append(key, make_events(1, start=n), Level(n % 3))
            if n % 5 == 0:
                await journal.settled(key)
            await asyncio.sleep(0)
        journal.append(key, make_events(1, start=11), Level.COMMITTED, RunStatus.FINISHED)
        await journal.settled(key)

    async with open_journal(registry) as journal:
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            for n in range(32):
                group.create_task(drive(journal, f"run-{n}"))
        for n in range(32):
            assert numbers(await journal.read(f"run-{n}")) == list(range(1, 12))


async def test_an_old_driver_is_refused_and_others_in_its_group_are_not(registry: Registry) -> None:
    async with open_journal(registry, EXPIRED) as old, open_journal(registry) as new:
        lost, innocent = old.create(make_run("lost")), old.create(make_run("innocent"))
        old.append(lost, make_events(1))
        await within(old.settled(lost))
        taken = await within(new.take("lost"))
        old.append(innocent, make_events(1))
        old.append(lost, make_events(1, start=99))
        old.append(innocent, make_events(1, start=2))
        with pytest.raises(RunTaken):
            await within(old.settled(lost))
        await within(old.settled(innocent))
        new.append(taken.key, make_events(1, start=2), Level.COMMITTED)
        await within(new.settled(taken.key))
        assert numbers(await new.read("lost")) == [1, 2]
        assert numbers(await new.read("innocent")) == [1, 2]


async def test_a_lost_run_stays_lost_to_its_old_driver(registry: Registry) -> None:
    async with open_journal(registry, EXPIRED) as old, open_journal(registry) as new:
        key = old.create(make_run())
        await within(old.settled(key))
        taken = await within(new.take("run-1"))
        old.append(key, make_events(1))
        with pytest.raises(RunTaken):
            await within(old.settled(key))
        # had the new one's head been 1 less, the next event would have had its place
        new.append(taken.key, make_events(1), Level.COMMITTED)
        await within(new.settled(taken.key))
        with pytest.raises(RunTaken):
            old.append(key, make_events(1, start=2))
        with pytest.raises(RunTaken):
            await within(old.settled(key))
        assert numbers(await new.read("run-1")) == [1]


async def test_a_heartbeat_keeps_a_run_and_tells_when_it_is_lost(
    registry: Registry, folder: Path
) -> None:
    async with open_journal(registry) as journal, open_journal(registry) as other:
        kept, lost = journal.create(make_run("kept")), journal.create(make_run("lost"))
        await within(journal.flush())
        with raw(folder) as connection:
            connection.execute("UPDATE runs SET lease_ns = 1")
        await within(other.take("lost"))
        await within(journal.beat())
        with pytest.raises(Conflict):
            await within(other.take("kept"))
        with pytest.raises(RunTaken):
            journal.append(lost, make_events(1))
        assert journal.append(kept, make_events(1)) == 1


async def test_closing_gives_open_runs_back(registry: Registry) -> None:
    async with open_journal(registry) as first:
        first.create(make_run())
    async with open_journal(registry) as second:
        left = await second.runs(RunFilter(left=True))
        assert [(one.run.uid, one.driven) for one in left] == [("run-1", False)]
        await within(second.take("run-1"))
        assert await second.runs(RunFilter(left=True)) == ()


async def test_a_closed_journal_takes_nothing_and_loses_nothing(registry: Registry) -> None:
    journal = RunJournal(registry, limits=SLOW)
    key = journal.create(make_run())
    journal.append(key, make_events(5))
    assert await within(journal.aclose()) == 0
    for refused in (
        lambda: journal.append(key, make_events(1)),
        lambda: journal.create(make_run("run-2")),
    ):
        with pytest.raises(StoreError):
            refused()
    with pytest.raises(StoreError):
        await within(journal.take("run-1"))
    async with open_journal(registry) as other:
        assert len(await other.read("run-1")) == 5


async def test_a_run_of_a_name_that_is_there_is_refused(registry: Registry) -> None:
    async with open_journal(registry) as first, open_journal(registry) as second:
        key = first.create(make_run())
        with pytest.raises(Conflict):
            first.create(make_run())
        first.append(key, make_events(1))
        await within(first.settled(key))
        other, twin = second.create(make_run("run-2")), second.create(make_run())
        second.append(twin, make_events(1, start=7))
        with pytest.raises(RunTaken):
            await within(second.settled(twin))
        await within(second.settled(other))
        assert numbers(await first.read("run-1")) == [1]


async def test_a_group_that_breaks_in_the_middle_leaves_nothing_and_is_written_later(
    registry: Registry, folder: Path
) -> None:
    async with open_journal(registry) as journal:
        key, other = journal.create(make_run()), journal.create(make_run("run-2"))
        await within(journal.flush())
        with raw(folder) as connection:
            connection.execute(
                "CREATE TRIGGER crash AFTER INSERT ON journal WHEN NEW.seq = 40"
                " BEGIN SELECT crash(); END"
            )
            journal.append(other, make_events(3))
            journal.append(key, make_events(50))
            with pytest.raises(StoreError):
                await within(journal.settled(key))
            assert connection.execute("SELECT sum(head) FROM runs").fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM journal").fetchone() == (0,)
            connection.execute("DROP TRIGGER crash")
        await within(journal.settled(key))
        await within(journal.settled(other))
        assert numbers(await journal.read("run-1")) == list(range(1, 51))
        assert len(await journal.read("run-2")) == 3


async def test_a_place_that_is_occupied_loses_only_the_run_that_has_it(
    registry: Registry, folder: Path
) -> None:
    async with open_journal(registry) as journal:
        key, other = journal.create(make_run()), journal.create(make_run("run-2"))
        await within(journal.flush())
        with raw(folder) as connection:
            connection.execute("INSERT INTO journal VALUES (1, 2, 1, 'forged', '', 0, x'7b7d')")
        journal.append(other, make_events(1))
        journal.append(key, make_events(3))
        with pytest.raises(RunTaken):
            await within(journal.settled(key))
        await within(journal.settled(other))
        assert len(await journal.read("run-2")) == 1


async def test_a_locked_database_is_told_and_what_waits_is_written_when_it_is_free(
    tmp_path: Path,
) -> None:
    registry = open_in(tmp_path, patience=0.02)
    async with open_journal(registry) as journal:
        key = journal.create(make_run())
        await within(journal.settled(key))
        with raw(tmp_path) as other:
            other.execute("BEGIN EXCLUSIVE")
            journal.append(key, make_events(1))
            for _ in range(2):
                with pytest.raises(StoreLocked):
                    await within(journal.settled(key, Level.SYNCED))
            with pytest.raises(StoreLocked):
                await within(journal.beat())
            journal.append(key, make_events(1, start=2))
        await until(lambda: head_of(registry) == 2)
        assert numbers(await journal.read("run-1")) == [1, 2]
    registry.close()


async def test_closing_a_journal_that_cannot_write_says_how_much_is_lost(tmp_path: Path) -> None:
    registry = open_in(tmp_path, patience=0.02)
    journal = RunJournal(registry, limits=QUICK)
    key = journal.create(make_run())
    await within(journal.settled(key))
    with raw(tmp_path) as other:
        other.execute("BEGIN EXCLUSIVE")
        journal.append(key, make_events(3))
        assert await within(journal.aclose(within=1.0)) == 3
    assert await within(journal.read("run-1")) == ()
    registry.close()


async def test_who_stops_waiting_disturbs_nobody(registry: Registry) -> None:
    async with open_journal(registry, SLOW) as journal:
        key = journal.create(make_run())
        with registry.database.lock.held():
            journal.append(key, make_events(1))
            waiting = asyncio.create_task(journal.settled(key))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await within(journal.settled(key))
        assert numbers(await journal.read("run-1")) == [1]


FULL = """
import asyncio, json, resource, signal, sys
from pathlib import Path
from tests.support.journals import make_run, open_journal
from tests.support.registries import open_in
from thoughtgate.core.errors import StoreFull
from thoughtgate.core.journal import Event, Level
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
async def main():
    registry = open_in(Path(sys.argv[1]))
    async with open_journal(registry) as journal:
        key = journal.create(make_run())
        journal.append(key, [Event("noted", {"n": 1})])
        await journal.settled(key)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
        journal.append(key, [Event("noted", {"n": n, "text": "x" * 10_000}) for n in range(2, 52)])
        try:
            await journal.settled(key, Level.SYNCED)
            code = "none"
        except StoreFull as error:
            code = error.code
        head = len(await journal.read("run-1"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await journal.settled(key, Level.SYNCED)
        after = [entry.event.body["n"] for entry in await journal.read("run-1")]
        print(json.dumps([code, head, after == list(range(1, 52))]))
    registry.close()
asyncio.run(main())
"""


def test_a_full_disk_is_told_and_nothing_is_lost_when_there_is_room_again(folder: Path) -> None:
    assert outcome_of(FULL, folder) == ["store_full", 1, True]


async def test_a_full_queue_refuses_whole_appends(tmp_path: Path) -> None:
    registry = open_in(tmp_path, patience=0.02)
    async with open_journal(registry, replace(QUICK, queue=5, body=100)) as journal:
        key = journal.create(make_run())
        with pytest.raises(Overloaded):
            journal.append(key, [*make_events(1), Event("noted", {"text": "x" * 100})])
        with raw(tmp_path) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert journal.append(key, make_events(4)) == 4
            with pytest.raises(StoreError):
                journal.append(key, make_events(2, start=5))
            assert journal.append(key, make_events(1, start=5)) == 5
        await until(lambda: head_of(registry) == 5)
        assert numbers(await journal.read("run-1")) == [1, 2, 3, 4, 5]
    registry.close()


async def test_events_of_an_unknown_version_are_refused_and_the_run_is_left_to_others(
    registry: Registry, folder: Path
) -> None:
    async with open_journal(registry) as journal:
        key = journal.create(make_run())
        journal.append(key, make_events(2))
    with raw(folder) as connection:
        connection.execute("UPDATE journal SET version = 2 WHERE seq = 2")
    async with open_journal(registry) as journal:
        with pytest.raises(StoreNewer):
            await within(journal.take("run-1"))
        await until(lambda: list_runs(registry.database, RunFilter(left=True)))


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM journal WHERE seq = 2", "UPDATE journal SET body = x'ff' WHERE seq = 1"],
)
async def test_a_damaged_run_is_refused(registry: Registry, folder: Path, damage: str) -> None:
    async with open_journal(registry) as journal:
        journal.append(journal.create(make_run()), make_events(3))
        await within(journal.flush())
        with raw(folder) as connection:
            connection.execute(damage)
        with pytest.raises(StoreCorrupt):
            await within(journal.read("run-1"))


async def test_runs_are_listed_newest_first_by_page_and_principal(registry: Registry) -> None:
    async with open_journal(registry) as journal:
        for n in range(1, 6):
            journal.create(make_run(f"run-{n}", principal="odd" if n % 2 else "even"))
        await within(journal.flush())
        first = await journal.runs(RunFilter(limit=2))
        rest = await journal.runs(RunFilter(before=first[-1].place))
        odd = await journal.runs(RunFilter(principal="odd"))
    assert [one.run.uid for one in (*first, *rest)] == [f"run-{n}" for n in (5, 4, 3, 2, 1)]
    assert [one.run.uid for one in odd] == ["run-5", "run-3", "run-1"]


async def test_only_old_finished_runs_without_branches_are_pruned(registry: Registry) -> None:
    async with open_journal(registry) as journal:
        for uid, status in (
            ("done", RunStatus.FINISHED),
            ("forked", RunStatus.FINISHED),
            ("paused", RunStatus.PAUSED),
            ("open", RunStatus.OPEN),
        ):
            key = journal.create(make_run(uid))
            journal.append(key, make_events(3), status=status)
        journal.create(replace(make_run("branch"), parent="forked", forked_from=2))
        journal.create(make_run("child", parent="done"))
        await within(journal.flush())
        assert await within(journal.prune(older_than=3600)) == 0
        assert await within(journal.prune(older_than=-1)) == 4
        left = await journal.runs(RunFilter())
        assert {one.run.uid for one in left} == {"forked", "paused", "open", "branch", "child"}
        with pytest.raises(Missing):
            await journal.read("done")


async def test_a_run_is_deleted_in_slices_and_is_gone_from_the_first_one_on(
    registry: Registry,
) -> None:
    async with open_journal(registry) as journal:
        key = journal.create(make_run())
        journal.append(key, make_events(5), status=RunStatus.FINISHED)
        await within(journal.settled(key))
        delete = partial(prune, registry.database, before_ns=2**62, rows=2)
        assert delete() == 2
        assert (await journal.find("run-1"), await journal.runs(RunFilter())) == (None, ())
        for look in (journal.read, journal.take):
            with pytest.raises(Missing):
                await within(look("run-1"))
        assert [delete() for _ in range(3)] == [2, 2, 0], "two events, then one and the run"


async def test_two_gateways_write_to_one_registry_at_once(registry: Registry, folder: Path) -> None:
    elsewhere = open_in(folder)
    async with open_journal(registry) as here, open_journal(elsewhere) as there:
        keys = []
        for turn in range(20):
            for journal, place in ((here, "here"), (there, "there")):
                key = journal.create(make_run(f"{place}-{turn}"))
                journal.append(key, make_events(5), Level(turn % 3))
                keys.append((journal, key))
            await asyncio.sleep(0)
        for journal, key in keys:
            await within(journal.settled(key))
        for _, key in keys:
            assert numbers(await here.read(key.uid)) == [1, 2, 3, 4, 5]
    elsewhere.close()


async def test_510_events_are_resumed_in_a_few_bytes_each(registry: Registry, folder: Path) -> None:
    body = {"step": "s1", "text": "x" * 280, "digest": "sha256:" + "0" * 24}
    events = [Event("model_responded", body, f"m{n}") for n in range(510)]
    with raw(folder) as connection:
        size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        (before,) = connection.execute(size).fetchone()
        async with open_journal(registry) as journal:
            journal.append(journal.create(make_run()), events)
        (after,) = connection.execute(size).fetchone()
    assert len(json.dumps(body)) > 330
    assert (after - before) / len(events) <= 500
    async with open_journal(registry) as journal:
        taken = await within(journal.take("run-1"))
    assert [entry.event for entry in taken.entries] == list(events)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # every string that Python has, lone surrogates and NUL too
    | st.text(st.characters(exclude_categories=()), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
EVENTS = st.lists(
    st.builds(Event, st.text("abc_", max_size=5), st.dictionaries(st.text(max_size=4), JSON)),
    min_size=1,
    max_size=6,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(turns=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(Level), EVENTS), max_size=8))
def test_what_is_read_is_what_was_appended_whatever_the_order_and_the_levels(
    registry: Registry, turns: list[tuple[int, Level, list[Event]]]
) -> None:
    async def write() -> None:
        async with open_journal(registry) as journal:
            started = len(await journal.runs(RunFilter(limit=10_000)))
            keys = [journal.create(make_run(f"run-{started}-{n}")) for n in range(3)]
            wanted: list[list[Event]] = [[], [], []]
            for which, level, events in turns:
                wanted[which] += events
                assert journal.append(keys[which], events, level) == len(wanted[which])
                if level is Level.SYNCED:
                    await within(journal.settled(keys[which]))
            await within(journal.flush())
            for key, events in zip(keys, wanted, strict=True):
                assert [one.event for one in await journal.read(key.uid)] == events

    asyncio.run(write())


async def test_a_body_that_is_no_json_is_refused_and_takes_no_place(registry: Registry) -> None:
    async with open_journal(registry) as journal:
        key = journal.create(make_run())
        with pytest.raises(ValueError, match="JSON"):
            journal.append(key, [*make_events(1), Event("noted", {"n": float("nan")})])
        journal.append(key, make_events(1))
        await within(journal.settled(key))
        assert numbers(await journal.read("run-1")) == [1]
