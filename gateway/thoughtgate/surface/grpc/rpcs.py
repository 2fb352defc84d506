"""The RPCs that run: the work of each is a task of its own, and ends in a reply or a status.

This is the door of the face: never lets an exception past it, whose text gRPC would send.
"""

import asyncio
from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import grpc

from thoughtgate.core.errors import Overloaded
from thoughtgate.surface.grpc.errors import (
    CANCELLED,
    DETAILS_KEY,
    LATE,
    STALLED,
    STOPPING,
    Failure,
    failure_by,
)
from thoughtgate.surface.grpc.ports import Context

Work = Callable[[Any, "Rpc"], Awaitable[bytes | None]]
"""Serves one RPC: takes the request, or an iterator of them, and writes what it streams.

Returns the reply where there is only one.
"""


class Rpc:
    """One RPC: what came with it, and the way back to its caller.

    A caller that takes nothing for `patience` seconds is given up, and whatever else is written to
    it is dropped, as it is when the RPC is over.
    """

    __slots__ = ("_context", "_over", "_patience", "_task", "_writing", "failure")

    def __init__(self, context: Context, patience: float) -> None:
        self._context = context
        self._patience = patience
        self._writing = asyncio.Lock()
        self._over = False
        self._task: asyncio.Task[bytes | None] | None = None
        self.failure = STOPPING

    @property
    def metadata(self) -> dict[str, str | bytes]:
        """Return the metadata; of a key that came twice the last value."""
        return {str(key): value for key, value in self._context.invocation_metadata() or ()}

    def seconds(self) -> float | None:
        """Return the seconds that are left for it, None when the caller sets no deadline."""
        return self._context.time_remaining()

    async def write(self, message: bytes) -> None:
        """Send one message; returns when the caller has room again."""
        async with self._writing:
            if self._over:
                await asyncio.sleep(0)  # who writes on and on must hear of the end
                return
            try:
                async with asyncio.timeout(self._patience):
                    await self._context.write(message)
            except TimeoutError:
                self.end(STALLED)
            except grpc.aio.BaseError:  # the caller is gone: the end of the work is on its way
                self._over = True

    def end(self, failure: Failure) -> None:
        """End the work, also from within it; this is what the caller hears."""
        self._over = True
        if self._task is not None and not self._task.done():
            self.failure = failure
            self._task.cancel()

    async def serve(self, work: Awaitable[bytes | None]) -> bytes | None:
        """Do the work and return its reply; aborts when there is none."""
        self._task = asyncio.ensure_future(work)
        try:
            await asyncio.wait([self._task])
        except CancelledError:  # the caller is gone, or its deadline has come
            self.end(CANCELLED)
            await asyncio.wait([self._task])
        self._over = True
        if self._task.cancelled():
            await self.abort(self.failure)
        error = self._task.exception()
        if error is not None:
            await self.abort(failure_by(error))
        return self._task.result()

    async def abort(self, failure: Failure) -> NoReturn:
        """End the RPC with a status."""
        details = ((DETAILS_KEY, failure.details),)
        await self._context.abort(failure.code, failure.message, details)


class Rpcs:
    """All RPCs of a face; `most` run at once."""

    def __init__(self, *, most: int, patience: float) -> None:
        self._most = most
        self._patience = patience
        self._running: set[Rpc] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def served(self, work: Work) -> Callable[[Any, Context], Awaitable[Any]]:
        """Return how gRPC serves what `work` does."""

        async def serve(request: Any, context: Context) -> bytes | None:
            rpc = Rpc(context, self._patience)
            left = rpc.seconds()
            if left is not None and left <= 0:
                await rpc.abort(LATE)
            if len(self._running) >= self._most:
                message = f"{self._most} requests run; ask again later"
                await rpc.abort(failure_by(Overloaded(message=message)))
            self._running.add(rpc)
            self._idle.clear()
            try:
                return await rpc.serve(work(request, rpc))
            finally:
                self._running.discard(rpc)
                if not self._running:
                    self._idle.set()

        return serve

    async def idle(self) -> None:
        """Return when none runs."""
        await self._idle.wait()

    def end(self) -> None:
        """End all that run."""
        for rpc in list(self._running):
            rpc.end(STOPPING)
