"""One server: its shared connection, those of single clients, and which call takes which.

Never lets one client's connection serve another: what a server remembers of a session stays there.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from thoughtgate.core.calls import Call, Listener, Result
from thoughtgate.core.errors import (
    Overloaded,
    UpstreamError,
    UpstreamGarbled,
    UpstreamReplied,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import (
    Era,
    Listing,
    Server,
    Sharing,
    StdioTransport,
    UpstreamState,
    UpstreamStatus,
)
from thoughtgate.core.tools import Item, Kind
from thoughtgate.upstream.breaker import Breaker
from thoughtgate.upstream.home import Home, Traits, declared
from thoughtgate.upstream.known import Known
from thoughtgate.upstream.limit import Limit
from thoughtgate.upstream.lister import Lister
from thoughtgate.upstream.listing import first_page
from thoughtgate.upstream.patience import Patient, behind
from thoughtgate.upstream.ports import Counts, Link, Peer
from thoughtgate.upstream.retiring import retire
from thoughtgate.upstream.sharing import (
    SESSIONLESS,
    Key,
    is_piped,
    key_of,
    known_era,
    listed_with,
    sharing_of,
)
from thoughtgate.upstream.supervisor import ENDING, Progress, Role, Supervised, too_late
from thoughtgate.upstream.waiting import result_of
from thoughtgate.wire import handshake
from thoughtgate.wire.messages import Reply

IDLE = 600.0
"""Seconds after which a client's own connection is ended when nobody used it."""

MAX_PRIVATE = 4_000
"""Connections of single clients to one server."""

MAX_CHILDREN = 128
"""The same where each is a process of its own."""

Open = Callable[[Server, Era | None, Home], Awaitable[Link]]
"""Opens a link to a server for those of a home, in the era that it is known to speak."""

