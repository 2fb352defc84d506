"""What an operator put over the network, together with what is stored, as core values.

Never lets a stored secret follow to another place, and never takes a command.
"""

from dataclasses import replace

from thoughtgate.app.masks import MASK, bare_url, shown_url
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.errors import ConfigError, Refused
from thoughtgate.core.servers import BUILT_IN, HttpTransport, Server
from thoughtgate.surface.admin_commands import refusal_of_command
from thoughtgate.surface.admin_values import DomainPut, Dress, ServerPut
from thoughtgate.telemetry.redact import is_secret_name


def merged_server(name: str, known: Server | None, given: ServerPut) -> Server:
    """Return the server that is to be stored.

    Raises:
        Refused: The name is ours, or the stored server is a command.
        ConfigError: A header is to be kept that is not stored, or for another URL.
    """
    if name == BUILT_IN:
        raise Refused(message=f"the name {name} is the gateway's own; choose another")
    stored = known.transport if known is not None else None
    if stored is not None and not isinstance(stored, HttpTransport):
        raise refusal_of_command()
    return replace(
        known or Server(name=name, transport=HttpTransport(url=given.url)),
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


def _transport(stored: HttpTransport | None, given: ServerPut) -> HttpTransport:
    same = stored is not None and given.url in {
        stored.url,
        shown_url(stored.url),
        bare_url(stored.url),
    }
    if not same and f"={MASK}" in given.url:
        raise ConfigError(
            message=f"the URL holds {MASK}, which stands for what is stored elsewhere"
        )
    known = stored.headers if stored is not None and same else {}
    headers: dict[str, str] = {}
    for name, value in given.headers.items():
        if value is None and name not in known:
            raise ConfigError(
                message=f"header {name[:80]}: no value is stored for this URL; send one"
            )
        headers[name] = known[name] if value is None else value
    url = stored.url if stored is not None and same else given.url
    return HttpTransport(url=url, headers=headers, sse=given.sse)


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
