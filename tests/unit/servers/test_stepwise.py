"""Work in slices, given up in the middle of one."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager

import anyio
import pytest

from tests.support.waiting import until, within
from thoughtgate_servers.stepwise import stepwise


class Work:
    """Blocks in its first slice until released."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.released = threading.Event()
        self.closed = False

    def steps(self) -> Iterator[int]:
        try:
            self.begun.set()
            self.released.wait(5)
            yield 1
            yield 2
        finally:
            self.closed = True


async def no_step(_: int) -> None:
    """Tell nobody."""


async def test_a_cancel_scope_that_cancels_again_and_again_still_waits_for_the_slice() -> None:
    """The SDK cancels a handler by such a scope when its client hangs up."""
    work = Work()
    ended = asyncio.Event()

    async def handler(scope: AbstractContextManager[object]) -> None:
        with scope:
            await stepwise(work.steps(), no_step)
        ended.set()

    scope = anyio.CancelScope()
    task = asyncio.create_task(handler(scope))
    await until(work.begun.is_set)
    scope.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not ended.is_set()
    work.released.set()
    await within(task)
    assert work.closed


async def test_two_cancels_in_a_row_still_wait_for_the_slice() -> None:
    work = Work()
    task = asyncio.create_task(stepwise(work.steps(), no_step))
    await until(work.begun.is_set)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    work.released.set()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert work.closed