_FOLLOWED = Reply(id=0, result=b"{}", value={})
_SUBSCRIBING = frozenset({Kind.SUBSCRIBE, Kind.UNSUBSCRIBE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Watchers:
    """Who wants to know: of each discovery and of each change of state."""

    on_listing: Callable[[Listing], None]
    on_status: Callable[[UpstreamStatus], None]


class Served:
    """Everything that is open to one server."""

    def __init__(
        self,
        server: Server,
        opener: Open,
        watchers: Watchers,
        breaker: Breaker,
        *,
        room: int = MAX_PRIVATE,
    ) -> None:
        self.server = server
        self.status = UpstreamStatus(server=server.name, state=UpstreamState.IDLE)
        self._opener = opener
        self._watchers = watchers
        self._now = asyncio.get_running_loop().time
        self._breaker = breaker
        child = isinstance(server.transport, StdioTransport)
        self._room = min(room, MAX_CHILDREN) if child else room
        self._era = server.era
        self._known = known_era(server)
        self._traits = Traits(piped=is_piped(server))
        self._lister = Lister(server, watchers.on_listing)
        self._private: dict[Key, Supervised] = {}
        self._known_at = Known()
        self._sharing = sharing_of(server, self._known)
        self._ending: set[asyncio.Task[None]] = set()
        self._shared = Supervised(
            Role(
                name=server.name,
                open=self._open_shared,
                said=self._say,
                lasting=True,
                idle=server.idle_timeout,
                changed=self._lister.changed,
                tend=self._lister.keep,
            ),
            Home(server.name, capabilities=listed_with(server), traits=self._traits),
            breaker,
        )

    @property
    def in_flight(self) -> int:
        """Return how many calls are in flight."""
        return sum(one.in_flight for one in self._all())

    @property
    def newest(self) -> Listing | None:
        """Return what the last discovery found."""
        return self._lister.newest

    @property
    def counts(self) -> Counts:
        """Return what the shared connection dropped."""
        return self._shared.counts

    async def discover(self) -> Listing:
        """Return what the server offers now.

        Raises:
            UpstreamError: It could not be asked.
        """
        known, start = self._lister.newest, self.server.start_timeout
        deadline = asyncio.get_running_loop().time() + start + ENDING
        try:
            link = await self._shared.ready(deadline)
            if self._lister.newest is not None and self._lister.newest is not known:
                return self._lister.newest  # the connection has just been opened, and listed
            async with asyncio.timeout(start):
                return await self._lister.read(link)
        except TimeoutError:
            raise self._named(UpstreamTimeout(message="no list of tools in time")) from None
        except UpstreamReplied:
            raise
        except UpstreamError as error:
            raise self._named(error) from None

    async def ask(self) -> bool:
        """Tell whether the server is connected and answers; see `Upstreams.ask`."""
        link = self._shared.link
        if link is not None:
            await first_page(link)
        return link is not None

    async def send(self, call: Call) -> Result:
        """Send once and return the result; see `Sender.send`."""
        now = self._now()
        timeout = min(call.deadline - now, call.found.call_timeout)
        progress = Progress()
        try:
            with Limit(now + timeout) as limit:
                if self._sharing is not Sharing.SHARED:
                    return result_of(await self._apart(call, progress, limit), call)
                return result_of(await self._carried(self._shared, call, progress), call)
        except TimeoutError:
            raise self._named(too_late(timeout, progress)) from None
        except UpstreamReplied:
            raise  # relayed as it is
        except UpstreamError as error:
            raise self._named(error) from None

    async def restart(self) -> Listing:
        """End all connections, forget all failures and open the shared one again.

        Raises:
            UpstreamError: It could not be opened.
        """
        for key in list(self._private):
            self._end(key)
        await self._shared.end()
        self._breaker.succeeded()
        self._era, self._traits.streams = self.server.era, True
        return await self.discover()

    def tell(self, session_id: str, method: str, params: JsonObject) -> None:
        """Pass on what a client tells, on the connection that is its own."""
        own = self._private.get(("session", session_id))
        if own is not None and own.link is not None:
            own.link.tell(method, params)

    def leave(self, listener: Listener) -> None:
        """Forget a listener that is gone, and all that it followed."""
        listener = behind(listener)
        for one in self._all(self._known_at.forget(listener)):
            gone = one.home.leave(listener)
            if gone:
                self._aside(one.unsubscribed(gone))

    def leave_session(self, session_id: str) -> None:
        """End the connection that was a session's own; no other is told anything of it."""
        self._end(("session", session_id))
        for one in self._all(()):
            one.home.clients.pop(session_id, None)

    async def aclose(self) -> None:
        """End every connection for good, within the bounds of their links."""
        for key in list(self._private):
            self._end(key)
        self._aside(self._shared.aclose())
        await asyncio.wait(self._ending)

    async def quiet(self) -> None:
        """Return when no call is in flight."""
        for one in self._all():
            await one.quiet()

    def _all(self, own: Iterable[Supervised] | None = None) -> tuple[Supervised, ...]:
        if own is not None and self._sharing is Sharing.SESSION:
            return (self._shared, *own)  # what is one session's own, no other one knows
        return (self._shared, *self._private.values())

    async def _apart(self, call: Call, progress: Progress, limit: Limit) -> Reply:
        connection = await self._connection(call)
        if call.session.capabilities:
            call = replace(call, listener=Patient(call.listener, limit))
        return await self._carried(connection, call, progress)

    def _carried(self, on: Supervised, call: Call, progress: Progress) -> Awaitable[Reply]:
        target = call.found
        if isinstance(target, Item) and target.kind in _SUBSCRIBING:
            progress.sent = on.link is not None
            return self._follow(on, call, target)
        return on.send(call, progress)

    async def _follow(self, connection: Supervised, call: Call, target: Item) -> Reply:
        listener = behind(call.listener)
        if target.kind is Kind.SUBSCRIBE:
            self._known_at.note(listener, connection)
            await connection.follow(target.name, listener, call.deadline)
        else:
            await connection.unfollow(target.name, listener)
        return _FOLLOWED

    async def _connection(self, call: Call) -> Supervised:
        """Return the connection that a client's call belongs on."""
        if self._sharing is None:  # only who has answered says which era it is
            await self._shared.ready(call.deadline)
        if self._sharing is None or self._sharing is Sharing.SHARED:
            return self._shared
        key = self._free(key_of(self._sharing, call), call)
        own = self._private.pop(key, None)
        if own is None:
            own = self._new(call)
        elif self._sharing is Sharing.PRINCIPAL and own.home.capabilities:
            own = self._common(own, call)
        self._private[key] = own  # the last one is the one used last
        own.home.join(call.session)
        if call.session.peer is not None:
            self._known_at.note(call.session.peer, own)
        return own

    def _free(self, key: Key, call: Call) -> Key:
        """Return the key of a connection on which a call without a session can be.

        Such clients may be several, and a pipe of the handshake era does not say in which call it
        asks: so there each call that runs has a connection to itself.
        """
        if key[0] != SESSIONLESS or not call.session.capabilities:
            return key
        if not self._traits.piped or self._known is not Era.HANDSHAKE:
            return key
        numbered = ((*key, str(number)) for number in itertools.count())
        return next(one for one in numbered if not self._in_use(one))

    def _in_use(self, key: Key) -> bool:
        own = self._private.get(key)
        return own is not None and own.in_flight > 0

    def _new(self, call: Call) -> Supervised:
        self._make_room()
        session = call.session
        version = session.version if session.version in handshake.VERSIONS else handshake.LATEST
        home = Home(
            self.server.name,
            capabilities=session.capabilities,
            version=version,
            private=True,
            traits=self._traits,
        )
        return self._owned(home)

    def _owned(self, home: Home) -> Supervised:
        role = Role(
            name=self.server.name,
            open=partial(self._open_private, home),
            said=self._say_private,
            lasting=False,
            idle=self.server.idle_timeout or IDLE,
            changed=self._lister.changed,
        )
        return Supervised(role, home, self._breaker)

    def _common(self, own: Supervised, call: Call) -> Supervised:
        """Return a principal's connection that declares only what all of its clients can do."""
        if own.home.capabilities == declared(call.session.capabilities):
            return own
        self._aside(retire(own))
        own.home.capabilities = {}
        return self._owned(own.home)

    def _make_room(self) -> None:
        if len(self._private) < self._room:
            return
        idle = next((key for key, own in self._private.items() if not own.busy), None)
        if idle is None:
            raise Overloaded(
                message=f"server {self.server.name}: {self._room} clients have connections of"
                " their own, and all of them are in use"
            )
        self._end(idle)

    def _end(self, key: Key) -> None:
        own = self._private.pop(key, None)
        if own is not None:
            self._aside(own.aclose())

    def _aside(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _open_shared(self) -> Link:
        """Open the shared link and list what is there, within the server's time for starting."""
        era, self._era = self._era, self.server.era  # if this fails, it may be another server now
        link: Link | None = None
        listed = False
        try:
            async with asyncio.timeout(self.server.start_timeout):
                link = await self._opened(era, self._shared.home)
                await self._lister.read(link)
            listed = True
        except TimeoutError:
            raise self._not_ready() from None
        finally:
            if link is not None and not listed:
                await link.aclose()
        self._era = self._known = link.peer.era
        self._sharing = sharing_of(self.server, self._known)
        return link

    async def _open_private(self, home: Home) -> Link:
        try:
            async with asyncio.timeout(self.server.start_timeout):
                link = await self._opened(self._known, home)
        except TimeoutError:
            raise self._not_ready() from None
        self._known = link.peer.era
        return link

    async def _opened(self, era: Era | None, home: Home) -> Link:
        """Open a link in the era that was spoken last, else in the one that is spoken now."""
        try:
            return await self._opener(self.server, era, home)
        except (UpstreamReplied, UpstreamGarbled):
            if era is self.server.era:
                raise
        return await self._opener(self.server, self.server.era, home)

    def _not_ready(self) -> UpstreamUnreachable:
        seconds = self.server.start_timeout
        return UpstreamUnreachable(message=f"not ready within {seconds:g} seconds")

    def _say_private(self, state: UpstreamState, reason: str, peer: Peer | None) -> None:
        """Take the state of a client's connection for the server's where it says how it fares."""
        if state not in {UpstreamState.IDLE, UpstreamState.STARTING}:
            self._say(state, reason, peer)

    def _say(self, state: UpstreamState, reason: str, peer: Peer | None) -> None:
        status = UpstreamStatus(
            server=self.server.name,
            state=state,
            reason=reason,
            era=peer.era if peer else self._known,
            version=peer.version if peer else "",
        )
        if status != self.status:
            self.status = status
            self._watchers.on_status(status)

    def _named(self, error: UpstreamError) -> UpstreamError:
        return type(error)(message=f"server {self.server.name}: {error.message}", data=error.data)
