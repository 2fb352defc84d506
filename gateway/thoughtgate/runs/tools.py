"""A domain's tools as an engine sees them.

Never resolves a call: the engine uses the names that the domain shows, and the path of every call
finds the tool behind them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from thoughtgate.core.tools import Tool
from thoughtgate.engines.contract import EngineTool
from thoughtgate.views import Entry, View

IDEMPOTENCY = "thoughtgate/idempotency"
"""The `_meta` key of a tool by which it says `key`: it deduplicates by idempotency key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """The tools of one run, fixed when it begins; `true` holds the definitions by shown name."""

    tools: tuple[EngineTool, ...]
    true: Mapping[str, Tool]


def toolset(view: View, hidden: frozenset[tuple[str, str]] = frozenset()) -> Toolset:
    """Return the tools that `view` shows, without those whose (server, name) is `hidden`."""
    entries = [entry for entry in view.entries if entry.tool.key not in hidden]
    return Toolset(
        tools=tuple(_engine_tool(entry) for entry in entries),
        true={entry.name: entry.tool for entry in entries},
    )


def _engine_tool(entry: Entry) -> EngineTool:
    shown = entry.shown
    description, output = shown.get("description"), shown.get("outputSchema")
    meta = entry.tool.definition.get("_meta")
    return EngineTool(
        name=entry.name,
        description=description if isinstance(description, str) else "",
        parameters=shown.get("inputSchema", {"type": "object"}),
        effect=entry.tool.effect,
        output=output if isinstance(output, Mapping) else None,
        honours_key=isinstance(meta, Mapping) and meta.get(IDEMPOTENCY) == "key",
    )
