"""The admin API's operations on domains and on what they show.

Never changes a domain that comes from the configuration file.
"""

from thoughtgate.app.admin import Desk, part_of
from thoughtgate.app.admin_merge import merged_domain
from thoughtgate.app.entries import all_domains, refuse_configured
from thoughtgate.app.paging import page, page_in_order
from thoughtgate.app.shown import domain_entry, domain_offers, domain_tools, held_tools
from thoughtgate.core.domains import Domain
from thoughtgate.core.errors import ConfigError, Missing
from thoughtgate.registry.store import Registry
from thoughtgate.surface.admin import ADMIN
from thoughtgate.surface.admin_route import Ask
from thoughtgate.surface.admin_values import (
    DomainEntry,
    DomainList,
    DomainOffers,
    DomainTool,
    DomainTools,
    Explained,
    StageEntry,
)


async def list_domains(desk: Desk, ask: Ask) -> DomainList:
    """List the domains by name."""
    every = await desk.read(all_domains)
    found, following = page(every, lambda one: (one.name,), **part_of(ask))
    return DomainList(domains=tuple(_entry(desk, one) for one in found), next=following)


async def get_domain(desk: Desk, ask: Ask) -> DomainEntry:
    """Return one domain."""
    return _entry(desk, await _domain(desk, ask.path["domain"]))


async def put_domain(desk: Desk, ask: Ask) -> DomainEntry:
    """Make or replace a domain."""
    name = ask.path["domain"]
    refuse_configured(desk.loaded, "domain", name)

    def changing(registry: Registry) -> None:
        known = {one.name: one for one in all_domains(desk.loaded, registry)}.get(name)
        ask.match.hold(exists=known is not None)
        registry.put_domain(merged_domain(name, known, ask.body), ADMIN)

    await desk.change(ask.match, changing)
    return _entry(desk, await _domain(desk, name))


async def delete_domain(desk: Desk, ask: Ask) -> DomainEntry:
    """Remove a domain from the registry, and return what it was."""
    before = await _domain(desk, ask.path["domain"])
    refuse_configured(desk.loaded, "domain", before.name)
    if before.source == "built-in":
        raise ConfigError(message=f"domain {before.name} is built in; put rules of your own")
    entry = _entry(desk, before)
    await desk.change(ask.match, lambda registry: registry.remove_domain(before.name, ADMIN))
    return entry


async def list_domain_tools(desk: Desk, ask: Ask) -> DomainTools:
    """List what a domain shows, in the order of its list."""
    domain = await _domain(desk, ask.path["domain"])
    view = desk.app.gateway.view(domain.name)
    found, following = page_in_order(view.entries, lambda one: (one.name,), **part_of(ask))
    return DomainTools(
        domain=domain.name,
        tokens=view.tokens,
        tools=domain_tools(found, _trusted(desk)),
        warnings=view.warnings,
        held=held_tools(desk.app.gateway.catalog),
        next=following,
    )


async def list_domain_offers(desk: Desk, ask: Ask) -> DomainOffers:
    """List what a domain shows beside tools, in the order of its lists."""
    domain = await _domain(desk, ask.path["domain"])
    every = domain_offers(desk.app.gateway.view(domain.name))
    found, following = page_in_order(every, lambda one: (one.kind, one.name), **part_of(ask))
    return DomainOffers(domain=domain.name, offers=found, next=following)


async def get_domain_tool(desk: Desk, ask: Ask) -> DomainTool:
    """Return one tool as clients of a domain see it."""
    domain = await _domain(desk, ask.path["domain"])
    entry = desk.app.gateway.view(domain.name).table.get(ask.path["tool"])
    if entry is None:
        name = ask.path["tool"][:120]
        raise Missing(
            message=f"domain {domain.name} has no tool {name}; see: thoughtgate tool list"
        )
    return domain_tools([entry], _trusted(desk), whole=True)[0]


async def explain_tool(desk: Desk, ask: Ask) -> Explained:
    """Tell which stages a call of a tool passes, and what each will do."""
    domain = await _domain(desk, ask.path["domain"])
    stages = desk.app.gateway.explain(domain.name, ask.path["tool"])
    return Explained(
        domain=domain.name,
        tool=ask.path["tool"],
        stages=tuple(StageEntry(stage=stage, does=does) for stage, does in stages),
    )


def _trusted(desk: Desk) -> frozenset[str]:
    return frozenset(server.name for server in desk.app.keeper.servers if server.trusted)


def _entry(desk: Desk, domain: Domain) -> DomainEntry:
    return domain_entry(domain, desk.app.gateway.view(domain.name))


async def _domain(desk: Desk, name: str) -> Domain:
    for domain in await desk.read(all_domains):
        if domain.name == name:
            return domain
    raise Missing(message=f"no domain is named {name[:80]}; see: thoughtgate domain list")
