"""The admin API's operations on servers.

Never takes a command: a stored one may be used or not, asked or removed, and nothing else.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from thoughtgate.app.admin import Desk, part_of
from thoughtgate.app.admin_merge import merged_server
from thoughtgate.app.entries import refuse_configured
from thoughtgate.app.paging import page
from thoughtgate.app.shown import server_entries
from thoughtgate.core.errors import Missing, UpstreamError
from thoughtgate.core.servers import Listing
from thoughtgate.registry.store import Registry
from thoughtgate.surface.admin import ADMIN
from thoughtgate.surface.admin_route import Ask
from thoughtgate.surface.admin_values import ServerChecked, ServerEntry, ServerList


async def list_servers(desk: Desk, ask: Ask) -> ServerList:
    """List the servers by name."""
    found, following = page(await _entries(desk), lambda one: (one.name,), **part_of(ask))
    return ServerList(servers=found, next=following)


async def get_server(desk: Desk, ask: Ask) -> ServerEntry:
    """Return one server."""
    return await _entry(desk, ask.path["server"])


async def put_server(desk: Desk, ask: Ask) -> ServerEntry:
    """Add or replace a server at a URL."""
    name = ask.path["server"]
    refuse_configured(desk.loaded, "server", name)

    def changing(registry: Registry) -> None:
        known = registry.server(name)
        ask.match.hold(exists=known is not None)
        registry.put_server(merged_server(name, known, ask.body), ADMIN)

    await desk.change(ask.match, changing)
    return await _entry(desk, name)


async def delete_server(desk: Desk, ask: Ask) -> ServerEntry:
    """Remove a server from the registry, and return what it was."""
    before = await _entry(desk, ask.path["server"])
    refuse_configured(desk.loaded, "server", before.name)
    await desk.change(ask.match, lambda registry: registry.remove_server(before.name))
    return before


async def enable_server(desk: Desk, ask: Ask) -> ServerEntry:
    """Use a server again, as it is stored."""
    return await _switch(desk, ask, enabled=True)


async def disable_server(desk: Desk, ask: Ask) -> ServerEntry:
    """Stop using a server."""
    return await _switch(desk, ask, enabled=False)


async def check_server(desk: Desk, ask: Ask) -> ServerChecked:
    """Ask a server for its tools now."""
    return await _asked(desk, ask, desk.app.upstreams.discover, desk.others.check)


async def restart_server(desk: Desk, ask: Ask) -> ServerChecked:
    """Open a server's connection anew and forget its failures."""
    return await _asked(desk, ask, desk.app.upstreams.restart, desk.others.restart)


async def _switch(desk: Desk, ask: Ask, *, enabled: bool) -> ServerEntry:
    name = (await _entry(desk, ask.path["server"])).name
    refuse_configured(desk.loaded, "server", name)
    await desk.change(ask.match, lambda registry: registry.set_enabled(name, enabled, ADMIN))
    return await _entry(desk, name)


async def _asked(
    desk: Desk,
    ask: Ask,
    asking: Callable[[str], Awaitable[Listing]],
    others: Callable[[str], Awaitable[None]],
) -> ServerChecked:
    name = (await _entry(desk, ask.path["server"])).name
    reason = ""
    tools: tuple[str, ...] = ()
    try:
        listing = await asking(name)
        tools = tuple(str(tool.get("name")) for tool in listing.tools)
    except UpstreamError as error:
        reason = error.message
    await desk.app.keeper.settle()
    await others(name)
    after = await _entry(desk, name)
    return ServerChecked(name=name, ok=not reason, state=after.state, reason=reason, tools=tools)


async def _entries(desk: Desk) -> tuple[ServerEntry, ...]:
    statuses = {one.server: one for one in desk.app.upstreams.statuses()}
    return await desk.read(partial(server_entries, statuses=statuses))


async def _entry(desk: Desk, name: str) -> ServerEntry:
    for entry in await _entries(desk):
        if entry.name == name:
            return entry
    raise Missing(message=f"no server is named {name[:80]}")
