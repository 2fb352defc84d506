"""What a client of the stateless era may ask, over any transport.

Never frames a reply: each method returns the bytes of a result or raises. A subscription is
served by its transport, because it is a stream.
"""

from typing import Final

from thoughtgate.core.calls import Principal, Session
from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.core.traces import SpanContext
from thoughtgate.surface.handshake import unknown_method
from thoughtgate.surface.tools import Asker, Emit, ToolDesk
from thoughtgate.views import View
from thoughtgate.wire import headers, methods, stateless
from thoughtgate.wire.messages import Request
from thoughtgate.wire.strict import dumps

CAPABILITIES: Final[JsonObject] = {"tools": {"listChanged": True}, "logging": {}}

TTL_MS: Final = 0
"""How long a list may be kept without asking: not at all, since a registry may change any time."""


class StatelessMethods:
    """Answers requests that carry who asks."""

    def __init__(self, desk: ToolDesk, info: JsonObject) -> None:
        self._desk = desk
        self._info = info
        self._info_bytes = dumps(info)
        self._mirrored: dict[str, tuple[str, dict[str, tuple[headers.ParamHeader, ...]]]] = {}

    async def result(
        self,
        request: Request,
        envelope: stateless.Envelope,
        domain: str,
        principal: Principal,
        via: tuple[Emit, SpanContext | None],
    ) -> bytes:
        """Return the result of one request; `via` is how to notify and the parent span.

        Raises:
            GateError: Why there is none.
        """
        match request.method:
            case methods.TOOLS_CALL:
                session = Session(
                    id="", era=Era.STATELESS, version=envelope.version, client=envelope.client
                )
                asker = Asker(
                    domain=domain,
                    principal=principal,
                    session=session,
                    log_level=envelope.log_level,
                )
                raw = await self._desk.call(request.params, asker, *via)
                return stateless.finish(raw, self._info_bytes)
            case methods.TOOLS_LIST:
                return self._desk.page(domain, request.params, self._write_list, Era.STATELESS)
            case methods.DISCOVER:
                return self._discovered(domain)
            case _:
                raise unknown_method(request.method)

    def mirrored(self, domain: str, tool: str) -> tuple[headers.ParamHeader, ...]:
        """Return the arguments of a tool that clients must mirror in headers.

        Raises:
            UnknownTarget: No such domain.
        """
        view = self._desk.view(domain)
        known = self._mirrored.get(domain)
        if known is None or known[0] != view.revision:
            known = self._mirrored[domain] = (view.revision, _mirrored(view))
        return known[1].get(tool, ())

    def _discovered(self, domain: str) -> bytes:
        return stateless.discover_result(
            stateless.Discovered(
                versions=stateless.VERSIONS,
                server_info=self._info,
                capabilities=CAPABILITIES,
                instructions=self._desk.view(domain).instructions,
            ),
            TTL_MS,
        )

    def _write_list(self, tools: bytes, cursor: str | None) -> bytes:
        return stateless.list_result(tools, cursor, TTL_MS, self._info_bytes)


def _mirrored(view: View) -> dict[str, tuple[headers.ParamHeader, ...]]:
    """Return the mirrored arguments by tool; a tool with a forbidden annotation has none."""
    found: dict[str, tuple[headers.ParamHeader, ...]] = {}
    for entry in view.entries:
        try:
            wanted = headers.mirrored(entry.shown.get("inputSchema"))
        except SchemaRejected:
            continue
        if wanted:
            found[entry.name] = wanted
    return found
