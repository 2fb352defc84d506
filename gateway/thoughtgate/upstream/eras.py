"""How our own requests are dressed in each era: what `_meta` holds, how a link greets.

Never sends anything: a link does, over its own transport.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from thoughtgate.core.calls import Call
from thoughtgate.core.errors import UpstreamGarbled
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.upstream.home import declared
from thoughtgate.upstream.ports import Peer
from thoughtgate.wire import handshake, methods, stateless
from thoughtgate.wire.input_required import write_retry
from thoughtgate.wire.messages import BadMessage, Reply
from thoughtgate.wire.requests import write_request
from thoughtgate.wire.results import untyped

Ask = Callable[[str, JsonObject], Awaitable[bytes]]
"""Sends a request of ours, dressed, and returns its result."""


class Dialect(Protocol):
    """What differs between the eras whatever the transport; `declared` is what we greet with."""

    era: Era
    declared: JsonObject

    async def greet(self, ask: Ask) -> Peer:
        """Open the conversation and return who answered.

        In the handshake era `notifications/initialized` is to follow.

        Raises:
            UpstreamError: The server does not speak this era, or could not be asked.
        """
        ...

    def dress(
        self, meta: dict[str, Any], capabilities: JsonObject, log_level: str | None
    ) -> dict[str, Any]:
        """Return the `_meta` of a request: what was given and what this era wants."""
        ...

    def read(self, reply: Reply) -> Reply:
        """Return a server's reply as this era means it."""
        ...


class Handshake:
    """The era of `initialize`, where capabilities are declared once."""

    era = Era.HANDSHAKE

    def __init__(
        self, identity: JsonObject, capabilities: JsonObject, version: str = handshake.LATEST
    ) -> None:
        self.declared = capabilities
        self._identity = identity
        self._version = version

    async def greet(self, ask: Ask) -> Peer:
        """Send `initialize`; see `Dialect.greet`."""
        hello = handshake.hello_params(self._identity, self.declared)
        result = await ask(methods.INITIALIZE, {**hello, "protocolVersion": self._version})
        try:
            welcome = handshake.read_welcome(result)
        except BadMessage as error:
            raise UpstreamGarbled(message=f"initialize: {error.message}") from None
        return Peer(
            era=Era.HANDSHAKE,
            version=welcome.version,
            server_info=welcome.server_info,
            capabilities=welcome.capabilities,
            instructions=welcome.instructions,
        )

    def dress(
        self, meta: dict[str, Any], capabilities: JsonObject, log_level: str | None
    ) -> dict[str, Any]:
        """Return `meta` as it is."""
        return meta

    def read(self, reply: Reply) -> Reply:
        """Return the reply: every one of this era is final, whatever it says of itself."""
        if "resultType" not in reply.value:
            return reply
        value = {name: said for name, said in reply.value.items() if name != "resultType"}
        return Reply(id=reply.id, result=untyped(reply.result), value=value)


class Stateless:
    """The era in which every request says who asks, and for whom."""

    era = Era.STATELESS

    def __init__(self, identity: JsonObject) -> None:
        self.declared: JsonObject = {}
        self._identity = identity

    async def greet(self, ask: Ask) -> Peer:
        """Send `server/discover`; see `Dialect.greet`."""
        result = await ask(methods.DISCOVER, {})
        try:
            found = stateless.read_discovered(result)
        except BadMessage as error:
            raise UpstreamGarbled(message=f"server/discover: {error.message}") from None
        return Peer(
            era=Era.STATELESS,
            version=found.versions[-1],
            server_info=found.server_info,
            capabilities=found.capabilities,
            instructions=found.instructions,
        )

    def dress(
        self, meta: dict[str, Any], capabilities: JsonObject, log_level: str | None
    ) -> dict[str, Any]:
        """Return `meta` with the keys that every request of this era carries."""
        offered = declared(capabilities)
        return meta | stateless.envelope_meta(self._identity, offered, log_level)

    def read(self, reply: Reply) -> Reply:
        """Return the reply as it came: it may ask for input."""
        return reply


def call_request(call: Call, token: int, dialect: Dialect) -> tuple[str, JsonObject]:
    """Return method and params of a call; the token goes along only when progress is wanted."""
    method, params = write_request(call.found, call.arguments, call.extra)
    if call.retry is not None:
        params |= write_retry(call.retry)
    meta = methods.hop_meta(
        call.meta,
        progress_token=token if call.wants_progress else None,
        trace=call.trace,
        idempotency_key=call.idempotency_key,
    )
    dressed = dialect.dress(meta, call.session.capabilities, call.log_level)
    if dressed:
        params["_meta"] = dressed
    return method, params


def own_params(params: JsonObject, dialect: Dialect) -> JsonObject:
    """Return the params of a request of our own, dressed for its era: we declare nothing."""
    meta = dialect.dress({}, {}, None)
    return {**params, "_meta": meta} if meta else params


def lower_level(known: str | None, wanted: str) -> str:
    """Return the lower of two log levels; an unknown one is taken as it is."""
    if known is None or wanted not in methods.LOG_LEVELS:
        return wanted
    return min(known, wanted, key=methods.LOG_LEVELS.index)
