"""What an operator put over the network, together with what is stored, as core values.

Never lets a stored secret follow to another place, and never takes a command.
"""

from dataclasses import replace

from thoughtgate.app.masks import MASK, bare_url, shown_url, url_of
from thoughtgate.config.grpc_servers import NOT_OF_GRPC, files_of, transport_at, usable
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.errors import ConfigError, Refused
from thoughtgate.core.servers import (
    BUILT_IN,
    GrpcTransport,
    HttpTransport,
    Server,
    Sharing,
    StdioTransport,
    Transport,
)
from thoughtgate.protos.urls import is_grpc
from thoughtgate.surface.admin_commands import refusal_of_command
from thoughtgate.surface.admin_grpc import GrpcPut
from thoughtgate.surface.admin_values import DomainPut, Dress, ServerPut
from thoughtgate.telemetry.redact import is_secret_name


def merged_server(name: str, known: Server | None, given: ServerPut) -> Server:
    """Return the server that is to be stored.

    Raises:
        Refused: The name is ours, or the stored server is a command.
        ConfigError: A header is to be kept that is not stored, or for another URL; or what is given
            does not fit together.
    """
    if name == BUILT_IN:
        raise Refused(message=f"the name {name} is the gateway's own; choose another")
    stored = known.transport if known is not None else None
    if isinstance(stored, StdioTransport):
        raise refusal_of_command()
    return replace(
        known or Server(name=name, transport=transport_at(given.url)),
        transport=_transport(stored, given),
        enabled=given.enabled,
        trusted=given.trusted,
        tags=frozenset(given.tags),
        era=given.era,
        results=given.results,
        nulls=given.nulls,
        start_timeout=given.start_timeout,
        call_timeout=given.call_timeout,
        sharing=given.sharing,
        idle_timeout=given.idle_timeout,
    )


def _transport(stored: Transport | None, given: ServerPut) -> Transport:
    """Return what is given, with what is kept of the server that is stored at the same URL."""
    known_url = url_of(stored) if stored is not None else ""
    same = bool(known_url) and given.url in {known_url, shown_url(known_url), bare_url(known_url)}
    kept = stored if same else None
    url = known_url if same else given.url
    headers = _headers(kept, given)
    if is_grpc(url):
        return _grpc(url, headers, stored, given)
    if given.grpc is not None:
        raise ConfigError(message="grpc is for a URL that begins with grpc:// or grpcs://")
    return HttpTransport(url=url, headers=headers, sse=given.sse)


def _headers(kept: Transport | None, given: ServerPut) -> dict[str, str]:
    if kept is None and f"={MASK}" in given.url:
        raise ConfigError(
            message=f"the URL holds {MASK}, which stands for what is stored elsewhere"
        )
    known = kept.headers if isinstance(kept, HttpTransport | GrpcTransport) else {}
    headers: dict[str, str] = {}
    for spelled, value in given.headers.items():
        name = spelled.lower() if is_grpc(given.url) and spelled.lower() in known else spelled
        if value is None and name not in known:
            raise ConfigError(
                message=f"header {name[:80]}: no value is stored for this URL; send one"
            )
        headers[name] = known[name] if value is None else value
    return headers


def _grpc(
    url: str, headers: dict[str, str], stored: Transport | None, given: ServerPut
) -> GrpcTransport:
    """Return a gRPC server; the files of the stored one never follow it to another URL."""
    if stored is not None and files_of(stored) and url != url_of(stored):
        raise Refused(
            message="the stored server uses files of the gateway's machine, which never follow to "
            "another URL; use the local command line"
        )
    wrong = {"era": given.era is not None, "sse": given.sse, "sharing": _shares(given.sharing)}
    for key in (key for key, is_given in wrong.items() if is_given):
        raise ConfigError(message=f"{key}: {NOT_OF_GRPC[key]}")
    before = stored if isinstance(stored, GrpcTransport) and stored.url == url else None
    asked = given.grpc or GrpcPut()
    bare = before or GrpcTransport(url=url)
    return usable(
        replace(
            bare,
            headers=headers,
            reflect=asked.reflect,
            streaming=asked.streaming,
            bidi=asked.bidi,
            tls=replace(bare.tls, name=asked.tls_name),
        )
    )


def _shares(sharing: Sharing | None) -> bool:
    return sharing not in (None, Sharing.SHARED)


def merged_domain(name: str, known: Domain | None, given: DomainPut) -> Domain:
    """Return the domain that is to be stored.

    Raises:
        ConfigError: A fixed value is to be kept that is not stored.
    """
    stored = known.dress if known is not None else {}
    return replace(
        known or Domain(name=name),
        include=given.include,
        exclude=given.exclude,
        dress={key: _dress(key, stored.get(key), dress) for key, dress in given.dress.items()},
        instructions=given.instructions,
        max_tools=given.max_tools,
        max_tokens=given.max_tokens,
        prefixed=given.prefixed,
        limits=given.limits.value,
        engine=given.engine,
        source="registry",
    )


def _dress(key: str, stored: ToolDress | None, given: Dress) -> ToolDress:
    known = dict(stored.fixed) if stored is not None else {}
    fixed = dict(given.fixed)
    for name, value in fixed.items():
        if value == MASK and is_secret_name(name):
            if name not in known:
                raise ConfigError(message=f"{key}: no value is stored for {name[:80]}; send one")
            fixed[name] = known[name]
    if "/" not in key:
        raise ConfigError(message=f"dress: {key[:80]} is no SERVER/TOOL")
    return ToolDress(rename=given.rename, description=given.description, fixed=fixed)
