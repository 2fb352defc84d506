"""The composition root: everything is made here, once, and ended in the right order.

Never holds logic of its own; what an object is given here is all it knows of the settings.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata

from thoughtgate.app.keeper import Keeper, Progress
from thoughtgate.app.logins import RegistryLogins
from thoughtgate.app.model_entries import settings_with_models
from thoughtgate.app.plugins import middleware
from thoughtgate.app.reasoning import (
    BUILT_IN_SERVER,
    ReasonDoor,
    Reasoning,
    limits_of,
    reasoning,
)
from thoughtgate.app.stores import open_registry
from thoughtgate.app.tracing import trace_variables
from thoughtgate.calls.gateway import Gateway
from thoughtgate.calls.path import Equipment
from thoughtgate.calls.slots import SlotLimits, Slots
from thoughtgate.config.files import Loaded
from thoughtgate.config.settings import LimitSettings
from thoughtgate.core.servers import BUILT_IN, Listing, UpstreamStatus
from thoughtgate.core.workers import ALONE, Crew
from thoughtgate.registry.audit import AuditWriter
from thoughtgate.registry.store import Registry
from thoughtgate.telemetry.environment import from_environment
from thoughtgate.telemetry.exporter import SpanExporter
from thoughtgate.upstream.auth_logins import Logins
from thoughtgate.upstream.crew import CrewServers
from thoughtgate.upstream.door import House
from thoughtgate.upstream.http_client import PooledClient
from thoughtgate.upstream.hurry import Hurry
from thoughtgate.upstream.opening import Means
from thoughtgate.upstream.ports import HttpClient, Identity
from thoughtgate.upstream.upstreams import Upstreams

VERSION = metadata.version("thoughtgate")
CAPTURE_BYTES = 65_536
"""Bytes of arguments and result that a span keeps when capture is on."""

SHUTDOWN = 5.0
"""Seconds that each of the exporter and the audit log may take at the end."""

PARTING = 0.3
"""Seconds beyond the time by which all must be over that connections to servers may take to end."""

LAST_SPANS = 0.6
"""The same for the exporter, which comes last."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A composed gateway, or one worker of it, running."""

    crew: Crew
    loaded: Loaded
    registry: Registry
    gateway: Gateway
    upstreams: Upstreams
    keeper: Keeper
    audit: AuditWriter
    exporter: SpanExporter | None
    reasoning: Reasoning
    client: HttpClient
    slots: Slots
    hurry: Hurry

    async def ensure_listed(self, *, on_progress: Progress, refresh: bool = False) -> None:
        """Ask the servers whose tools nobody has seen yet, or all of them with `refresh`."""
        names = [server.name for server in self.keeper.servers if server.enabled]
        await self.keeper.discover(names if refresh else self.keeper.unlisted(), on_progress)

    async def ensure_shown(self, domain: str, tool: str, *, on_progress: Progress) -> None:
        """Ask the servers that nobody has seen yet, unless the domain shows `tool` already."""
        if tool not in self.gateway.view(domain).table:
            await self.ensure_listed(on_progress=on_progress)


@asynccontextmanager
async def opened(
    loaded: Loaded, environ: Mapping[str, str], crew: Crew = ALONE
) -> AsyncIterator[App]:
    """Compose a gateway and run it for the length of the block; nothing listens yet.

    With a crew it is one of several workers on one registry.

    Raises:
        GateError: The registry or the settings cannot be used.
    """
    async with AsyncExitStack() as ending:
        registry = await asyncio.to_thread(open_registry, loaded)
        ending.push_async_callback(asyncio.to_thread, registry.close)
        exporter = from_environment(trace_variables(loaded, environ))
        hurry = Hurry()
        if exporter is not None:
            ending.push_async_callback(_flushed, exporter, hurry)
        audit = AuditWriter(registry, required=loaded.settings.gateway.audit == "required")
        ending.push_async_callback(asyncio.to_thread, _close_audit, audit)
        client = PooledClient()
        ending.push_async_callback(client.aclose)
        logins = Logins(RegistryLogins(registry), client)
        ending.push_async_callback(lambda: hurry.end(logins.aclose(), spare=-PARTING))
        means = replace(_means(loaded, client, environ), credentials=logins, hurry=hurry)
        servers = CrewServers(crew)
        app = _composed(servers, loaded, registry, exporter, audit, means)
        ending.push_async_callback(lambda: hurry.end(app.upstreams.aclose(), spare=-PARTING))
        app.keeper.log_in_by(logins)
        ending.push_async_callback(app.keeper.aclose)
        ending.push_async_callback(servers.aclose, hurry)
        await app.keeper.start()
        await servers.open(
            House(upstreams=app.upstreams, look=app.keeper.refresh, settle=app.keeper.settle)
        )
        yield app


