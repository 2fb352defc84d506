"""What is registered, from both places: the configuration file and the registry.

Never lets the registry change an entry of the file: the file's entry wins and is marked.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from thoughtgate.config.files import Loaded
from thoughtgate.config.values import domains_of, effects_of, servers_of
from thoughtgate.core.domains import DEFAULT_DOMAIN, Domain
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import Server
from thoughtgate.core.tools import Effect
from thoughtgate.registry.store import Registry
from thoughtgate.schema.limits import Profile


def all_servers(loaded: Loaded, registry: Registry) -> tuple[Server, ...]:
    """Return the servers by name; those of the configuration file win."""
    return _merged(registry.servers(), loaded)


def shown_servers(loaded: Loaded, registry: Registry) -> tuple[Server, ...]:
    """Return the same without the registry's secrets, fit to be shown; needs no key."""
    return _merged(registry.servers_without_secrets(), loaded)


def as_written(loaded: Loaded) -> Loaded:
    """Return the same with the variables of the file not filled in: fit to be shown."""
    return msgspec.structs.replace(loaded, settings=loaded.written)


def refuse_configured(loaded: Loaded, noun: Literal["server", "domain"], name: str) -> None:
    """Refuse to change an entry of the configuration file.

    Raises:
        ConfigError: It is one.
    """
    settings = loaded.settings
    if name in (settings.servers if noun == "server" else settings.domains):
        raise ConfigError(message=f"{noun} {name} comes from {loaded.file}; change it there")


def _merged(registered: tuple[Server, ...], loaded: Loaded) -> tuple[Server, ...]:
    found = {server.name: server for server in registered}
    found.update({server.name: server for server in servers_of(loaded.settings)})
    return tuple(found[name] for name in sorted(found))


def all_domains(loaded: Loaded, registry: Registry) -> tuple[Domain, ...]:
    """Return the domains by name; `default` shows everything when nobody defined it.

    Raises:
        ConfigError: One in the registry cannot be shown by this release.
    """
    found = {DEFAULT_DOMAIN: Domain(name=DEFAULT_DOMAIN, max_tools=None, source="built-in")}
    found.update({domain.name: _usable(domain) for domain in registry.domains()})
    found.update({domain.name: domain for domain in domains_of(loaded.settings)})
    return tuple(found[name] for name in sorted(found))


def domain_named(loaded: Loaded, registry: Registry, name: str) -> Domain:
    """Return one domain.

    Raises:
        ConfigError: There is none of this name.
    """
    for domain in all_domains(loaded, registry):
        if domain.name == name:
            return domain
    raise ConfigError(message=f"no domain is named {name[:80]}; see: thoughtgate domain list")


def server_named(loaded: Loaded, registry: Registry, name: str) -> Server:
    """Return one server, with its secrets.

    Raises:
        ConfigError: There is none of this name.
    """
    for server in all_servers(loaded, registry):
        if server.name == name:
            return server
    raise ConfigError(message=f"no server is named {name[:80]}; see: thoughtgate server list")


def _usable(domain: Domain) -> Domain:
    """Refuse a domain that a newer release, or somebody's hand, gave unknown limits."""
    if domain.limits not in set(Profile):
        raise ConfigError(
            message=f"domain {domain.name}: limits: {domain.limits[:80]} are unknown here; remove "
            f"it with: thoughtgate domain rm {domain.name}"
        )
    return domain


def all_effects(loaded: Loaded, registry: Registry, server: str) -> Mapping[str, Effect]:
    """Return the operator's effect classes of one server's tools; the file wins."""
    return {**registry.effects(server), **effects_of(loaded.settings).get(server, {})}
