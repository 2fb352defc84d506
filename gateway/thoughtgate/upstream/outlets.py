"""What waits for listeners that are told something outside of any call, in order and in bounds.

Never lets one slow listener hold up another, nor the reader of a connection.
"""

import asyncio
import logging
from collections import deque
from functools import partial

from thoughtgate.core.calls import Listener, Notice

_log = logging.getLogger(__name__)

ROOM = 256
"""Notifications that may wait for one slow listener."""


class Outlets:
    """One queue for each listener that has something waiting."""

    def __init__(self) -> None:
        self._waiting: dict[int, deque[Notice]] = {}
        self._running: dict[int, asyncio.Task[None]] = {}

    def put(self, listener: Listener, notice: Notice) -> bool:
        """Queue a notification; False when an older one was dropped for it."""
        key = id(listener)
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = deque()
            task = asyncio.get_running_loop().create_task(self._deliver(listener, waiting))
            self._running[key] = task
            task.add_done_callback(partial(self._delivered, key))
        full = len(waiting) >= ROOM
        if full:
            waiting.popleft()
        waiting.append(notice)
        return not full

    def drop(self, listener: Listener) -> None:
        """Forget a listener and what waits for it."""
        self._waiting.pop(id(listener), None)
        task = self._running.pop(id(listener), None)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """Forget all that waits."""
        self._waiting.clear()
        for task in self._running.values():
            task.cancel()

    def _delivered(self, key: int, task: "asyncio.Task[None]") -> None:
        if self._running.get(key) is task:
            del self._running[key]
        if not task.cancelled() and task.exception() is not None:
            _log.error("a client could not be told of something", exc_info=task.exception())

    async def _deliver(self, listener: Listener, waiting: deque[Notice]) -> None:
        try:
            while waiting:
                await listener.notify(waiting.popleft())
        finally:
            if self._waiting.get(id(listener)) is waiting:
                del self._waiting[id(listener)]