def _composed(
    servers: CrewServers,
    loaded: Loaded,
    registry: Registry,
    exporter: SpanExporter | None,
    audit: AuditWriter,
    means: Means,
) -> App:
    heard: list[Keeper] = []  # the keeper needs the upstreams, whose listings go to the keeper
    settings = settings_with_models(loaded, registry)
    door = ReasonDoor()
    slots = Slots(_slot_limits(settings.limits))
    upstreams = Upstreams(
        replace(means, neighbours=servers.neighbours),
        on_listing=lambda listing: _hear(heard, servers, listing),
        on_status=partial(_tell, servers),
        local={BUILT_IN: door.upstream(limits_of(settings))},
    )
    capture = CAPTURE_BYTES if settings.gateway.capture else 0
    gateway = Gateway(
        Equipment(
            sender=upstreams,
            ties=upstreams,
            audit=audit,
            intents=settings.gateway.audit == "required",
            recorder=exporter,
            capture=capture,
            slots=slots,
            max_depth=settings.limits.call_depth,
            middleware=middleware(settings.gateway.plugins),
        )
    )
    thinking = reasoning(settings, gateway, means.client, exporter, capture)
    keeper = Keeper(loaded, registry, upstreams, gateway, built_in=[BUILT_IN_SERVER])
    door.open(thinking.tool, keeper.listed)
    heard.append(keeper)
    return App(
        crew=servers.crew,
        loaded=loaded,
        registry=registry,
        gateway=gateway,
        upstreams=upstreams,
        keeper=keeper,
        audit=audit,
        exporter=exporter,
        reasoning=thinking,
        client=means.client,
        slots=slots,
        hurry=means.hurry or Hurry(),
    )


def _hear(heard: list[Keeper], servers: CrewServers, listing: Listing) -> None:
    for keeper in heard:
        keeper.hear(listing)
    servers.heard(listing)


def _tell(servers: CrewServers, status: UpstreamStatus) -> None:
    servers.stands(status)
    _log.info("server %s: %s %s", status.server, status.state.value, status.reason)


def _means(loaded: Loaded, client: PooledClient, environ: Mapping[str, str]) -> Means:
    return Means(
        client=client,
        environ=environ,
        identity=Identity(name="thoughtgate", version=VERSION),
        max_result=loaded.settings.limits.result_bytes,
    )


def _slot_limits(limits: LimitSettings) -> SlotLimits:
    return SlotLimits(
        running=limits.concurrent_calls,
        running_each=limits.concurrent_calls,
        waiting=limits.queued_calls,
        waiting_each=limits.queued_calls,
    )


async def _flushed(exporter: SpanExporter, hurry: Hurry) -> None:
    """Export what waits; a target that takes nothing holds nobody up when there is hurry."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def flush() -> None:
        exporter.shutdown(SHUTDOWN)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(done.set_result, None)

    # not one of the loop's own threads, for whose ends it waits
    threading.Thread(target=flush, name="last-spans", daemon=True).start()
    await hurry.wait(done, spare=-LAST_SPANS)


def _close_audit(audit: AuditWriter) -> None:
    lost = audit.close(within=SHUTDOWN)
    if lost:
        _log.error("%d audit rows could not be written", lost)
