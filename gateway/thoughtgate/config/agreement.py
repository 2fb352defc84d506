"""What entries of a configuration may not say together, or not at all.

Never looks at types: what comes here has been converted.
"""

import re
from collections.abc import Collection, Iterator, Mapping

import msgspec

from thoughtgate.config.faults import Fault
from thoughtgate.config.grpc_servers import NOT_OF_GRPC, misfits, url_fault
from thoughtgate.config.settings import (
    DomainSettings,
    GatewaySettings,
    ServerSettings,
    Settings,
)
from thoughtgate.config.values import grpc_of
from thoughtgate.core.hosts import is_loopback
from thoughtgate.core.json import canonical
from thoughtgate.core.servers import BUILT_IN
from thoughtgate.protos.urls import is_grpc

_HOST = re.compile(r"[^\s:/@\[\]]+|[0-9A-Fa-f:.]+")
_GRPC_KEYS = (
    "reflect", "descriptor_set", "streaming", "bidi", "tls_ca", "tls_cert", "tls_key", "tls_name",
)  # fmt: skip
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/@]+")


def agree(settings: Settings, models: Collection[str]) -> tuple[Settings, tuple[Fault, ...]]:
    """Return the settings without what contradicts itself, and what that is.

    `models` are the names of all models that the file speaks of, usable or not.
    """
    front = tuple(_front(settings.gateway))
    servers = {name: tuple(_server(name, s)) for name, s in settings.servers.items()}
    domains = {name: tuple(_domain(name, d)) for name, d in settings.domains.items()}
    model = settings.default_model
    unknown = tuple(_model(model, models))
    kept = msgspec.structs.replace(
        settings,
        gateway=GatewaySettings() if front else settings.gateway,
        servers={name: s for name, s in settings.servers.items() if not servers[name]},
        domains={name: d for name, d in settings.domains.items() if not domains[name]},
        default_model=model if model in settings.models else "",
    )
    return kept, (*front, *_flat(servers), *_flat(domains), *unknown)


def _flat(found: Mapping[str, tuple[Fault, ...]]) -> Iterator[Fault]:
    return (fault for faults in found.values() for fault in faults)


def _front(gateway: GatewaySettings) -> Iterator[Fault]:
    """Refuse a host or an origin that no request could ever bring: it would look like a fault."""
    if not is_loopback(gateway.host):
        yield Fault(
            key="gateway.host",
            text=f"{gateway.host} is not a loopback address; "
            "a gateway without authentication listens on 127.0.0.1 or ::1 only",
        )
    for host in gateway.allowed_hosts:
        if _HOST.fullmatch(host) is None:
            yield Fault(
                key="gateway.allowed_hosts",
                text=f"{host} is no host name; write it without scheme, port and path",
            )
    for origin in gateway.allowed_origins:
        if _ORIGIN.fullmatch(origin) is None:
            yield Fault(
                key="gateway.allowed_origins",
                text=f"{origin} is no origin; "
                "write scheme://host or scheme://host:port, without a path",
            )


def _server(name: str, server: ServerSettings) -> Iterator[Fault]:
    at = f"servers.{name}"
    if name == BUILT_IN:
        yield Fault(key=at, text="this name is the gateway's own")
    if bool(server.command) == bool(server.url):
        yield Fault(key=at, text="give either command or url, not both or none")
    elif is_grpc(server.url):
        yield from (Fault(key=f"{at}.{key}", text=text) for key, text in _grpc(server))
    elif server.url and (fault := url_fault(server.url)):
        yield Fault(key=f"{at}.url", text=fault)
    else:
        for key in _of_grpc(server):
            text = "is for a gRPC server; its url begins with grpc:// or grpcs://"
            yield Fault(key=f"{at}.{key}", text=text)


def _grpc(server: ServerSettings) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a gRPC server: the key, and why."""
    yield from ((misfit.key, misfit.text) for misfit in misfits(grpc_of(server)))
    given = {
        "era": server.era is not None,
        "sse": server.sse,
        "sharing": server.sharing not in (None, "shared"),
        "env": bool(server.env),
        "cwd": server.cwd is not None,
    }
    yield from ((key, why) for key, why in NOT_OF_GRPC.items() if given[key])


def _of_grpc(server: ServerSettings) -> Iterator[str]:
    """Yield the keys that are set and mean nothing but for a gRPC server."""
    usual = ServerSettings()
    return (key for key in _GRPC_KEYS if getattr(server, key) != getattr(usual, key))


def _domain(name: str, domain: DomainSettings) -> Iterator[Fault]:
    for key, dress in domain.tools.items():
        try:
            canonical(dress.fixed)
        except (TypeError, ValueError):
            yield Fault(
                key=f"domains.{name}.tools.{key}.fixed",
                text="holds what JSON cannot hold, such as nan or a date; write it as text",
            )


def _model(name: str, models: Collection[str]) -> Iterator[Fault]:
    if name and name not in models:
        yield Fault(key="default_model", text=f"no model is named {name}")
