"""A call's time, standing still while its caller is asked something.

Never answers for the caller, and never gives more time than what was left.
"""

import asyncio

from thoughtgate.core.calls import Listener, Notice, Question
from thoughtgate.upstream.limit import Limit


class Patient:
    """A listener that stops the clock of `limit`, which bounds its call, while it is asked."""

    def __init__(self, listener: Listener, limit: Limit) -> None:
        self.listener = listener
        self._limit = limit
        self._asked = 0
        self._left: float | None = None

    async def notify(self, notice: Notice) -> None:
        """Deliver one notification; see `Listener.notify`."""
        await self.listener.notify(notice)

    async def ask(self, question: Question) -> bytes:
        """Return the caller's answer, however long it takes; see `Listener.ask`."""
        self._stop()
        try:
            return await self.listener.ask(question)
        finally:
            self._go_on()

    def _stop(self) -> None:
        self._asked += 1
        end = self._limit.when
        if self._asked == 1 and end is not None:
            self._left = end - asyncio.get_running_loop().time()
            self._limit.move(None)

    def _go_on(self) -> None:
        self._asked -= 1
        if not self._asked and self._left is not None:
            self._limit.move(asyncio.get_running_loop().time() + self._left)
            self._left = None


def behind(listener: Listener) -> Listener:
    """Return the caller itself, which is the same from call to call."""
    while isinstance(listener, Patient):
        listener = listener.listener
    return listener
