"""A call's time, standing still while its caller is asked something.

Never answers for the caller, and never gives more time than what was left.
"""

import asyncio
from types import TracebackType

from thoughtgate.core.calls import Listener, Notice, Question


class Limit:
    """Bounds a block until `when` on the loop's clock; `expired` says that its time was over.

    It is what `asyncio.timeout_at` is, `TimeoutError` and all, at a third of its cost: three of
    them stand on the path of every call.
    """

    __slots__ = ("_cancelling", "_task", "_timer", "expired", "when")

    def __init__(self, when: float) -> None:
        self.when: float | None = when
        self.expired = False
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> "Limit":
        """Start the clock for the running task."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError
        self._task, self._cancelling = task, task.cancelling()
        self.move(self.when)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the clock.

        Raises:
            TimeoutError: Its cancellation, and no other, ended the block.
        """
        task, self._task = self._task, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        ended = self.expired and task is not None and task.uncancel() <= self._cancelling
        if ended and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def move(self, when: float | None) -> None:
        """End at another time, or never; nothing happens after the block, or its time, is over."""
        if self._task is None or self.expired:
            return
        if self._timer is not None:
            self._timer.cancel()
        self.when = when
        loop = self._task.get_loop()
        self._timer = None if when is None else loop.call_at(when, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self._task is not None:
            self.expired = True
            self._task.cancel()


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
