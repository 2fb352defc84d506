"""The admin API's operations on the tools of the catalogue.

Never changes a definition: it is the server's own.
"""

from thoughtgate.app.admin import Desk, part_of
from thoughtgate.app.paging import page
from thoughtgate.app.shown import effect_warnings, tool_entries, tool_entry
from thoughtgate.core.errors import Missing
from thoughtgate.surface.admin import ADMIN
from thoughtgate.surface.admin_route import Ask
from thoughtgate.surface.admin_values import EffectSaid, ToolEntry, ToolList, ToolShown


async def list_tools(desk: Desk, ask: Ask) -> ToolList:
    """List the tools of all servers by server and name, also those that are held back."""
    wanted = ask.query
    every = [
        one
        for one in tool_entries(desk.app.gateway.catalog)
        if (not wanted.server or one.server == wanted.server) and (one.rule or not wanted.held)
    ]
    found, following = page(every, _key, **part_of(ask))
    return ToolList(tools=found, next=following)


async def get_tool(desk: Desk, ask: Ask) -> ToolShown:
    """Return one tool with its definition."""
    key = (ask.path["server"], ask.path["tool"])
    tool = desk.app.gateway.catalog.index.get(key)
    if tool is not None:
        return ToolShown(entry=tool_entry(tool), definition=dict(tool.definition))
    for one in tool_entries(desk.app.gateway.catalog):
        if _key(one) == key:
            return ToolShown(entry=one, definition={})
    raise Missing(message=f"server {key[0][:80]} has shown no tool {key[1][:120]}")


async def put_effect(desk: Desk, ask: Ask) -> EffectSaid:
    """Say what a call of a tool does to the world."""
    server, tool = ask.path["server"], ask.path["tool"]
    effect = ask.body.effect
    await desk.change(ask.match, lambda registry: registry.set_effect(server, tool, effect, ADMIN))
    warnings = await desk.read(lambda loaded, store: effect_warnings(loaded, store, server, tool))
    return EffectSaid(server=server, tool=tool, effect=effect, warnings=warnings)


def _key(entry: ToolEntry) -> tuple[str, str]:
    return (entry.server, entry.tool)
