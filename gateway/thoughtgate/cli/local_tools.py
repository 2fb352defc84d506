"""Tools as a gateway made for one command finds them, by the registry on this machine.

Never calls a tool.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from thoughtgate.app.compose import App, opened
from thoughtgate.app.requests import view_of
from thoughtgate.app.shown import domain_tools, effect_warnings, held_tools
from thoughtgate.app.stores import opened_registry
from thoughtgate.cli.desks import Say
from thoughtgate.cli.settings import loaded_or_fail
from thoughtgate.core.errors import ConfigError
from thoughtgate.core.tools import Effect
from thoughtgate.surface.admin_values import (
    DomainTool,
    DomainTools,
    EffectSaid,
    Explained,
    StageEntry,
)


class LocalTools:
    """The tools that the domains of this machine's registry show."""

    def __init__(self, chosen: Path | None) -> None:
        self._loaded = loaded_or_fail(chosen)

    def listed(self, domain: str, *, refresh: bool, say: Say) -> DomainTools:
        """Return what a domain shows; servers that nobody has seen yet are asked first."""
        return asyncio.run(self._listed(domain, refresh, say))

    def shown(self, domain: str, name: str, say: Say) -> DomainTool:
        """Return one tool as clients see it."""
        return asyncio.run(self._shown(domain, name, say))

    def explained(self, domain: str, name: str, say: Say) -> Explained:
        """Return the path of a call of a tool."""
        return asyncio.run(self._explained(domain, name, say))

    def say_effect(self, server: str, tool: str, effect: Effect | None) -> EffectSaid:
        """Say what a tool does to the world."""
        with opened_registry(self._loaded) as store:
            store.set_effect(server, tool, effect)
            warnings = effect_warnings(self._loaded, store, server, tool)
        return EffectSaid(server=server, tool=tool, effect=effect, warnings=warnings)

    async def _listed(self, domain: str, refresh: bool, say: Say) -> DomainTools:
        async with self._opened(domain, say, refresh=refresh) as app:
            view = app.gateway.view(domain)
            return DomainTools(
                domain=domain,
                tokens=view.tokens,
                tools=domain_tools(view.entries, _trusted(app)),
                warnings=view.warnings,
                held=held_tools(app.gateway.catalog),
            )

    async def _shown(self, domain: str, name: str, say: Say) -> DomainTool:
        async with self._opened(domain, say, wanted=name) as app:
            entry = app.gateway.view(domain).table.get(name)
            if entry is None:
                raise ConfigError(
                    message=f"domain {domain} has no tool {name}; see: thoughtgate tool list"
                )
            return domain_tools([entry], _trusted(app), whole=True)[0]

    async def _explained(self, domain: str, name: str, say: Say) -> Explained:
        async with self._opened(domain, say, wanted=name) as app:
            stages = app.gateway.explain(domain, name)
            return Explained(
                domain=domain,
                tool=name,
                stages=tuple(StageEntry(stage=stage, does=does) for stage, does in stages),
            )

    @asynccontextmanager
    async def _opened(
        self, domain: str, say: Say, *, refresh: bool = False, wanted: str = ""
    ) -> AsyncIterator[App]:
        """Open a gateway that knows the tools of the domain, or at least the one that is wanted."""
        async with opened(self._loaded, os.environ) as app:
            view_of(app.gateway, domain)
            if wanted:
                await app.ensure_shown(domain, wanted, on_progress=say)
            else:
                await app.ensure_listed(on_progress=say, refresh=refresh)
            yield app


def _trusted(app: App) -> frozenset[str]:
    return frozenset(server.name for server in app.keeper.servers if server.trusted)
