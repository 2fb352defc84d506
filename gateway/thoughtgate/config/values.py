"""Core values from settings: servers, effects and domains marked as coming from a file.

Never looks anything up; what a setting means is decided here, once.
"""

import os
from collections.abc import Mapping

from thoughtgate.config.grpc_servers import lowered
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.core.domains import Domain, ToolDress
from thoughtgate.core.servers import (
    Era,
    GrpcTransport,
    HttpTransport,
    NullPolicy,
    ResultPolicy,
    Server,
    Sharing,
    StdioTransport,
    Streaming,
    Tls,
    Transport,
)
from thoughtgate.core.tools import Effect
from thoughtgate.protos.urls import is_grpc


def servers_of(settings: Settings) -> tuple[Server, ...]:
    """Return the configured servers as core values, marked as coming from the configuration."""
    return tuple(_server(name, given) for name, given in settings.servers.items())


def effects_of(settings: Settings) -> Mapping[str, Mapping[str, Effect]]:
    """Return the operator's effect classes, by server and the server's own tool name."""
    return {
        name: {tool: Effect(t.effect) for tool, t in given.tools.items() if t.effect}
        for name, given in settings.servers.items()
    }


def domains_of(settings: Settings) -> tuple[Domain, ...]:
    """Return the configured domains as core values, marked as coming from the configuration."""
    return tuple(
        Domain(
            name=name,
            include=given.include,
            exclude=given.exclude,
            dress={
                key: ToolDress(rename=d.rename, description=d.description, fixed=d.fixed)
                for key, d in given.tools.items()
            },
            instructions=given.instructions,
            max_tools=given.max_tools,
            max_tokens=given.max_tokens,
            prefixed=given.prefixed,
            limits=given.limits,
            engine=given.engine,
            source="config",
        )
        for name, given in settings.domains.items()
    )


def grpc_of(given: ServerSettings) -> GrpcTransport:
    """Return what the settings say of a gRPC server, right or not."""
    tls = Tls(ca=given.tls_ca, cert=given.tls_cert, key=given.tls_key, name=given.tls_name)
    return GrpcTransport(
        url=given.url,
        headers=given.headers,
        reflect=given.reflect,
        descriptor_set=given.descriptor_set,
        streaming=Streaming(given.streaming),
        bidi=given.bidi,
        tls=tls,
    )


def _server(name: str, given: ServerSettings) -> Server:
    transport: Transport
    if given.command:
        argv = (os.path.expanduser(given.command[0]), *given.command[1:])
        transport = StdioTransport(argv=argv, env=given.env, cwd=given.cwd)
    elif is_grpc(given.url):
        transport = lowered(grpc_of(given))
    else:
        transport = HttpTransport(url=given.url, headers=given.headers, sse=given.sse)
    return Server(
        name=name,
        transport=transport,
        enabled=given.enabled,
        trusted=given.trusted,
        tags=frozenset(given.tags),
        era=Era(given.era) if given.era else None,
        results=ResultPolicy(given.results),
        nulls=NullPolicy(given.nulls),
        start_timeout=given.start_timeout,
        call_timeout=given.call_timeout,
        sharing=Sharing(given.sharing) if given.sharing else None,
        idle_timeout=given.idle_timeout,
        source="config",
    )
