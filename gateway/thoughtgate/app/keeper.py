"""The keeper: one task that holds the live catalogue in step with registry and tool servers.

Never lets a bad reload take away what works: the old state stays, and the log says why.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from thoughtgate.app.admission import Parts, remembered
from thoughtgate.app.entries import all_domains, all_servers
from thoughtgate.app.logins import read_logins
from thoughtgate.app.reasoning import with_engine
from thoughtgate.calls.gateway import Gateway, Update
from thoughtgate.catalog import Part
from thoughtgate.config.files import Loaded
from thoughtgate.core.domains import Domain
from thoughtgate.core.errors import GateError, UpstreamError
from thoughtgate.core.servers import Listing, LocalTransport, Server, UpstreamState
from thoughtgate.registry.store import Registry
from thoughtgate.upstream.auth_logins import Logins
from thoughtgate.upstream.upstreams import Upstreams

POLL = 0.5
"""Seconds between looks at the registry's revision: a change is seen within a second."""

PATIENCE = 10.0
"""Seconds that a run waits for servers whose tools nobody has seen yet."""

_WANTING = {UpstreamState.NEEDS_AUTH, UpstreamState.DEGRADED, UpstreamState.FAILED}
"""The states in which a new login may help."""

Progress = Callable[[str], None]

_log = logging.getLogger(__name__)


