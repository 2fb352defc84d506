"""An event for one who waits. asyncio's own keeps a queue for each, a great part of an idle stream.

Never serves two who wait at once.
"""

import asyncio
from collections.abc import Callable

import msgspec

Heard = Callable[[], None]


class Bell(msgspec.Struct, eq=False):
    """Set until it is cleared. `heard` is called at each `set`, for who does not wait in a task."""

    heard: Heard | None = None
    _rung: bool = False
    _waiter: asyncio.Future[None] | None = None

    def is_set(self) -> bool:
        """Tell whether it was set and not cleared since."""
        return self._rung

    def set(self) -> None:
        """Wake who waits."""
        self._rung = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self.heard is not None:
            self.heard()

    def clear(self) -> None:
        """Let the next one wait again."""
        self._rung = False

    async def wait(self) -> None:
        """Return when it is set."""
        if self._rung:
            return
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        try:
            await waiter
        finally:
            if self._waiter is waiter:  # else another one waits by now
                self._waiter = None
