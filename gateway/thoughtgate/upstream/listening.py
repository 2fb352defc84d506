"""The one subscription of a link in the stateless era, opened anew when more or less is wanted.

Never lets go of a subscription before the next one is agreed to: nothing is missed in between.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from thoughtgate.core.errors import UpstreamError, UpstreamGarbled, UpstreamReplied
from thoughtgate.core.json import JsonObject
from thoughtgate.upstream.home import Home
from thoughtgate.upstream.http_watch import Pace
from thoughtgate.upstream.ports import Peer
from thoughtgate.wire import codes

Listen = Callable[[JsonObject, Callable[[JsonObject], None]], Awaitable[bytes]]
"""Sends `subscriptions/listen` and returns its result, when it is over; tells what is agreed to."""

_CHANGES = {
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Stream:
    task: asyncio.Task[bytes]
    agreed: asyncio.Future[JsonObject]

    @property
    def offered(self) -> bool:
        """Tell whether the server, whose stream has ended, has such streams at all."""
        if self.agreed.done() or not self.task.done() or self.task.cancelled():
            return True
        error = self.task.exception()
        return error is not None and not isinstance(error, UpstreamReplied | UpstreamGarbled)


class Listening:
    """One subscription at a time; `longest` is how many seconds one may last, None for ever."""

    def __init__(self, home: Home, listen: Listen, *, longest: float | None) -> None:
        self.pace = Pace()
        self._home = home
        self._listen = listen
        self._longest = longest
        self._stream: _Stream | None = None
        self._renewing = asyncio.Lock()
        self._renewed = asyncio.Event()

    async def hold(self, peer: Peer, gap: Callable[[], None]) -> None:
        """Keep the subscription until cancelled; `gap` runs when something may have been missed."""
        try:
            while True:
                stream = self._stream = self._stream or self._opened(peer)
                self._renewed.clear()
                await asyncio.wait([stream.task], timeout=self._longest)
                if self._stream is not stream:
                    continue  # another has taken its place
                self._stream = None
                stream.task.cancel()
                if not stream.offered:
                    await self._renewed.wait()
                    continue
                await self.pace.wait()
                gap()
        finally:
            if self._stream is not None:
                self._stream.task.cancel()

    async def follow(self, peer: Peer, uri: str | None) -> None:
        """Subscribe to what is wanted now; `uri` is what the server must agree to send.

        Raises:
            UpstreamError: It does not, or could not be asked.
        """
        async with self._renewing:
            stream = self._opened(peer)
            try:
                either: list[asyncio.Future[Any]] = [stream.task, stream.agreed]
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not stream.agreed.done():
                    stream.task.cancel()
            await _agreed(stream, uri)
            old, self._stream = self._stream, stream
            self._renewed.set()
            if old is not None:
                old.task.cancel()
                await asyncio.wait([old.task])  # nothing is told twice from now on

    def _opened(self, peer: Peer) -> _Stream:
        loop = asyncio.get_running_loop()
        agreed: asyncio.Future[JsonObject] = loop.create_future()

        def agree(filter_: JsonObject) -> None:
            self.pace.heard()
            if not agreed.done():
                agreed.set_result(filter_)

        task = loop.create_task(_run(self._listen(self._wanted(peer), agree)))
        task.add_done_callback(_forget)
        return _Stream(task=task, agreed=agreed)

    def _wanted(self, peer: Peer) -> JsonObject:
        """Return the filter: changes of all lists that the server has, and what is followed."""
        wanted: dict[str, Any] = {"toolsListChanged": True}
        wanted |= {key: True for name, key in _CHANGES.items() if name in peer.capabilities}
        if len(self._home.subscriptions):
            wanted["resourceSubscriptions"] = list(self._home.subscriptions.uris)
        return wanted


async def _agreed(stream: _Stream, uri: str | None) -> None:
    """Return when the server has agreed to all that is wanted; else end the stream and say so."""
    if not stream.agreed.done():
        await stream.task
        raise UpstreamGarbled(message="the server ended the subscription at once")
    agreed = stream.agreed.result().get("resourceSubscriptions", [])
    if uri is not None and not (isinstance(agreed, list) and uri in agreed):
        stream.task.cancel()
        raise UpstreamReplied(
            rpc_code=codes.METHOD_NOT_FOUND,
            rpc_message="the server does not agree to tell of changes of this resource",
        )


async def _run(listening: Awaitable[bytes]) -> bytes:
    return await listening


def _forget(task: "asyncio.Task[bytes]") -> None:
    """Take a finished subscription's outcome: a server that has none may say so."""
    if not task.cancelled() and isinstance(task.exception(), UpstreamError):
        return
