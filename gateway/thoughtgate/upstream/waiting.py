"""What waits for one reply on a shared pipe, with the notifications that come before it.

Never blocks the reader of the pipe: a caller without room loses notifications, which is counted.
"""

import asyncio
from collections import deque

from thoughtgate.core.calls import Call, Notice, Result
from thoughtgate.core.errors import UpstreamError, UpstreamGarbled, UpstreamReplied
from thoughtgate.core.tools import Tool
from thoughtgate.upstream.ports import Counts
from thoughtgate.wire.input_required import INPUT_REQUIRED
from thoughtgate.wire.messages import Failure, Reply

ROOM = 256
"""Notifications that may wait for a slow caller."""

_KINDS = (None, "complete", INPUT_REQUIRED)
"""The kinds of result that the protocol itself knows; other ones belong to extensions."""

ROOM_BYTES = 4 * 1024 * 1024
"""Bytes that they may have together, unless it is one alone."""


class Waiter:
    """One request in flight; `call` is None for requests of our own."""

    __slots__ = ("_counts", "_loop", "_notices", "_outcome", "_size", "_wake", "call")

    def __init__(self, call: Call | None, counts: Counts) -> None:
        self.call = call
        self._counts = counts
        self._loop = asyncio.get_running_loop()
        self._notices: deque[tuple[Notice, int]] = deque()
        self._size = 0
        self._outcome: Reply | UpstreamError | None = None
        self._wake: asyncio.Future[None] | None = None

    def notify(self, notice: Notice, size: int) -> None:
        """Queue a notification of so many bytes for the caller, in order; the oldest make room."""
        while self._notices and (len(self._notices) >= ROOM or self._size + size > ROOM_BYTES):
            self._next()
            self._counts.overflow += 1
        self._notices.append((notice, size))
        self._size += size
        self._rouse()

    def answer(self, message: Reply | Failure) -> None:
        """End the wait with a reply."""
        self._outcome = message if isinstance(message, Reply) else replied(message)
        self._rouse()

    def fail(self, error: UpstreamError) -> None:
        """End the wait with an error, unless a reply has come."""
        if self._outcome is None:
            self._outcome = error
            self._rouse()

    async def outcome(self) -> Reply:
        """Deliver notifications until the reply comes, then return it.

        Raises:
            UpstreamError: The reply was an error, or none can come.
        """
        while True:
            while self._notices:
                notice = self._next()
                if self.call is not None:
                    await self.call.listener.notify(notice)
            if isinstance(self._outcome, UpstreamError):
                raise self._outcome
            if self._outcome is not None:
                return self._outcome
            self._wake = self._loop.create_future()
            await self._wake

    def _next(self) -> Notice:
        notice, size = self._notices.popleft()
        self._size -= size
        return notice

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def replied(message: Failure) -> UpstreamReplied:
    """Return a server's error reply as the error that callers see."""
    return UpstreamReplied(
        rpc_code=message.code, rpc_message=message.message, rpc_data=message.data
    )


def garbled(*, reason: str) -> UpstreamGarbled:
    """Return the error for a reply that cannot be read."""
    return UpstreamGarbled(message=f"its reply cannot be read: {reason}")


def result_of(reply: Reply, call: Call) -> Result:
    """Return what a server answered as the result of a call.

    Raises:
        UpstreamGarbled: It is of a kind that no extension of this caller's can know.
    """
    value = reply.value
    kind = value.get("resultType")
    if kind not in _KINDS and not (type(kind) is str and "extensions" in call.session.capabilities):
        raise garbled(reason="it is of a kind that this client did not say it knows")
    return Result(
        raw=reply.result,
        is_error=value.get("isError") is True and isinstance(call.found, Tool),
        final=kind != INPUT_REQUIRED,
        parsed=(reply.result, value),
    )
