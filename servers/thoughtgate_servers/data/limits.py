"""How much one call may take, and the watch that ends it: too long, or nobody waits.

Never lets work go on behind a call that is over.
"""

import asyncio
import resource
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from thoughtgate_servers.table import Report, ToolFailed

T = TypeVar("T")

MAX_ROWS = 10_000
MAX_BYTES = 1_000_000
"""Of the cells of an answer, as text."""
MAX_CELL = 10_000
"""Characters of one cell; the rest is cut."""
MAX_EXPORTED = 1_000_000
MAX_EXPORT_BYTES = 100 * 1024 * 1024
MAX_STUDIED = 200_000
"""Rows that statistics and charts look at."""
MAX_TABLES = 100
_TOO_MANY = f"more than {MAX_EXPORTED} rows: export them in parts"
_TOO_LARGE = f"larger than {MAX_EXPORT_BYTES} bytes: export it in parts"
_CALLS, _ROOM_MB = 4, 1024
"""Calls whose memory the whole process may use, and what it may use besides."""
_TELL = 0.5
"""Seconds between two words of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an operator may set."""

    seconds: float = 30
    memory_mb: int = 512


def bound_memory(limits: Limits) -> None:
    """Bound the memory of this whole process: engines count only what they hold tables in.

    One text that a statement makes may else have gigabytes.
    """
    most = (_CALLS * limits.memory_mb + _ROOM_MB) * 1024 * 1024
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


class Stopped(Exception):
    """Work that was told to stop."""


class Watch:
    """Between a call and its thread: how far the work is, and whether it shall stop."""

    def __init__(self) -> None:
        self.rows = 0
        self.stopped = False
        self._interrupt: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def interrupts(self, interrupt: Callable[[], None] | None) -> None:
        """Say how the engine that now works is interrupted."""
        with self._lock:
            self._interrupt = interrupt

    def check(self, rows: int = 0) -> None:
        """Count rows; called often by the work.

        Raises:
            Stopped: It shall stop.
        """
        self.rows += rows
        if self.stopped:
            raise Stopped

    def stop(self) -> None:
        """Tell the work to stop; may be called again and again until it does."""
        self.stopped = True
        # locked: an engine that closes at this very moment waits until this is over
        with self._lock:
            if self._interrupt is not None:
                self._interrupt()


def counted(rows: int, size: int) -> int:
    """Return the number of exported rows with one more; `size` is that of the file so far.

    Raises:
        ToolFailed: That is too many, or the file is too large.
    """
    if rows >= MAX_EXPORTED:
        raise ToolFailed(message=_TOO_MANY)
    if size > MAX_EXPORT_BYTES:
        raise ToolFailed(message=_TOO_LARGE)
    return rows + 1


async def watched(work: Callable[[Watch], T], seconds: float, progress: Report) -> T:
    """Run `work` on a thread until it is done, its time is over, or the call is cancelled.

    Raises:
        ToolFailed: Its time is over.
    """
    watch = Watch()
    thread = asyncio.ensure_future(asyncio.to_thread(work, watch))
    end = time.monotonic() + seconds
    try:
        while not thread.done() and (left := end - time.monotonic()) > 0:
            await asyncio.wait([thread], timeout=min(left, _TELL))
            if not thread.done():
                await progress(watch.rows, None, f"{watch.rows} rows read")
    finally:
        await _over(thread, watch)
    if isinstance(thread.exception(), Stopped):
        said = f"stopped after {seconds:g} seconds: ask for less, or with a narrower WHERE"
        raise ToolFailed(message=said)
    return thread.result()


async def _over(thread: "asyncio.Future[T]", watch: Watch) -> None:
    """Return when the thread has ended; an interrupt between two statements may be lost."""
    while not thread.done():
        watch.stop()
        try:
            await asyncio.wait([thread], timeout=0.05)
        except asyncio.CancelledError:
            # the one that brought us here is raised again after this
            continue
    # looked at: what a call that is over came to is nobody's error
    thread.exception()
