"""Slots: how many calls run, who waits, and who is next."""

import asyncio

import pytest

from tests.support.waiting import until, within
from thoughtgate.calls.slots import SlotLimits, Slots
from thoughtgate.core.errors import Overloaded


def soon() -> float:
    return asyncio.get_running_loop().time() + 60


def make(running: int = 2, each: int = 2, waiting: int = 4, waiting_each: int = 4) -> Slots:
    return Slots(
        SlotLimits(running=running, running_each=each, waiting=waiting, waiting_each=waiting_each)
    )


async def waiting_for(slots: Slots, who: str, done: list[str]) -> asyncio.Task[None]:
    """Start a task that waits for a slot and notes when it has one."""

    async def take() -> None:
        await slots.take(who, soon())
        done.append(who)

    before = slots.waiting
    task = asyncio.create_task(take())
    await until(lambda: slots.waiting > before)
    return task


async def test_a_free_slot_is_taken_at_once_and_given_back() -> None:
    slots = make()
    await within(slots.take("ann", soon()))
    assert slots.running == 1
    slots.give("ann")
    assert slots.running == 0


async def test_a_full_gateway_serves_those_who_wait_in_turns() -> None:
    slots, done = make(running=1), list[str]()
    await slots.take("ann", soon())
    tasks = [await waiting_for(slots, who, done) for who in ("ann", "ann", "bob")]
    slots.give("ann")
    await until(lambda: done == ["ann"])
    slots.give("ann")
    await until(lambda: done == ["ann", "bob"])
    slots.give("bob")
    await until(lambda: done == ["ann", "bob", "ann"])
    await within(asyncio.gather(*tasks))


async def test_one_principal_at_its_limit_leaves_room_for_another() -> None:
    slots, done = make(running=3, each=1), list[str]()
    await slots.take("ann", soon())
    task = await waiting_for(slots, "ann", done)
    await within(slots.take("bob", soon()))
    slots.give("bob")
    assert not done
    slots.give("ann")
    await within(task)
    assert done == ["ann"]
    assert slots.running == 1


@pytest.mark.parametrize(("waiting", "waiting_each"), [(1, 4), (4, 1)])
async def test_a_full_queue_turns_calls_away(waiting: int, waiting_each: int) -> None:
    slots, done = make(running=1, waiting=waiting, waiting_each=waiting_each), list[str]()
    await slots.take("ann", soon())
    task = await waiting_for(slots, "ann", done)
    with pytest.raises(Overloaded):
        await slots.take("ann", soon())
    slots.give("ann")
    await within(task)


async def test_a_call_that_waits_beyond_its_deadline_is_turned_away() -> None:
    slots = make(running=1)
    await slots.take("ann", soon())
    with pytest.raises(Overloaded):
        await within(slots.take("bob", asyncio.get_running_loop().time()))
    assert slots.waiting == 0
    slots.give("ann")
    await within(slots.take("bob", soon()))


async def test_a_cancelled_call_leaves_the_queue() -> None:
    slots, done = make(running=1), list[str]()
    await slots.take("ann", soon())
    gone = await waiting_for(slots, "ann", done)
    stays = await waiting_for(slots, "ann", done)
    gone.cancel()
    slots.give("ann")  # before the cancelled task has run
    await within(stays)
    await within(asyncio.wait([gone]))
    assert gone.cancelled()
    assert slots.waiting == 0
    assert slots.running == 1


async def test_a_slot_that_comes_with_the_cancellation_is_not_lost() -> None:
    slots, done = make(running=1), list[str]()
    await slots.take("ann", soon())
    task = await waiting_for(slots, "ann", done)
    slots.give("ann")  # the slot is granted, the task has not run yet
    task.cancel()
    await within(asyncio.wait([task]))
    assert slots.running == 0
