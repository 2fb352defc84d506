"""The examination: the table of checks, and all of them at once within a bounded time.

Never changes anything, and starts servers only as discovery does: to ask for their tools.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from thoughtgate.app.doctor import clock, configuration, port, store, traces, versions
from thoughtgate.app.doctor.findings import Checked, Finding, Severity
from thoughtgate.app.doctor.logins import HeldLogins
from thoughtgate.app.doctor.servers import PATIENCE, Asked, Noting, check_server
from thoughtgate.app.doctor.tools import check_tools, part
from thoughtgate.app.entries import all_domains, all_servers
from thoughtgate.app.logins import read_logins
from thoughtgate.app.stores import opened_registry, registry_file
from thoughtgate.app.tracing import trace_variables
from thoughtgate.catalog import Part
from thoughtgate.config.files import Surveyed
from thoughtgate.config.settings import GatewaySettings
from thoughtgate.config.values import domains_of, servers_of
from thoughtgate.core.domains import DEFAULT_DOMAIN, Domain
from thoughtgate.core.errors import ConfigError, StoreError
from thoughtgate.core.servers import Server
from thoughtgate.registry.store import Registry
from thoughtgate.upstream.http_client import Limits, PooledClient
from thoughtgate.upstream.opening import Means
from thoughtgate.upstream.ports import Identity

BOUND = PATIENCE + 15.0
"""Seconds that any check may take; one that takes longer is a finding."""


class Examination:
    """What is looked at, and what was seen so far."""

    def __init__(self, surveyed: Surveyed, environ: Mapping[str, str]) -> None:
        self.surveyed = surveyed
        self.environ = environ
        self.began = clock.now()
        self.servers: tuple[Server, ...] = ()
        self.domains: tuple[Domain, ...] = ()
        self.logins = HeldLogins(())
        self.stored = Checked(name="registry", said="")
        self.asked: list[Asked] = []
        self.dates: Mapping[str, tuple[str, float]] = {}

    @property
    def gateway(self) -> GatewaySettings:
        """Return where the gateway will listen."""
        return self.surveyed.loaded.settings.gateway

    @property
    def registry(self) -> Path:
        """Return where the registry lies."""
        return registry_file(self.surveyed.loaded)

    @property
    def files(self) -> list[Path]:
        """Return the files that gateways write."""
        return [self.registry, self.registry.with_name("registry.db-wal")]

    def parts(self) -> list[Part]:
        """Return the tools that were offered."""
        return [part(one.listing, one.server) for one in self.asked if one.listing is not None]


Check = Callable[[Examination], Awaitable[Checked]]
"""One look at one thing; what it sees is all that it says."""


def _aside(look: Callable[[Examination], Checked]) -> Check:
    """Return a look that may block, as one that does not."""

    async def check(about: Examination) -> Checked:
        return await asyncio.to_thread(look, about)

    return check


def _ports(gateway: GatewaySettings) -> Checked:
    return port.check_port(gateway.host, gateway.port, gateway.grpc_port)


CHECKS: Mapping[str, Check] = {
    "configuration": _aside(lambda about: configuration.check_configuration(about.surveyed)),
    "registry": _aside(lambda about: about.stored),
    "disk": _aside(lambda about: store.check_disk(about.registry.parent)),
    "port": _aside(lambda about: _ports(about.gateway)),
    "traces": lambda about: traces.check_traces(
        trace_variables(about.surveyed.loaded, about.environ)
    ),
    "versions": _aside(lambda _: versions.check_versions()),
}
"""The checks that need nothing else."""

LATER: Mapping[str, Check] = {
    "clock": _aside(lambda about: clock.check_clock(about.began, about.dates, about.files)),
    "tools": _aside(lambda about: check_tools(about.parts(), about.domains)),
}
"""The checks of what the servers said."""


async def examined(
    surveyed: Surveyed, environ: Mapping[str, str], names: Sequence[str] = ()
) -> tuple[Checked, ...]:
    """Run the checks, or only those of `names`: names of checks and of servers.

    Raises:
        ConfigError: There is no check and no server of such a name.
    """
    about = Examination(surveyed, environ)
    await asyncio.to_thread(_fill, about)
    chosen = _chosen(about, names)
    client = Noting(PooledClient(limits=Limits(connect=PATIENCE)))
    about.dates = client.dates
    try:
        first, servers = await asyncio.gather(
            _all(CHECKS, about, chosen), _servers(about, client, chosen)
        )
    finally:
        await client.aclose()
    later = await _all(LATER, about, chosen)
    return (*first, *later, *servers)


async def _all(
    table: Mapping[str, Check], about: Examination, chosen: frozenset[str]
) -> list[Checked]:
    looks = (_bounded(name, look(about)) for name, look in table.items() if name in chosen)
    return await asyncio.gather(*looks)


def worst(checks: Sequence[Checked]) -> Severity:
    """Return how bad the worst finding is."""
    found = {check.severity for check in checks}
    return next((one for one in (Severity.PROBLEM, Severity.WARNING) if one in found), Severity.OK)


def _fill(about: Examination) -> None:
    """Learn the servers and domains, and how the registry stands that tells of them."""
    settings = about.surveyed.loaded.settings
    about.servers = servers_of(settings)
    about.domains = (Domain(name=DEFAULT_DOMAIN, max_tools=None), *domains_of(settings))
    about.stored = found = store.check_store(about.registry)
    # opening an older one would upgrade it
    older = any(finding.code == "store_older" for finding in found.findings)
    if older or found.severity is Severity.PROBLEM or not store.is_there(about.registry):
        return
    if fault := _learn(about):
        about.stored = replace(found, findings=(*found.findings, fault))


def _learn(about: Examination) -> Finding | None:
    """Read the registry; what keeps it from telling is returned."""
    loaded, path = about.surveyed.loaded, about.registry
    try:
        with opened_registry(loaded) as registry:
            return _learned(about, registry)
    except StoreError as error:
        return store.judged_error(error, path)
    except ConfigError as error:
        return Finding(
            code="store_sealed",
            where=str(path),
            what=error.message,
            mend='write key = "file" under [gateway]',
        )


def _learned(about: Examination, registry: Registry) -> Finding | None:
    loaded = about.surveyed.loaded
    about.servers = all_servers(loaded, registry)
    about.logins = HeldLogins(read_logins(about.servers, registry))
    try:
        about.domains = all_domains(loaded, registry)
    except ConfigError as error:
        what, _, mend = error.message.partition("; ")
        return Finding(code="config_invalid", where=str(about.registry), what=what, mend=mend)
    return None


def _chosen(about: Examination, names: Sequence[str]) -> frozenset[str]:
    known = {*CHECKS, *LATER, *(server.name for server in about.servers)}
    left_out = about.surveyed.loaded.written.servers.keys() - known
    for name in names:
        if name not in known | left_out:
            raise ConfigError(
                message=f"no check and no server is named {name[:60]}; "
                f"the checks are {', '.join([*CHECKS, *LATER])}"
            )
    chosen = frozenset(names or known)
    return chosen | {"configuration"} if chosen & left_out else chosen


async def _servers(
    about: Examination, client: Noting, chosen: frozenset[str]
) -> tuple[Checked, ...]:
    means = Means(
        client=client,
        environ=about.environ,
        identity=Identity(name="thoughtgate", version=metadata.version("thoughtgate")),
        max_result=about.surveyed.loaded.settings.limits.result_bytes,
    )

    async def look(server: Server) -> Checked:
        if not server.enabled:
            return Checked(name=f"server {server.name}", said="disabled")
        checked, asked = await check_server(server, means, client, about.logins)
        about.asked.append(asked)
        return checked

    wanted = [one for one in about.servers if one.name in chosen]
    looks = (_bounded(f"server {server.name}", look(server)) for server in wanted)
    return tuple(await asyncio.gather(*looks))


async def _bounded(name: str, look: Awaitable[Checked]) -> Checked:
    try:
        async with asyncio.timeout(BOUND):
            return await look
    except TimeoutError:
        what = f"looking at it took longer than {BOUND:g} s"
    except (OSError, ValueError) as error:  # such as a folder that nobody may look into
        what = f"it cannot be looked at: {error}"
    finding = Finding(
        code="check_unfinished",
        where=name,
        what=what,
        mend=f"look at it alone: thoughtgate doctor {name.rpartition(' ')[2]}",
    )
    return Checked(name=name, said="not finished", findings=(finding,))
