"""How long something may take: a limit of a block's time that can be moved while it runs.

Never tells whether what was cut off took effect.
"""

import asyncio
from types import TracebackType

import msgspec


class Limit(msgspec.Struct, eq=False):
    """Bounds a block until `when` on the loop's clock; `expired` says that its time was over.

    It is what `asyncio.timeout_at` is, `TimeoutError` and all, at a third of its cost: three of
    them stand on the path of every call.
    """

    when: float | None
    expired: bool = False
    _task: asyncio.Task[object] | None = None
    _timer: asyncio.TimerHandle | None = None
    _cancelling: int = 0

    def __enter__(self) -> "Limit":
        """Start the clock for the running task."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError
        self._task, self._cancelling = task, task.cancelling()
        if self.when is not None:
            self._timer = loop.call_at(self.when, self._expire)
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
