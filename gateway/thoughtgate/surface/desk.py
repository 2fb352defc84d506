"""Lists and calls of everything that servers have, for clients of either era over any transport.

Never knows how bytes travel or which era asks: that is given as values and functions.
"""

import asyncio
import secrets
from dataclasses import replace
from itertools import count
from typing import Final

import msgspec

from thoughtgate.calls.altered import made
from thoughtgate.core.calls import (
    Call,
    ItemName,
    Listener,
    Principal,
    Result,
    Retry,
    Session,
    ToolName,
)
from thoughtgate.core.errors import GateError, UnknownTarget, UpstreamReplied
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.core.tools import Kind
from thoughtgate.surface.errors import no_resource, result_for_models, unknown_method
from thoughtgate.surface.pages import Pages, WriteList
from thoughtgate.surface.ports import Calls
from thoughtgate.surface.relay import Line, Relay
from thoughtgate.views import View
from thoughtgate.wire import codes
from thoughtgate.wire.requests import Wanted, read_request

_RESOURCES: Final = frozenset({Kind.RESOURCE, Kind.SUBSCRIBE, Kind.UNSUBSCRIBE})
_SUBSCRIPTIONS: Final = frozenset({Kind.SUBSCRIBE, Kind.UNSUBSCRIBE})

_CAPABILITIES: Final[JsonObject] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, where, and which log messages they want; `retry` is given in a second round."""

    domain: str
    principal: Principal
    session: Session
    log_level: str | None
    retry: Retry | None = None


class Desk:
    """Answers from the gateway's views and path."""

    def __init__(
        self, gateway: Calls, *, page_size: int = 100, call_timeout: float = 120.0
    ) -> None:
        self._gateway = gateway
        self._pages = Pages(page_size)
        self._call_timeout = call_timeout
        self._prefix = secrets.token_hex(8)
        self._numbers = count(1)

    def view(self, domain: str) -> View:
        """Return what a domain shows now.

        Raises:
            UnknownTarget: No such domain.
        """
        return self._gateway.view(domain)

    def capabilities(self, domain: str) -> JsonObject:
        """Return what a domain's clients may use: a catalogue may grow at any time.

        Raises:
            UnknownTarget: No such domain.
        """
        extensions = self._gateway.view(domain).extensions
        return {**_CAPABILITIES, "extensions": extensions} if extensions else _CAPABILITIES

    def page(
        self, domain: str, method: str, params: JsonObject, write: WriteList, era: Era
    ) -> bytes:
        """Return one page of a list; pages are encoded once per revision and era.

        Raises:
            UnknownTarget: No such domain.
            BadMessage: A cursor that we did not give, or gave before the list changed.
        """
        return self._pages.page(self._gateway.view(domain), method, params, write, era)

    async def call(self, method: str, params: JsonObject, asker: Asker, line: Line) -> Result:
        """Return a result, of a tool or of anything else that a server has.

        Raises:
            GateError: What is an error of the protocol rather than a result.
        """
        wanted = read_request(method, params)
        relay = Relay(
            line,
            wanted.meta.progress_token,
            asker.log_level,
            lambda: self._gateway.view(asker.domain),
        )
        listener = line.lasting if wanted.kind in _SUBSCRIPTIONS else None
        call = self._call(wanted, asker, listener or relay, line)
        try:
            result = await self._gateway.call(call)
        except GateError as error:
            return _failed(error, wanted, asker.session.era)
        finally:
            if relay.asked:
                await relay.close()
        return self.translated(call, result)

    def _call(self, wanted: Wanted, asker: Asker, listener: Listener, line: Line) -> Call:
        name, domain = wanted.name, asker.domain
        return made(
            id=f"{self._prefix}-{next(self._numbers)}",
            target=ToolName(domain=domain, name=name)
            if wanted.kind is None
            else ItemName(domain=domain, kind=wanted.kind, name=name),
            arguments=wanted.arguments,
            principal=asker.principal,
            session=asker.session,
            domain=domain,
            deadline=asyncio.get_running_loop().time() + self._call_timeout,
            listener=listener,
            meta=wanted.meta.kept,
            trace=wanted.meta.trace or line.trace,
            log_level=asker.log_level,
            wants_progress=wanted.meta.progress_token is not None,
            extra=wanted.extra,
            retry=asker.retry,
        )

    def translated(self, call: Call, result: Result) -> Result:
        """Return a result with its URIs as this client knows them: mostly the same ones."""
        try:
            view = self._gateway.view(call.domain)
        except UnknownTarget:  # the domain went while the call ran
            return result
        if view.offered.plain:
            return result
        if isinstance(call.target, ItemName):
            item = view.offered.find(call.target, call.arguments)
            server = "" if item is None else item.server
        elif isinstance(call.target, ToolName) and call.target.name in view.table:
            server = view.table[call.target.name].tool.server
        else:
            return result
        raw = view.offered.translated(server, result.raw)
        return result if raw is result.raw else replace(result, raw=raw)


def _failed(error: GateError, wanted: Wanted, era: Era) -> Result:
    """Return an error as the result that a model can read, or raise what the client can."""
    if wanted.kind is None:
        shown = result_for_models(error)
        if shown is not None:
            return Result(raw=shown, is_error=True)
    elif isinstance(error, UnknownTarget):
        if wanted.kind is Kind.METHOD:
            raise unknown_method(wanted.name) from None
        if wanted.kind in _RESOURCES:
            raise no_resource(wanted.name, era) from None
    elif wanted.kind in _RESOURCES and _old_no_resource(error) and era is Era.STATELESS:
        raise no_resource(wanted.name, era) from None
    raise error


def _old_no_resource(error: GateError) -> bool:
    """Tell whether a server has no such resource, by the code that the new era gave up."""
    return isinstance(error, UpstreamReplied) and error.rpc_code == codes.NO_RESOURCE
