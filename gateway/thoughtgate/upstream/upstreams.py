"""All tool servers: which there are, who carries a call to which, and how they fare.

Never lets one server's trouble reach another's.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping

from thoughtgate.core.calls import Call, Listener, Result
from thoughtgate.core.errors import UpstreamUnreachable
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import (
    GrpcTransport,
    HttpTransport,
    Listing,
    LocalTransport,
    Server,
    UpstreamState,
    UpstreamStatus,
)
from thoughtgate.upstream.breaker import Backoff, Breaker
from thoughtgate.upstream.elsewhere import Elsewhere
from thoughtgate.upstream.local import LocalUpstream
from thoughtgate.upstream.opening import Means, open_link
from thoughtgate.upstream.ports import Counts
from thoughtgate.upstream.retiring import retire
from thoughtgate.upstream.served import MAX_PRIVATE, Served, Watchers


class Upstreams:
    """A `Sender` over every registered server; belongs to one event loop.

    `on_listing` runs for every discovery, the first and each after a change; `on_status` for
    every change of state. Both run on the loop and must not wait. `room` is how many clients may
    have connections of their own to one server.
    """

    def __init__(
        self,
        means: Means,
        *,
        on_listing: Callable[[Listing], None],
        on_status: Callable[[UpstreamStatus], None],
        local: Mapping[str, LocalUpstream] | None = None,
        backoff: Backoff | None = None,
        room: int = MAX_PRIVATE,
    ) -> None:
        self._means = means
        self._watchers = Watchers(on_listing=on_listing, on_status=on_status)
        self._local = dict(local or {})
        self._backoff = backoff or Backoff()
        self._room = room
        self._chance = random.Random()
        self._servers: dict[str, Server] = {}
        self._running: dict[str, Served | Elsewhere] = {}
        self._retiring: set[asyncio.Task[None]] = set()

    async def apply(self, servers: Iterable[Server]) -> None:
        """Take the registry's servers: what is new is known, what changed or went is ended.

        Calls in flight end on the old connection, within a grace; idle connections have ended
        when this returns.
        """
        wanted = {server.name: server for server in servers}
        idle: list[asyncio.Task[None]] = []
        for name, known in list(self._servers.items()):
            if wanted.get(name) != known:
                del self._servers[name]
                running = self._running.pop(name, None)
                if running is not None:
                    task = self._retire(running)
                    if not running.in_flight:
                        idle.append(task)
        for name, server in wanted.items():
            if name not in self._servers:
                self._add(server)
        if idle:
            await asyncio.wait(idle)

    async def discover(self, name: str) -> Listing:
        """Return what a server offers now; starts it when it is not running.

        Raises:
            UpstreamError: It could not be asked.
        """
        local = self._local_of(name)
        if local is not None:
            listing = await local.discover()
            self._watchers.on_listing(listing)
            return listing
        return await self._of(name).discover()

    async def ask(self, name: str) -> bool:
        """Ask a server that is connected for the begin of its list; False when it is not.

        Nothing is opened for it, and what it lists is not taken in.

        Raises:
            UpstreamError: It has not listed anything.
        """
        running = self._running.get(name)
        return running is not None and await running.ask()

    def send(self, call: Call) -> Awaitable[Result]:
        """Send a call to the server that has its target; see `Sender.send`."""
        server = call.found.server
        running = self._running.get(server)
        if running is not None:
            return running.send(call)
        local = self._local_of(server)
        if local is not None:
            return local.send(call)
        return self._of(server).send(call)

    def tell(self, session_id: str, method: str, params: JsonObject) -> None:
        """Pass a client's notification on to the servers that it has connections of its own to."""
        for running in self._running.values():
            running.tell(session_id, method, params)

    def leave(self, listener: Listener) -> None:
        """Forget a listener that is gone, and end all that it subscribed to."""
        for running in self._running.values():
            running.leave(listener)

    def leave_session(self, session_id: str) -> None:
        """End the connections, and children, that were a session's own."""
        for running in self._running.values():
            running.leave_session(session_id)

    async def restart(self, name: str) -> Listing:
        """Open a server's connection anew and forget its failures.

        Raises:
            UpstreamError: It could not be opened.
        """
        if self._local_of(name) is not None:
            return await self.discover(name)
        return await self._of(name).restart()

    def served(self, name: str) -> Served | None:
        """Return a server whose connections are this worker's own; None for any other."""
        running = self._running.get(name)
        return running if isinstance(running, Served) else None

    def statuses(self) -> tuple[UpstreamStatus, ...]:
        """Return how each server fares, in order of their names."""
        return tuple(self._status(server) for _, server in sorted(self._servers.items()))

    def counts(self, name: str) -> Counts:
        """Return what a server's present connection dropped so far."""
        running = self._running.get(name)
        return Counts() if running is None else running.counts

    async def aclose(self) -> None:
        """End every connection and child, within the bounds of their links."""
        running, self._running = self._running, {}
        self._servers = {}
        for task in self._retiring:
            task.cancel()
        for supervised in running.values():
            self._track(asyncio.get_running_loop().create_task(supervised.aclose()))
        if self._retiring:
            await asyncio.wait(self._retiring)

    def _add(self, server: Server) -> None:
        self._servers[server.name] = server
        if not server.enabled or isinstance(server.transport, LocalTransport):
            return
        neighbours = self._means.neighbours
        neighbour = None if neighbours is None else neighbours.runs(server)
        if neighbour is not None:
            self._running[server.name] = Elsewhere(server, neighbour, self._watchers)
            return
        far = isinstance(server.transport, HttpTransport | GrpcTransport)
        give_up = None if far else self._backoff.give_up
        backoff = Backoff(first=self._backoff.first, longest=self._backoff.longest, give_up=give_up)
        self._running[server.name] = Served(
            server,
            lambda wanted, era, home: open_link(wanted, era, self._means, home),
            self._watchers,
            Breaker(backoff, self._chance),
            room=self._room,
        )

    def _retire(self, running: Served | Elsewhere) -> asyncio.Task[None]:
        return self._track(asyncio.get_running_loop().create_task(retire(running)))

    def _track(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)
        return task

    def _local_of(self, name: str) -> LocalUpstream | None:
        server = self._servers.get(name)
        if server is None or not server.enabled:
            return None
        return self._local.get(name) if isinstance(server.transport, LocalTransport) else None

    def _of(self, name: str) -> Served | Elsewhere:
        running = self._running.get(name)
        if running is None:
            known = self._servers.get(name)
            what = "unknown" if known is None else "disabled; enable it first"
            raise UpstreamUnreachable(message=f"server {name} is {what}")
        return running

    def _status(self, server: Server) -> UpstreamStatus:
        running = self._running.get(server.name)
        if running is not None:
            return running.status
        state = UpstreamState.READY if server.enabled else UpstreamState.DISABLED
        return UpstreamStatus(server=server.name, state=state)
