"""The bounds of a call: deadline, slots, depth."""

import asyncio

import pytest

from tests.support.waiting import until, within
from thoughtgate.calls.bounded import bounded
from thoughtgate.calls.slots import SlotLimits, Slots
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import Overloaded, Refused, UpstreamTimeout
from thoughtgate.core.json import JsonValue
from thoughtgate.testing.sender import EMPTY
from thoughtgate.testing.values import make_call, make_tool


def call(*, call_timeout: float = 120.0, **fields: JsonValue) -> Call:
    tool = make_tool(call_timeout=call_timeout)
    return make_call(**{"target": tool, "advertised": "files__read", **fields})


class Below:
    """What stands below the stage: keeps the calls, and waits until it is let go."""

    def __init__(self, *, wait: bool = False) -> None:
        self.calls: list[Call] = []
        self.go = asyncio.Event()
        if not wait:
            self.go.set()

    async def __call__(self, call: Call) -> Result:
        self.calls.append(call)
        await self.go.wait()
        return EMPTY


async def test_a_call_gets_the_tools_time_and_never_more_than_its_own() -> None:
    now = asyncio.get_running_loop().time()
    below = Below()
    await bounded(call(call_timeout=30.0), below, slots=Slots(), max_depth=1)
    await bounded(call(deadline=now + 5), below, slots=Slots(), max_depth=1)
    assert now + 30 <= below.calls[0].deadline <= now + 31
    assert below.calls[1].deadline == now + 5


async def test_a_call_that_hangs_below_ends_with_an_unknown_outcome() -> None:
    slots, hanging = Slots(), call(call_timeout=0.0)
    with pytest.raises(UpstreamTimeout):
        await within(bounded(hanging, Below(wait=True), slots=slots, max_depth=1, grace=0.0))
    assert slots.running == 0


async def test_a_timeout_of_somebody_else_is_not_taken_for_the_deadline() -> None:
    async def broken(call: Call) -> Result:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await bounded(call(), broken, slots=Slots(), max_depth=1)


async def test_calls_beyond_the_limit_wait_and_then_run() -> None:
    slots, below = Slots(SlotLimits(running=1)), Below(wait=True)
    tasks = [
        asyncio.create_task(bounded(call(), below, slots=slots, max_depth=1)) for _ in range(2)
    ]
    await until(lambda: slots.waiting == 1)
    assert len(below.calls) == 1
    below.go.set()
    assert await within(asyncio.gather(*tasks)) == [EMPTY, EMPTY]
    assert slots.running == 0


async def test_a_full_gateway_refuses_and_sends_nothing() -> None:
    slots, below = Slots(SlotLimits(running=1, waiting=0)), Below()
    await slots.take("local", float("inf"))
    with pytest.raises(Overloaded):
        await bounded(call(), below, slots=slots, max_depth=1)
    assert not below.calls


async def test_a_call_within_a_call_takes_no_slot() -> None:
    slots = Slots(SlotLimits(running=1, waiting=0))
    await slots.take("local", float("inf"))
    assert await within(bounded(call(depth=1), Below(), slots=slots, max_depth=1)) is EMPTY


async def test_calls_nest_only_so_deep() -> None:
    below = Below()
    with pytest.raises(Refused):
        await bounded(call(depth=2), below, slots=Slots(), max_depth=1)
    assert not below.calls


async def test_a_cancelled_call_gives_its_slot_back() -> None:
    slots, below = Slots(), Below(wait=True)
    task = asyncio.create_task(bounded(call(), below, slots=slots, max_depth=1))
    await until(lambda: below.calls)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert slots.running == 0
