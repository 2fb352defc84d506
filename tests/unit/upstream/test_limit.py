"""A limit of a block's time: its own end is a timeout, every other end passes as it is."""

import asyncio

import pytest

from tests.support.waiting import within
from thoughtgate.upstream.limit import Limit


def limited(seconds: float) -> Limit:
    return Limit(asyncio.get_running_loop().time() + seconds)


async def test_a_limit_ends_a_block_that_hangs() -> None:
    with pytest.raises(TimeoutError), limited(0.0) as limit:
        await asyncio.get_running_loop().create_future()
    assert limit.expired
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_the_inner_of_two_limits_is_the_one_that_ended() -> None:
    with limited(5.0) as outer, pytest.raises(TimeoutError), limited(0.0):
        await asyncio.get_running_loop().create_future()
    assert not outer.expired


async def test_the_outer_of_two_limits_ends_the_inner_without_a_word() -> None:
    inner = limited(5.0)
    with pytest.raises(TimeoutError), limited(0.0), inner:
        await asyncio.get_running_loop().create_future()
    assert not inner.expired


async def test_a_task_that_is_cancelled_within_a_limit_stays_cancelled() -> None:
    async def bounded() -> None:
        with limited(5.0):
            await asyncio.get_running_loop().create_future()

    task = asyncio.ensure_future(bounded())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)


async def test_what_ends_a_block_in_time_passes_a_limit_as_it_is() -> None:
    with pytest.raises(TimeoutError, match="another"), limited(5.0) as limit:
        raise TimeoutError("another")
    assert not limit.expired
