"""Servers, domains and records of the registry on this machine.

Never starts a server unless it is to be checked; entries of the configuration file stay as they
are.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from thoughtgate.app.admin_merge import merged_domain
from thoughtgate.app.entries import all_domains, domain_named, refuse_configured
from thoughtgate.app.offline import offline_catalog, offline_view
from thoughtgate.app.shown import (
    audit_entries,
    audit_verdict,
    domain_entry,
    domain_tools,
    rules_of,
    server_entries,
)
from thoughtgate.app.stores import opened_registry
from thoughtgate.cli.desks import Say
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.config.files import Loaded
from thoughtgate.core.domains import Domain
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.servers import Server, UpstreamStatus
from thoughtgate.registry.audit import latest, verify
from thoughtgate.registry.store import Registry
from thoughtgate.surface.admin_values import (
    AuditEntry,
    AuditVerdict,
    DomainEntry,
    DomainPut,
    DomainTool,
    ServerEntry,
)


class LocalServers:
    """The servers in the registry and the configuration file."""

    def __init__(self, chosen: Path | None) -> None:
        self._loaded = loaded_or_fail(chosen)

    def listed(self, *, check: bool, say: Say) -> tuple[ServerEntry, ...]:
        """Return them by name; with `check` each is connected to first."""
        statuses = _probed(self._loaded, say) if check else {}
        with opened_registry(self._loaded) as store:
            return server_entries(self._loaded, store, statuses)

    def put(self, server: Server, *, replace: bool) -> None:
        """Register a server, a command too."""
        refuse_configured(self._loaded, "server", server.name)

        def putting(store: Registry) -> None:
            if not replace and server.name in store.server_names():
                raise ConfigError(
                    message=f"server {server.name} is registered already; add --replace"
                )
            store.put_server(server)

        with opened_registry(self._loaded) as store:
            store.decide(putting)

    def switch(self, name: str, *, enabled: bool) -> None:
        """Use a server, or not."""
        refuse_configured(self._loaded, "server", name)
        with opened_registry(self._loaded) as store:
            store.set_enabled(name, enabled)

    def remove(self, name: str) -> None:
        """Remove a server."""
        refuse_configured(self._loaded, "server", name)
        with opened_registry(self._loaded) as store:
            store.remove_server(name)


class LocalDomains:
    """The domains, and what they show by what the registry remembers."""

    def __init__(self, chosen: Path | None) -> None:
        self._loaded = loaded_or_fail(chosen)

    def listed(self) -> tuple[DomainEntry, ...]:
        """Return them by name."""
        with opened_registry(self._loaded) as store:
            catalog = offline_catalog(self._loaded, store)
            return tuple(
                domain_entry(one, offline_view(catalog, one))
                for one in all_domains(self._loaded, store)
            )

    def shown(self, name: str) -> tuple[DomainEntry, tuple[DomainTool, ...]]:
        """Return one, and the tools that it shows."""
        with opened_registry(self._loaded) as store:
            domain = domain_named(self._loaded, store, name)
            view = offline_view(offline_catalog(self._loaded, store), domain)
            return domain_entry(domain, view), domain_tools(view.entries, frozenset())

    def change(self, name: str, changing: Callable[[DomainPut], DomainPut]) -> DomainEntry:
        """Make a domain, or change the rules of the one that is there."""
        refuse_configured(self._loaded, "domain", name)

        def putting(store: Registry) -> Domain:
            known = {one.name: one for one in all_domains(self._loaded, store)}.get(name)
            rules = changing(rules_of(known or Domain(name=name)))
            return store.put_domain(merged_domain(name, known, rules))

        with opened_registry(self._loaded) as store:
            stored = store.decide(putting)
            view = offline_view(offline_catalog(self._loaded, store), stored)
            return domain_entry(stored, view)

    def remove(self, name: str) -> None:
        """Remove a domain."""
        refuse_configured(self._loaded, "domain", name)
        with opened_registry(self._loaded) as store:
            store.remove_domain(name)


class LocalRecords:
    """The audit log in the registry, and copies of that."""

    def __init__(self, chosen: Path | None) -> None:
        self._loaded = loaded_or_fail(chosen)

    def rows(self, last: int, *, notes: bool) -> tuple[AuditEntry, ...]:
        """Return the newest rows, newest first."""
        with opened_registry(self._loaded) as store:
            return audit_entries(latest(store, limit=last, notes=notes))

    def verified(self) -> AuditVerdict:
        """Return whether the log is whole."""
        with opened_registry(self._loaded) as store:
            return audit_verdict(verify(store))

    def copied(self, to: Path) -> str:
        """Write a copy of the registry to a new file."""
        with opened_registry(self._loaded) as store:
            store.backup(to)
        return str(to)


def _probed(loaded: Loaded, say: Say) -> Mapping[str, UpstreamStatus]:
    """Connect to the servers; what that takes is imported only now."""
    states: Mapping[str, UpstreamStatus] = import_module("thoughtgate.app.probe").probed(
        loaded, say
    )
    return states
