"""Bounded waiting: no test waits longer than its guard, none sleeps for a fixed time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

GUARD = 5.0
"""Seconds that any single wait in a test may take."""


async def within(awaitable: Awaitable[T], seconds: float = GUARD) -> T:
    """Await with a guard; a test that would hang fails instead."""
    async with asyncio.timeout(seconds):
        return await awaitable


async def until(condition: Callable[[], object], seconds: float = GUARD) -> None:
    """Return as soon as `condition()` is true; fail after `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - a foreign condition offers no event to wait for
            await asyncio.sleep(0.01)