class Keeper:
    """Owns the catalogue's inputs; belongs to one event loop. `start` comes first."""

    def __init__(
        self,
        loaded: Loaded,
        registry: Registry,
        upstreams: Upstreams,
        gateway: Gateway,
        built_in: Iterable[Server] = (),
    ) -> None:
        self._loaded = loaded
        self._registry = registry
        self._upstreams = upstreams
        self._gateway = gateway
        self._built_in = tuple(built_in)
        self._servers: dict[str, Server] = {}
        self._listings: dict[str, Listing] = {}
        self._parts = Parts(registry)
        self._heard: dict[str, Listing] = {}
        self._woken = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._applying = asyncio.Lock()
        self._revision = -1
        self._trouble = ""
        self._logins: Logins | None = None

    def log_in_by(self, logins: Logins) -> None:
        """Keep these logins in step with the registry too, from `start` on."""
        self._logins = logins

    def hear(self, listing: Listing) -> None:
        """Take a listing that discovery found; it is applied soon, the latest one counts."""
        self._heard[listing.server] = listing
        self._woken.set()

    async def start(self) -> None:
        """Load servers, domains and remembered tools, then follow them until `aclose`.

        Raises:
            GateError: The registry cannot be loaded.
        """
        self._revision = await asyncio.to_thread(self._registry.revision)
        await self._load()
        for server in self._built_in:
            await self._upstreams.discover(server.name)
        await self._apply_heard()
        self._begin(self._follow())

    async def aclose(self) -> None:
        """End everything that was begun here."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def refresh(self) -> None:
        """Take the registry as it is now, without waiting for the next look at it.

        Raises:
            GateError: It cannot be read; the old state stays.
        """
        revision = await asyncio.to_thread(self._registry.revision)
        if revision != self._revision:
            await self._load()
            self._revision = revision

    async def settle(self) -> None:
        """Return when everything that discovery heard so far is in the catalogue."""
        await self._apply_heard()

    async def adopt(self, loaded: Loaded) -> None:
        """Take the servers, domains and effects of other settings.

        Raises:
            GateError: They cannot be used; the old state stays.
        """
        async with self._applying:
            before, self._loaded = self._loaded, loaded
            try:
                await self._load_all()
            except GateError:
                self._loaded = before
                raise

    @property
    def loaded(self) -> Loaded:
        """Return the settings whose servers, domains and effects are in force."""
        return self._loaded

    @property
    def servers(self) -> tuple[Server, ...]:
        """Return the registered servers, without those that live in this process."""
        return tuple(
            server
            for server in self._servers.values()
            if not isinstance(server.transport, LocalTransport)
        )

    def unlisted(self) -> tuple[str, ...]:
        """Return the enabled servers whose tools nobody has seen yet."""
        return tuple(s.name for s in self.servers if s.enabled and s.name not in self._listings)

    async def listed(self) -> None:
        """Return when every server has been listed, or after a few seconds."""
        missing = self.unlisted()
        if missing:
            await asyncio.wait([self.begin_discovery(missing, _log.info)], timeout=PATIENCE)

    def begin_discovery(self, names: Iterable[str], say: Progress) -> asyncio.Task[None]:
        """Begin to ask servers for their tools; the keeper owns the task."""
        return self._begin(self.discover(names, say))

    async def discover(self, names: Iterable[str], say: Progress) -> None:
        """Ask servers for their tools, all at once; a failure is told and does no harm."""

        async def one(name: str) -> None:
            try:
                listing = await self._upstreams.discover(name)
            except UpstreamError as error:
                say(f"{name}: {error.message.removeprefix(f'server {name}: ')}")
                return
            number = len(listing.tools)
            say(f"{name}: {number} tool{'' if number == 1 else 's'}")

        await asyncio.gather(*(one(name) for name in names))
        await self._apply_heard()

    async def _follow(self) -> None:
        while True:
            try:
                async with asyncio.timeout(POLL):
                    await self._woken.wait()
            except TimeoutError:
                pass
            await self._apply_heard()
            await self._follow_registry()

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("the catalogue is no longer kept up to date", exc_info=task.exception())

    async def _apply_heard(self) -> None:
        """Apply what was heard; returns when that is done, also when another task does it."""
        async with self._applying:
            self._woken.clear()
            heard, self._heard = self._heard, {}
            for name, listing in heard.items():
                if name in self._servers:
                    await self._take_in(self._servers[name], listing)

    async def _take_in(self, server: Server, listing: Listing) -> None:
        known = self._listings.get(server.name)
        try:
            part = await asyncio.to_thread(self._recorded, listing, server)
        except GateError as error:
            _log.error("server %s: its tools cannot be taken in: %s", server.name, error.message)
            return
        if known is None or known.warnings != listing.warnings:
            for warning in listing.warnings:
                _log.warning("server %s: %s", server.name, warning)
        self._listings[server.name] = listing
        await self._change(Update(parts=((part, server),)))

    async def _change(self, update: Update) -> None:
        """Let an update take effect; what takes long is done beside the calls that go on."""
        self._gateway.adopt(await asyncio.to_thread(self._gateway.prepared, update))

    def _recorded(self, listing: Listing, server: Server) -> Part:
        if self._upstreams.served(server.name) is not None:  # else the worker that runs it does
            self._registry.record_listing(listing)
        return self._parts.of(listing, server, self._loaded)

    async def _follow_registry(self) -> None:
        try:
            await self.refresh()
        except GateError as error:
            if error.message != self._trouble:
                _log.error("the registry cannot be read, the old state stays: %s", error.message)
            self._trouble = error.message
        else:
            self._trouble = ""

    async def _load(self) -> None:
        async with self._applying:
            await self._load_all()

    async def _load_all(self) -> None:
        servers, domains, parts = await asyncio.to_thread(self._read)
        new = [s.name for s in servers if s.enabled and s != self._servers.get(s.name)]
        follows = bool(self._tasks)
        self._servers = {server.name: server for server in servers}
        logged_in = await self._follow_logins()
        await self._upstreams.apply(servers)
        gone = frozenset(self._listings) - {part.server for part in parts}
        for name in gone:
            del self._listings[name]
            self._parts.drop(name)
        with_servers = tuple((part, self._servers[part.server]) for part in parts)
        await self._change(Update(parts=with_servers, gone=gone, domains=domains))
        if follows and new:
            self.begin_discovery(new, _log.info)
        if follows and logged_in:
            self._begin(self._reopen(logged_in.difference(new)))

    async def _follow_logins(self) -> frozenset[str]:
        """Take the logins that there are; return the servers with another one than before."""
        if self._logins is None:
            return frozenset()
        found = await asyncio.to_thread(read_logins, self.servers, self._registry)
        return self._logins.apply(found)

    async def _reopen(self, names: frozenset[str]) -> None:
        """Connect anew to those that could not be used for want of a login."""
        waiting = {s.server for s in self._upstreams.statuses() if s.state in _WANTING}
        for name in sorted(names & waiting):
            try:
                await self._upstreams.restart(name)
            except UpstreamError as error:
                _log.warning("%s", error.message)

    def _read(self) -> tuple[tuple[Server, ...], tuple[Domain, ...], list[Part]]:
        servers = (*self._built_in, *all_servers(self._loaded, self._registry))
        parts = []
        for server in servers:
            listing = self._seen(server) or remembered(server, self._registry)
            if server.enabled and listing is not None:
                self._listings[server.name] = listing
                parts.append(self._parts.of(listing, server, self._loaded))
        domains = tuple(map(with_engine, all_domains(self._loaded, self._registry)))
        return servers, domains, parts

    def _seen(self, server: Server) -> Listing | None:
        """Return what discovery found, unless the server stands in another place by now."""
        known = self._servers.get(server.name)
        same = known is not None and known.transport == server.transport
        return self._listings.get(server.name) if same else None
