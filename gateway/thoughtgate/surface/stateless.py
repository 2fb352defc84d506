"""What a client of the stateless era may ask, over any transport.

Never frames a reply: each method returns the bytes of a result or raises. A subscription is
served by its transport, because it is a stream.
"""

from typing import Final

from thoughtgate.core.calls import Principal, Session
from thoughtgate.core.errors import SchemaRejected
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.surface.desk import Asker, Desk
from thoughtgate.surface.errors import unknown_method
from thoughtgate.surface.pages import LISTS
from thoughtgate.surface.relay import Line
from thoughtgate.surface.rounds import Rounds
from thoughtgate.views import View
from thoughtgate.wire import headers, methods, stateless
from thoughtgate.wire.messages import Request
from thoughtgate.wire.strict import dumps

TTL_MS: Final = 0
"""How long a list may be kept without asking: not at all, since a registry may change any time."""

_GONE: Final = frozenset({methods.SUBSCRIBE, methods.UNSUBSCRIBE})
"""What this era has no methods for: `subscriptions/listen` does it."""


class StatelessMethods:
    """Answers requests that carry who asks."""

    def __init__(self, desk: Desk, rounds: Rounds, info: JsonObject) -> None:
        self._desk = desk
        self._rounds = rounds
        self._info = info
        self._info_bytes = dumps(info)
        self._mirrored: dict[str, tuple[str, dict[str, tuple[headers.ParamHeader, ...]]]] = {}

    async def result(
        self,
        request: Request,
        envelope: stateless.Envelope,
        domain: str,
        principal: Principal,
        line: Line,
    ) -> bytes:
        """Return the result of one request.

        Raises:
            GateError: Why there is none.
        """
        method, params = request.method, request.params
        if method in LISTS:
            return self._desk.page(domain, method, params, self._write_list, Era.STATELESS)
        if method == methods.DISCOVER:
            return self._discovered(domain)
        if method in _GONE:
            raise unknown_method(method)
        asker = asker_of(envelope, domain, principal)
        result = await self._rounds.call(method, params, asker, line)
        if method == methods.RESOURCES_READ and result.final:
            return stateless.finish(stateless.cached(result.raw, TTL_MS), self._info_bytes)
        return stateless.finish(result.raw, self._info_bytes, result.value)

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
                capabilities=self._desk.capabilities(domain),
                instructions=self._desk.view(domain).instructions,
            ),
            TTL_MS,
        )

    def _write_list(self, items: bytes, cursor: str | None, key: str) -> bytes:
        return stateless.list_result(items, cursor, TTL_MS, self._info_bytes, key)


def asker_of(envelope: stateless.Envelope, domain: str, principal: Principal) -> Asker:
    """Return who asks, as a call carries it."""
    session = Session(
        id="",
        era=Era.STATELESS,
        version=envelope.version,
        client=envelope.client,
        capabilities=envelope.capabilities,
    )
    return Asker(domain=domain, principal=principal, session=session, log_level=envelope.log_level)


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
