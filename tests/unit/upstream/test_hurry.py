"""How long an end may take: patience that somebody shortens while it is used."""

import asyncio

import pytest

from tests.support.children import alive, children
from tests.support.upstreams import fake_stdio, rig
from tests.support.waiting import within
from thoughtgate.upstream.child import Patience
from thoughtgate.upstream.hurry import Hurry

LONG = 3600.0


async def never() -> None:
    await asyncio.Event().wait()


async def test_without_hurry_what_is_awaited_has_its_time() -> None:
    task = asyncio.create_task(asyncio.sleep(0))
    assert await within(Hurry().wait(task, LONG))


async def test_patience_ends_by_itself() -> None:
    task = asyncio.create_task(never())
    assert not await within(Hurry().wait(task, 0.01))
    task.cancel()


@pytest.mark.parametrize("spare", [0.0, 1.0, -0.01])
async def test_hurry_ends_a_wait_that_is_under_way(spare: float) -> None:
    hurry, task = Hurry(), asyncio.create_task(never())
    waiting = asyncio.create_task(hurry.wait(task, LONG, spare=spare))
    await asyncio.sleep(0)
    hurry.within(0)
    assert not await within(waiting)
    task.cancel()


async def test_who_is_in_a_hurry_cannot_be_told_to_take_more_time() -> None:
    hurry, task = Hurry(), asyncio.create_task(never())
    hurry.within(0)
    hurry.within(LONG)
    assert not await within(hurry.wait(task, LONG))
    task.cancel()


async def test_an_end_that_takes_too_long_is_cancelled() -> None:
    hurry, cancelled = Hurry(), asyncio.Event()

    async def end() -> None:
        try:
            await never()
        finally:
            cancelled.set()

    ending = asyncio.create_task(hurry.end(end()))
    await asyncio.sleep(0)
    hurry.within(0)
    await within(ending)
    await within(cancelled.wait())


async def test_what_an_end_raises_is_not_lost() -> None:
    async def end() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await within(Hurry().end(end()))


async def test_a_child_that_will_not_go_is_killed_when_there_is_hurry() -> None:
    hurry = Hurry()
    patience = Patience(eof=LONG, term=LONG)
    server = fake_stdio("--ignore-eof", "--ignore-term")
    async with rig(server, patience=patience, hurry=hurry) as made:
        await made.call("echo")
        [child] = children()
        hurry.within(0)
    assert not alive(child)
