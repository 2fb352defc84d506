"""Slots for running calls: how many at once, for everybody and for each principal.

Never lets one principal's queue stand before another's: those who wait are served in turns.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass

from thoughtgate.core.errors import Overloaded

_Waiter = asyncio.Future[None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLimits:
    """Bounds of running and waiting calls, all told and for each principal."""

    running: int = 512
    running_each: int = 256
    waiting: int = 2048
    waiting_each: int = 1024


class Slots:
    """Counts running calls; belongs to one event loop."""

    def __init__(self, limits: SlotLimits = SlotLimits()) -> None:
        self._limits = limits
        self._running: Counter[str] = Counter()
        self._total = 0
        self._ever = 0
        self._queues: OrderedDict[str, deque[_Waiter]] = OrderedDict()
        self._waiting = 0

    @property
    def running(self) -> int:
        """Return how many slots are taken."""
        return self._total

    @property
    def ever(self) -> int:
        """Return how many slots were taken since the start."""
        return self._ever

    @property
    def waiting(self) -> int:
        """Return how many calls wait for a slot."""
        return self._waiting

    async def take(self, who: str, deadline: float) -> None:
        """Take a slot, waiting for it until `deadline` on the loop's clock.

        Raises:
            Overloaded: The queue is full, or no slot came free in time; nothing was sent.
        """
        if self._fits(who):
            self._grant(who)
            return
        queue = self._queues.setdefault(who, deque())
        if self._waiting >= self._limits.waiting or len(queue) >= self._limits.waiting_each:
            raise Overloaded(message="too many calls are waiting; try again later")
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        queue.append(waiter)
        self._waiting += 1
        try:
            async with asyncio.timeout_at(deadline):
                await waiter
        except TimeoutError:
            self._leave(who, waiter)
            raise Overloaded(
                message="no call ended within this call's deadline; nothing was sent, try again"
            ) from None
        except asyncio.CancelledError:
            self._leave(who, waiter)
            raise

    def give(self, who: str) -> None:
        """Give a slot back; the next who waits and may run gets it."""
        self._total -= 1
        self._running[who] -= 1
        if not self._running[who]:
            del self._running[who]
        if self._waiting:
            self._serve()

    def _fits(self, who: str) -> bool:
        limits = self._limits
        return self._total < limits.running and self._running[who] < limits.running_each

    def _grant(self, who: str) -> None:
        self._total += 1
        self._ever += 1
        self._running[who] += 1

    def _serve(self) -> None:
        for who, queue in self._queues.items():
            # who was cancelled a moment ago stands here until its task has run
            waiter = next((one for one in queue if not one.done()), None)
            if waiter is not None and self._fits(who):
                self._remove(who, waiter)
                if queue:
                    self._queues.move_to_end(who)
                self._grant(who)
                waiter.set_result(None)
                return

    def _leave(self, who: str, waiter: _Waiter) -> None:
        """Leave the queue, or give back a slot that came in the same moment."""
        if waiter.done() and not waiter.cancelled():
            self.give(who)
        else:
            self._remove(who, waiter)

    def _remove(self, who: str, waiter: _Waiter) -> None:
        queue = self._queues[who]
        queue.remove(waiter)
        self._waiting -= 1
        if not queue:
            del self._queues[who]
