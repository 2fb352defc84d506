"""Core values as operators are shown them, on the command line and by the admin API.

Never shows a secret: of headers and variables the names alone, of what may be one a mask.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from thoughtgate.app.entries import as_written, shown_servers
from thoughtgate.app.login_words import login_words
from thoughtgate.app.masks import MASK, secret_names, shown_command, shown_url, url_of
from thoughtgate.catalog import Catalog
from thoughtgate.config.files import Loaded
from thoughtgate.config.values import effects_of
from thoughtgate.core.domains import DEFAULT_DOMAIN, Domain, ToolDress
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import (
    BUILT_IN,
    GrpcTransport,
    HttpTransport,
    Server,
    StdioTransport,
    Transport,
    UpstreamStatus,
)
from thoughtgate.core.tools import Quarantined, Tool
from thoughtgate.offered import Shown
from thoughtgate.registry.audit import AuditRecord, AuditReport
from thoughtgate.registry.store import Registry
from thoughtgate.schema.limits import Profile
from thoughtgate.surface.admin_grpc import GrpcEntry
from thoughtgate.surface.admin_values import (
    AuditEntry,
    AuditVerdict,
    ChainVerdict,
    DomainEntry,
    DomainOffer,
    DomainPut,
    DomainTool,
    Dress,
    HeldTool,
    OfferKind,
    ServerEntry,
    ToolEntry,
)
from thoughtgate.telemetry.redact import is_secret_name
from thoughtgate.views import Entry, View


def server_entries(
    loaded: Loaded, registry: Registry, statuses: Mapping[str, UpstreamStatus]
) -> tuple[ServerEntry, ...]:
    """Return every server by name, with the tools that it showed last. Blocking; needs no key."""
    logins = login_words(loaded, registry)
    return tuple(
        msgspec.structs.replace(
            _server_entry(server, registry.known_tools(server.name), statuses.get(server.name)),
            login=logins.get(server.name, ""),
        )
        for server in shown_servers(as_written(loaded), registry)
    )


def _server_entry(
    server: Server, tools: Iterable[JsonObject], status: UpstreamStatus | None
) -> ServerEntry:
    transport = server.transport
    stands = "enabled" if server.enabled else "disabled"
    return ServerEntry(
        name=server.name,
        kind=_kind(transport),
        url=shown_url(url_of(transport)),
        grpc=_grpc(transport) if isinstance(transport, GrpcTransport) else None,
        sse=isinstance(transport, HttpTransport) and transport.sse,
        command=_command(server),
        cwd=(transport.cwd or "") if isinstance(transport, StdioTransport) else "",
        secrets=secret_names(transport),
        enabled=server.enabled,
        trusted=server.trusted,
        tags=tuple(sorted(server.tags)),
        era=server.era,
        results=server.results,
        nulls=server.nulls,
        start_timeout=server.start_timeout,
        call_timeout=server.call_timeout,
        sharing=server.sharing,
        idle_timeout=server.idle_timeout,
        source=server.source,
        state=status.state.value if status else stands,
        reason=status.reason if status else "",
        tools=tuple(str(tool.get("name")) for tool in tools),
    )


def _kind(transport: Transport) -> Literal["stdio", "http", "grpc", "local"]:
    match transport:
        case StdioTransport():
            return "stdio"
        case HttpTransport():
            return "http"
        case GrpcTransport():
            return "grpc"
        case _:
            return "local"


def _grpc(transport: GrpcTransport) -> GrpcEntry:
    return GrpcEntry(
        reflect=transport.reflect,
        descriptor_set=transport.descriptor_set,
        streaming=transport.streaming,
        bidi=transport.bidi,
        tls_ca=transport.tls.ca,
        tls_cert=transport.tls.cert,
        tls_key=transport.tls.key,
        tls_name=transport.tls.name,
    )


def _command(server: Server) -> tuple[str, ...]:
    transport = server.transport
    return tuple(shown_command(transport.argv)) if isinstance(transport, StdioTransport) else ()


def domain_entry(domain: Domain, view: View) -> DomainEntry:
    """Return one domain with the size of what it shows."""
    return DomainEntry(
        name=domain.name,
        endpoint="/mcp" if domain.name == DEFAULT_DOMAIN else f"/mcp/{domain.name}",
        revision=domain.revision,
        source=domain.source,
        rules=rules_of(domain),
        tools=len(view.entries),
        tokens=view.tokens,
        warnings=view.warnings,
    )


def rules_of(domain: Domain) -> DomainPut:
    """Return the rules of a domain as they may be put again."""
    return DomainPut(
        include=domain.include,
        exclude=domain.exclude,
        dress={key: _dress(dress) for key, dress in domain.dress.items()},
        instructions=domain.instructions,
        max_tools=domain.max_tools,
        max_tokens=domain.max_tokens,
        prefixed=domain.prefixed,
        limits=Profile(domain.limits),
        engine="react" if domain.engine == "react" else "",
    )


def _dress(dress: ToolDress) -> Dress:
    fixed = {k: MASK if is_secret_name(k) else v for k, v in dress.fixed.items()}
    return Dress(rename=dress.rename, description=dress.description, fixed=fixed)


def domain_tools(
    entries: Iterable[Entry], trusted: frozenset[str], *, whole: bool = False
) -> tuple[DomainTool, ...]:
    """Return tools as a domain shows them; with `whole` also the objects that clients get."""
    return tuple(
        DomainTool(
            name=entry.name,
            server=entry.tool.server,
            tool=entry.tool.name,
            effect=entry.tool.effect,
            digest=entry.tool.digest,
            tokens=entry.tokens,
            trusted=entry.tool.server in {*trusted, BUILT_IN},
            description=str(entry.shown.get("description") or ""),
            shown=dict(entry.shown) if whole else {},
        )
        for entry in entries
    )


def domain_offers(view: View) -> tuple[DomainOffer, ...]:
    """Return what a domain shows beside tools."""
    return (
        *_offers("prompt", view.prompts),
        *_offers("resource", view.resources),
        *_offers("template", view.templates),
    )


def _offers(kind: OfferKind, shown: Iterable[Shown]) -> Iterator[DomainOffer]:
    for one in shown:
        yield DomainOffer(
            kind=kind,
            name=one.name,
            server=one.offer.server,
            own=one.offer.name,
            description=str(one.shown.get("description") or ""),
        )


def held_tools(catalog: Catalog) -> tuple[HeldTool, ...]:
    """Return what is held back, and why."""
    return tuple(
        HeldTool(server=one.server, tool=one.name, rule=one.rule, reason=one.reason)
        for one in catalog.quarantined
    )


def tool_entries(catalog: Catalog) -> tuple[ToolEntry, ...]:
    """Return every tool by server and name, also those that are held back."""
    every = [*map(tool_entry, catalog.tools), *map(_held_entry, catalog.quarantined)]
    return tuple(sorted(every, key=lambda one: (one.server, one.tool)))


def tool_entry(tool: Tool) -> ToolEntry:
    """Return one admitted tool."""
    return ToolEntry(
        server=tool.server,
        tool=tool.name,
        description=str(tool.definition.get("description") or ""),
        effect=tool.effect,
        digest=tool.digest,
    )


def _held_entry(held: Quarantined) -> ToolEntry:
    return ToolEntry(server=held.server, tool=held.name, rule=held.rule, reason=held.reason)


def audit_entries(records: Sequence[AuditRecord]) -> tuple[AuditEntry, ...]:
    """Return rows of the audit log."""
    return tuple(
        AuditEntry(
            chain=r.chain,
            seq=r.seq,
            at_ns=r.at_ns,
            hash=r.hash,
            row=dict(r.row) if r.row else None,
        )
        for r in records
    )


def audit_verdict(report: AuditReport) -> AuditVerdict:
    """Return what a check of the audit log found."""
    return AuditVerdict(
        ok=report.ok,
        rows=report.rows,
        chains=tuple(
            ChainVerdict(writer=c.writer, rows=c.rows, ok=c.ok, broken_at=c.broken_at, why=c.why)
            for c in report.chains
        ),
    )


def effect_warnings(loaded: Loaded, registry: Registry, server: str, tool: str) -> tuple[str, ...]:
    """Say when what was said of a tool changes nothing: nobody has seen it, or the file wins."""
    if server == BUILT_IN:
        return ()
    servers = {entry.name for entry in shown_servers(as_written(loaded), registry)}
    if server not in servers:
        return (f"no server is named {server}; see: thoughtgate server list",)
    if tool in effects_of(loaded.settings).get(server, {}):
        return (f"{loaded.file} says what {server}/{tool} does, and wins; change it there",)
    tools = {definition.get("name") for definition in registry.known_tools(server)}
    if tool not in tools:
        return (f"{server} has shown no tool {tool} so far; see: thoughtgate tool list",)
    return ()
