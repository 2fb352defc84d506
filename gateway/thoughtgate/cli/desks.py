"""What commands ask of a registry: of the one on this machine, or of a running gateway's.

Never more than a choice: the two implementations stand in `local`, `local_tools` and `remote`.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from thoughtgate.cli.target import target
from thoughtgate.core.servers import Server
from thoughtgate.core.tools import Effect
from thoughtgate.surface.admin_values import (
    AuditEntry,
    AuditVerdict,
    DomainEntry,
    DomainPut,
    DomainTool,
    DomainTools,
    EffectSaid,
    Explained,
    ServerEntry,
)

Say = Callable[[str], None]


class Servers(Protocol):
    """The registered servers."""

    def listed(self, *, check: bool, say: Say) -> tuple[ServerEntry, ...]:
        """Return them by name; with `check` each is asked for its tools first."""
        ...

    def put(self, server: Server, *, replace: bool) -> None:
        """Register a server.

        Raises:
            ConfigError: There is one of this name, and it is not to be replaced.
        """
        ...

    def switch(self, name: str, *, enabled: bool) -> None:
        """Use a server, or not."""
        ...

    def remove(self, name: str) -> None:
        """Remove a server."""
        ...


class Domains(Protocol):
    """The domains."""

    def listed(self) -> tuple[DomainEntry, ...]:
        """Return them by name."""
        ...

    def shown(self, name: str) -> tuple[DomainEntry, tuple[DomainTool, ...]]:
        """Return one, and the tools that it shows."""
        ...

    def change(self, name: str, changing: Callable[[DomainPut], DomainPut]) -> DomainEntry:
        """Make a domain, or change the rules of the one that is there."""
        ...

    def remove(self, name: str) -> None:
        """Remove a domain."""
        ...


class Tools(Protocol):
    """The tools that the domains show."""

    def listed(self, domain: str, *, refresh: bool, say: Say) -> DomainTools:
        """Return what a domain shows; with `refresh` every server is asked again."""
        ...

    def shown(self, domain: str, name: str, say: Say) -> DomainTool:
        """Return one tool as clients see it."""
        ...

    def explained(self, domain: str, name: str, say: Say) -> Explained:
        """Return the path of a call of a tool."""
        ...

    def say_effect(self, server: str, tool: str, effect: Effect | None) -> EffectSaid:
        """Say what a tool does to the world."""
        ...


class Records(Protocol):
    """The audit log, and copies of the registry."""

    def rows(self, last: int, *, notes: bool) -> tuple[AuditEntry, ...]:
        """Return the newest rows, newest first."""
        ...

    def verified(self) -> AuditVerdict:
        """Return whether the log is whole."""
        ...

    def copied(self, to: Path) -> str:
        """Write a copy of the registry and return where it lies."""
        ...


def servers(chosen: Path | None) -> Servers:
    """Return the servers that a command is about."""
    return cast("Servers", _chosen("thoughtgate.cli.local", "Servers", chosen))


def domains(chosen: Path | None) -> Domains:
    """Return the domains that a command is about."""
    return cast("Domains", _chosen("thoughtgate.cli.local", "Domains", chosen))


def tools(chosen: Path | None) -> Tools:
    """Return the tools that a command is about."""
    return cast("Tools", _chosen("thoughtgate.cli.local_tools", "Tools", chosen))


def records(chosen: Path | None) -> Records:
    """Return the records that a command is about."""
    return cast("Records", _chosen("thoughtgate.cli.local", "Records", chosen))


def _chosen(local: str, noun: str, chosen: Path | None) -> object:
    """Return one of the two implementations; the other is not even imported."""
    far = target()
    if far is None:
        return getattr(import_module(local), f"Local{noun}")(chosen)
    line = import_module("thoughtgate.cli.remote_line").Line(far)
    return getattr(import_module("thoughtgate.cli.remote"), f"Remote{noun}")(line)
