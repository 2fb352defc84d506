"""Tools that live in this process, behind the same door as tools of other servers.

Never reaches beyond this process; what a handler raises is its own matter.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import UnknownTarget, UpstreamTimeout
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era, Listing
from thoughtgate.core.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTool:
    """One tool: its definition, as a server would list it, and what carries a call out."""

    definition: JsonObject
    handler: Callable[[Call], Awaitable[Result]]


def local_listing(server: str, definitions: Iterable[JsonObject]) -> Listing:
    """Return what discovery of such tools finds."""
    return Listing(
        server=server,
        tools=tuple(definitions),
        era=Era.STATELESS,
        version="",
        server_info={"name": server},
    )


class LocalUpstream:
    """A `Sender` for a mapping of tool names to local tools."""

    def __init__(self, server: str, tools: Mapping[str, LocalTool]) -> None:
        self._server = server
        self._tools = dict(tools)

    async def discover(self) -> Listing:
        """Return the tools' definitions."""
        return local_listing(self._server, [tool.definition for tool in self._tools.values()])

    async def send(self, call: Call) -> Result:
        """Run the tool's handler within the call's time; see `Sender.send`.

        Raises:
            UnknownTarget: There is no such tool.
        """
        target = call.found
        tool = self._tools.get(target.name) if isinstance(target, Tool) else None
        if tool is None:
            raise UnknownTarget(name=target.name)
        timeout = min(call.deadline - asyncio.get_running_loop().time(), target.call_timeout)
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await tool.handler(call)
        except TimeoutError:
            if not limit.expired():
                raise
            raise UpstreamTimeout(
                message=f"server {self._server}: no answer within {max(timeout, 0.0):.1f} seconds"
            ) from None
