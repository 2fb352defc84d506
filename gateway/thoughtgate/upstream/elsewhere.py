"""One server whose child another worker of this gateway runs, as this worker calls it.

Never runs a child: there is one for all workers, and what it says of itself is the same to each.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from thoughtgate.core.calls import Call, Listener, Result
from thoughtgate.core.errors import (
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import (
    Listing,
    Server,
    Sharing,
    UpstreamState,
    UpstreamStatus,
)
from thoughtgate.core.tools import Item, Kind
from thoughtgate.upstream.carried import read_listing, sending, write_params
from thoughtgate.upstream.frames import Asking, Done, Left, Listed, Saying, Sending, Wish
from thoughtgate.upstream.limit import Limit
from thoughtgate.upstream.neighbour import RESTARTING, Neighbour, restarting
from thoughtgate.upstream.patience import Patient, behind
from thoughtgate.upstream.ports import Counts
from thoughtgate.upstream.served import Watchers
from thoughtgate.upstream.sharing import sharing_of
from thoughtgate.upstream.supervisor import ENDING

AWAY = 10.0
"""Seconds that a call waits for a worker that is being restarted."""

SPARE = 2.0
"""Seconds beyond its own that a request may take: the worker that runs the server keeps time."""

_LASTING = frozenset({Kind.SUBSCRIBE, Kind.UNSUBSCRIBE})


class Elsewhere:
    """A server behind a neighbour; what `Served` is for one that this worker runs."""

    def __init__(self, server: Server, neighbour: Neighbour, watchers: Watchers) -> None:
        self.server = server
        self.status = UpstreamStatus(server=server.name, state=UpstreamState.IDLE)
        self.counts = Counts()
        self.in_flight = 0
        self._neighbour = neighbour
        self._watchers = watchers
        self._newest: Listing | None = None
        self._apart = sharing_of(server, None) is not Sharing.SHARED
        self._sessions: set[str] = set()
        self._followed: dict[tuple[int, str], Call] = {}
        self._again: set[asyncio.Task[None]] = set()
        self._quiet = asyncio.Event()
        self._closed = False
        neighbour.follow(server.name, self)

    async def discover(self) -> Listing:
        """Return what the server offers now; see `Served.discover`."""
        return await self._list(Wish.LIST)

    async def restart(self) -> Listing:
        """Have all its connections ended and the shared one opened again."""
        return await self._list(Wish.ANEW)

    async def ask(self) -> bool:
        """Tell whether the server is connected and answers; see `Upstreams.ask`."""
        name = self.server.name
        await self._neighbour.ready(name, 0.0)
        told = await self._neighbour.ask(
            name, lambda number: Asking(number=number, server=name, wish=Wish.FIRST)
        )
        return isinstance(told, Done) and told.final

    async def send(self, call: Call) -> Result:
        """Send once and return the result; see `Sender.send`."""
        self.in_flight += 1
        try:
            return await self._bounded(call)
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self._quiet.set()

    def tell(self, session_id: str, method: str, params: JsonObject) -> None:
        """Pass on what a client tells, where it may have a connection of its own."""
        if session_id in self._sessions:
            said = write_params(params)
            frame = Saying(server=self.server.name, session=session_id, method=method, params=said)
            if not self._neighbour.say(frame):
                self.counts.unsent += 1

    def leave(self, listener: Listener) -> None:
        """Forget a listener that is gone, and all that it followed."""
        listener = behind(listener)
        for key, call in list(self._followed.items()):
            if call.listener is listener:
                del self._followed[key]
        self._neighbour.forget(listener)

    def leave_session(self, session_id: str) -> None:
        """End the connection that was a session's own."""
        if session_id in self._sessions:
            self._sessions.discard(session_id)
            self._neighbour.tell(Left(server=self.server.name, session=session_id))

    async def quiet(self) -> None:
        """Return when no call is in flight."""
        while self.in_flight:
            self._quiet.clear()
            await self._quiet.wait()

    async def aclose(self) -> None:
        """Want nothing of the server any more; the worker that runs it ends it in its own time."""
        self._closed = True
        self._neighbour.unfollow(self.server.name, self)
        for task in self._again:
            task.cancel()

    def heard(self, listing: Listing) -> None:
        """Take what a discovery found; see `Follower.heard`."""
        self._newest = listing
        self._watchers.on_listing(listing)

    def stands(self, status: UpstreamStatus) -> None:
        """Take how the server fares; it is told of by the worker that runs it."""
        self.status = status

    def back(self) -> None:
        """Follow again what was followed; see `Follower.back`."""
        for call in list(self._followed.values()):
            self._aside(self._follow_again(call))

    def gone(self) -> None:
        """Say so until the worker is back; see `Follower.gone`."""
        self.status = replace(self.status, state=UpstreamState.DEGRADED, reason=RESTARTING)
        self._watchers.on_status(self.status)

    async def _list(self, wish: Wish) -> Listing:
        name = self.server.name
        await self._neighbour.ready(name, self.server.start_timeout)
        longest = 2 * (self.server.start_timeout + ENDING) + SPARE
        try:
            async with asyncio.timeout(longest):
                told = await self._neighbour.ask(
                    name, lambda number: Asking(number=number, server=name, wish=wish)
                )
        except TimeoutError:
            message = f"server {name}: no list of tools in time from the worker that runs it"
            raise UpstreamTimeout(message=message) from None
        if not isinstance(told, Listed):
            raise TypeError(told)
        listing = read_listing(told.listing)
        if listing != self._newest:
            self.heard(listing)
        return listing

    async def _bounded(self, call: Call) -> Result:
        """Keep the time beside the worker that runs the server, which could hang."""
        name = self.server.name
        if self._closed:
            raise UpstreamUnreachable(
                message=f"server {name}: it was removed, or the gateway is shutting down"
            )
        now = asyncio.get_running_loop().time()
        timeout = min(call.deadline - now, call.found.call_timeout)
        sent = False
        try:
            with Limit(now + timeout + SPARE) as limit:
                await self._neighbour.ready(name, min(AWAY, timeout))
                sent = True
                return await self._carried(call, limit)
        except TimeoutError:
            if not sent:
                raise restarting(name) from None
            raise UpstreamTimeout(
                message=f"server {name}: no answer within {max(timeout, 0.0):.1f} seconds,"
                " nor from the worker that runs it"
            ) from None

    async def _carried(self, call: Call, limit: Limit) -> Result:
        found, neighbour = call.found, self._neighbour
        session_id, peer = "", 0
        if self._apart and call.session.id:
            session_id, peer = call.session.id, neighbour.number_of(call.session.peer)
            self._sessions.add(session_id)

        def frame(number: int, listener: int) -> Sending:
            return sending(call, number=number, listener=listener, session_id=session_id, peer=peer)

        if isinstance(found, Item) and found.kind in _LASTING:
            listener = neighbour.number_of(call.listener)
            done = await neighbour.ask(found.server, lambda number: frame(number, listener))
            self._keep(call, found, listener)
        else:
            caller = Patient(call.listener, limit)
            done = await neighbour.ask(found.server, lambda number: frame(number, number), caller)
        if not isinstance(done, Done):
            raise TypeError(done)
        return Result(raw=done.raw, is_error=done.is_error, final=done.final)

    def _keep(self, call: Call, found: Item, listener: int) -> None:
        """Remember what is followed: a worker that was restarted has to be asked again."""
        if found.kind is Kind.SUBSCRIBE:
            self._followed[listener, found.name] = call
        else:
            self._followed.pop((listener, found.name), None)

    async def _follow_again(self, call: Call) -> None:
        now = asyncio.get_running_loop().time()
        try:
            await self.send(replace(call, deadline=now + call.found.call_timeout))
        except UpstreamError:
            return  # what was followed is there no more

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._again.add(task)
        task.add_done_callback(self._again.discard)
