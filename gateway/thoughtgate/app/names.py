"""The names of domains, servers and tools, as configuration and registry have them.

Never makes a registry and never starts a server.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from thoughtgate.app.entries import all_domains, shown_servers
from thoughtgate.app.offline import offline_catalog, offline_view
from thoughtgate.app.stores import opened_registry, registry_file
from thoughtgate.config.files import Loaded, survey
from thoughtgate.core.domains import DEFAULT_DOMAIN
from thoughtgate.registry.store import Registry

T = TypeVar("T")


def domain_names(file: Path | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of all domains."""

    def names(loaded: Loaded, registry: Registry) -> tuple[str, ...]:
        return tuple(domain.name for domain in all_domains(loaded, registry))

    loaded = survey(file, environ).loaded
    found = (DEFAULT_DOMAIN, *loaded.settings.domains)
    return _from_registry(loaded, names, found)


def server_names(file: Path | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of all servers."""

    def names(loaded: Loaded, registry: Registry) -> tuple[str, ...]:
        return tuple(server.name for server in shown_servers(loaded, registry))

    loaded = survey(file, environ).loaded
    return _from_registry(loaded, names, tuple(loaded.settings.servers))


def tool_names(file: Path | None, environ: Mapping[str, str], domain: str) -> tuple[str, ...]:
    """Return the names of the tools that a domain shows."""

    def names(loaded: Loaded, registry: Registry) -> tuple[str, ...]:
        chosen = [one for one in all_domains(loaded, registry) if one.name == domain]
        catalog = offline_catalog(loaded, registry)
        return tuple(entry.name for one in chosen for entry in offline_view(catalog, one).entries)

    return _from_registry(survey(file, environ).loaded, names, ())


def tool_paths(file: Path | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return each tool as SERVER/TOOL."""

    def names(loaded: Loaded, registry: Registry) -> tuple[str, ...]:
        return tuple("/".join(tool.key) for tool in offline_catalog(loaded, registry).tools)

    return _from_registry(survey(file, environ).loaded, names, ())


def _from_registry(loaded: Loaded, look: Callable[[Loaded, Registry], T], without: T) -> T:
    """Return what a look at the registry gives; `without` when there is no registry yet."""
    if not registry_file(loaded).exists():
        return without
    with opened_registry(loaded) as registry:
        return look(loaded, registry)
