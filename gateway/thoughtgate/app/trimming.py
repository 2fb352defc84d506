"""Memory of the process: kept for large buffers, given back once many sessions have ended.

Never given back while more of them end: it is work for when that is over, or at least for seldom.
"""

import asyncio
import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from thoughtgate.sessions import Connected, Sessions

MANY = 100
"""Ended sessions that are worth it: a megabyte."""

PAUSE = 1.0
"""Seconds without an end after which it is over."""

LONGEST = 30.0
"""Seconds that are waited for such a pause."""

KEPT = 64 * 1024 * 1024
"""Bytes that the C library may hold unused at the end of its memory."""

LARGEST = 32 * 1024 * 1024
"""Bytes of the largest buffer that is taken from there: as much as the library allows."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of two options, see mallopt(3)."""

Trim = Callable[[], object]


def trimmer() -> Trim | None:
    """Return what gives back the memory that the C library holds unused; None where it cannot."""
    if sys.platform != "linux":
        return None
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
    return None if trim is None else lambda: trim(0)


def keep_for_large() -> None:
    """Have the C library keep what large buffers took, where it can, for the next ones.

    Of itself it gives each of them back to the system, which has to clear and map it again: for a
    result of a megabyte, which is copied a few times, that is a third of all that its call costs.
    """
    option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if option is not None:
        option(_TRIM_THRESHOLD, KEPT)
        option(_MMAP_THRESHOLD, LARGEST)


@contextmanager
def giving_back(sessions: Sessions, trim: Trim | None, pause: float = PAUSE) -> Iterator[None]:
    """Watch the sessions; `trim` runs in a thread after many of them have ended."""
    if trim is None:
        yield
        return
    ended = _Ended(trim, pause)
    unwatch = sessions.watch(ended.one)
    try:
        yield
    finally:
        unwatch()
        ended.close()


class _Ended:
    """Counts the sessions that ended since memory was given back."""

    def __init__(self, trim: Trim, pause: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._trim = trim
        self._pause = pause
        self._count = 0
        self._last = 0.0
        self._latest = 0.0
        self._planned: asyncio.TimerHandle | None = None

    def one(self, connected: Connected) -> None:
        """Count one more."""
        del connected
        self._count += 1
        self._last = self._loop.time()
        if self._count >= MANY and self._planned is None:
            self._latest = self._last + LONGEST
            self._plan()

    def close(self) -> None:
        """Count no more."""
        if self._planned is not None:
            self._planned.cancel()

    def _plan(self) -> None:
        due = min(self._last + self._pause, self._latest)
        self._planned = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        if self._loop.time() < min(self._last + self._pause, self._latest):
            self._plan()
            return
        self._count, self._planned = 0, None
        gc.collect()  # it also drops what the interpreter keeps for objects to come
        self._loop.run_in_executor(None, self._trim)
