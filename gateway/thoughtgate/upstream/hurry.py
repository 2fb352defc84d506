"""How long an end may take: as long as it likes, until somebody says by when it must be over.

Never ends anything itself; whoever waits for an end waits through it. Belongs to one event loop.
"""

import asyncio
import math
from collections.abc import Awaitable
from typing import Any


class Hurry:
    """The time, of the loop's clock, by which everything must be over."""

    def __init__(self) -> None:
        self.until = math.inf
        self._sooner = asyncio.Event()

    @property
    def begun(self) -> bool:
        """Tell whether there is a time by which everything must be over."""
        return not math.isinf(self.until)

    def within(self, seconds: float) -> None:
        """Have everything over in so many seconds; an earlier time that was said stays."""
        when = asyncio.get_running_loop().time() + seconds
        if when < self.until:
            self.until = when
            sooner, self._sooner = self._sooner, asyncio.Event()
            sooner.set()

    async def wait(
        self, awaited: "asyncio.Future[Any]", seconds: float = math.inf, *, spare: float = 0.0
    ) -> bool:
        """Wait for some seconds, but only until `spare` seconds before all must be over.

        A negative spare lasts beyond that. Tells whether what was awaited is done.
        """
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while not awaited.done():
            left = min(end, self.until - spare) - clock()
            if left <= 0:
                break
            await self._either(awaited, left)
        return awaited.done()

    async def end(self, work: Awaitable[object], *, spare: float = 0.0) -> None:
        """Await work that ends something; what is not over in time is cancelled and left."""
        task = asyncio.ensure_future(work)
        if await self.wait(task, spare=spare):
            task.result()
        else:
            task.cancel()

    async def _either(self, awaited: "asyncio.Future[Any]", seconds: float) -> None:
        """Return when it is done, when the time is over, or when that has become shorter."""
        sooner = asyncio.ensure_future(self._sooner.wait())
        try:
            await asyncio.wait(
                [awaited, sooner],
                timeout=None if math.isinf(seconds) else seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            sooner.cancel()
