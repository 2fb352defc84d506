"""Runs blocking work in slices on a worker thread, so that progress and cancel get their turn.

Never lets a cancelled call go on: the work stops at the end of its current slice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import TypeVar

T = TypeVar("T")


async def stepwise(work: Iterator[T], on_step: Callable[[T], Awaitable[None]]) -> None:
    """Run `work` to its end, one `next` at a time on a thread, calling `on_step` in between."""
    try:
        while True:
            slice_ = asyncio.ensure_future(asyncio.to_thread(_next, work))
            try:
                step = await asyncio.shield(slice_)
            except asyncio.CancelledError:
                # the thread cannot be stopped: wait for its slice, then close the generator
                await _over(slice_)
                raise
            if step is None:
                return
            await on_step(step[0])
    finally:
        if isinstance(work, Generator):
            work.close()


async def _over(slice_: "asyncio.Future[T]") -> None:
    """Wait for a slice; a cancel scope of the SDK cancels again and again until we leave it."""
    while not slice_.done():
        try:
            await asyncio.wait([slice_])
        except asyncio.CancelledError:
            continue


def _next(work: Iterator[T]) -> tuple[T] | None:
    """Return the next step in a tuple, None at the end: a thread cannot raise StopIteration."""
    for step in work:
        return (step,)
    return None
