"""What every journal promises to whoever writes runs."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.journals import QUICK, make_events, make_run, numbers, open_journal
from tests.support.registries import open_in
from tests.support.waiting import within
from thoughtgate.core.errors import Conflict, Missing, RunTaken
from thoughtgate.core.journal import Journal, Level, RunStatus
from thoughtgate.testing.memory_journal import MemoryJournal, MemoryRuns


class Two:
    """Two gateways on one registry, of which the first can fall silent."""

    def __init__(self, first: Journal, second: Journal, silence: Callable[[], None]) -> None:
        self.first = first
        self.second = second
        self.silence = silence


@pytest.fixture(params=["registry", "memory"])
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Two]:
    if request.param == "memory":
        runs = MemoryRuns()
        first = MemoryJournal(runs)
        yield Two(first, MemoryJournal(runs), first.crash)
        return
    registry = open_in(tmp_path)

    def silence() -> None:
        with registry.database.write() as connection:
            connection.exec_driver_sql("UPDATE runs SET lease_ns = 1")

    async with AsyncExitStack() as stack:
        journals = [
            await stack.enter_async_context(open_journal(registry, replace(QUICK, lease=60.0)))
            for _ in range(2)
        ]
        yield Two(journals[0], journals[1], silence)
    registry.close()


async def test_a_taken_run_goes_on_where_it_stood(two: Two) -> None:
    key = two.first.create(make_run())
    assert two.first.append(key, make_events(2)) == 2
    assert two.first.append(key, make_events(1, start=3), Level.SYNCED) == 3
    await within(two.first.settled(key))
    two.silence()
    taken = await within(two.second.take("run-1"))
    assert (taken.run, taken.status) == (make_run(), RunStatus.OPEN)
    assert [entry.seq for entry in taken.entries] == [1, 2, 3]
    assert [entry.event for entry in taken.entries] == make_events(3)
    assert two.second.append(taken.key, make_events(1, start=4)) == 4
    await within(two.second.settled(taken.key))


async def test_a_run_that_is_driven_is_not_taken(two: Two) -> None:
    key = two.first.create(make_run())
    await within(two.first.settled(key))
    for journal in (two.first, two.second):
        with pytest.raises(Conflict):
            await within(journal.take("run-1"))
    assert two.first.append(key, make_events(1)) == 1


async def test_who_was_overtaken_can_write_no_more(two: Two) -> None:
    key = two.first.create(make_run())
    two.first.append(key, make_events(1))
    await within(two.first.settled(key))
    two.silence()
    taken = await within(two.second.take("run-1"))
    two.first.append(key, make_events(1, start=99))
    with pytest.raises(RunTaken):
        await within(two.first.settled(key))
    with pytest.raises(RunTaken):
        await within(two.first.settled(key))
    two.second.append(taken.key, make_events(1, start=2), status=RunStatus.PAUSED)
    await within(two.second.settled(taken.key))
    again = await within(two.second.take("run-1"))
    assert numbers(again.entries) == [1, 2]


async def test_an_older_right_of_the_same_process_is_refused(two: Two) -> None:
    key = two.first.create(make_run())
    await within(two.first.settled(key))
    two.silence()
    taken = await within(two.first.take("run-1"))
    with pytest.raises(RunTaken):
        two.first.append(key, make_events(1))
    with pytest.raises(RunTaken):
        await within(two.first.settled(key))
    assert two.first.append(taken.key, make_events(1)) == 1


async def test_a_paused_run_may_be_taken_at_once_and_a_finished_one_never(two: Two) -> None:
    key = two.first.create(make_run())
    two.first.append(key, make_events(1), status=RunStatus.PAUSED)
    with pytest.raises(RunTaken):
        two.first.append(key, make_events(1))
    await within(two.first.settled(key))
    taken = await within(two.second.take("run-1"))
    assert taken.status is RunStatus.PAUSED
    two.second.append(taken.key, make_events(1, start=2), status=RunStatus.OPEN)
    two.second.append(taken.key, make_events(1, start=3), status=RunStatus.FINISHED)
    await within(two.second.settled(taken.key))
    for uid, error in (("run-1", Conflict), ("run-2", Missing)):
        with pytest.raises(error):
            await within(two.first.take(uid))


async def test_a_name_that_is_there_is_refused(two: Two) -> None:
    key = two.first.create(make_run())
    with pytest.raises(Conflict):
        two.first.create(make_run())
    await within(two.first.settled(key))
    twin = two.second.create(make_run())
    two.second.append(twin, make_events(1))
    with pytest.raises(RunTaken):
        await within(two.second.settled(twin))
