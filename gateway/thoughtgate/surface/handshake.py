"""What a client of the handshake era may ask, over any transport.

Never frames a reply: each method returns the bytes of a result or raises.
"""

from typing import Final

from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.core.traces import SpanContext
from thoughtgate.sessions import Connected, Sessions
from thoughtgate.surface.tools import Asker, Emit, ToolDesk
from thoughtgate.wire import codes, handshake, methods
from thoughtgate.wire.messages import BadMessage, Request

CAPABILITIES: Final[JsonObject] = {"tools": {"listChanged": True}, "logging": {}}

DEFAULT_LEVEL: Final = "info"
"""The lowest log level sent to a client that never called `logging/setLevel`."""


class HandshakeMethods:
    """Answers the requests of clients that said hello."""

    def __init__(self, desk: ToolDesk, sessions: Sessions, info: JsonObject) -> None:
        self._desk = desk
        self._sessions = sessions
        self._info = info

    def welcome(self, version: str, domain: str) -> bytes:
        """Return the result of `initialize`.

        Raises:
            UnknownTarget: No such domain.
        """
        return handshake.welcome_result(
            handshake.Welcome(
                version=version,
                server_info=self._info,
                capabilities=CAPABILITIES,
                instructions=self._desk.view(domain).instructions,
            )
        )

    async def result(
        self, client: Connected, request: Request, emit: Emit, trace: SpanContext | None
    ) -> bytes:
        """Return the result of one request.

        Raises:
            GateError: Why there is none.
        """
        match request.method:
            case methods.TOOLS_CALL:
                asker = Asker(
                    domain=client.domain,
                    principal=client.principal,
                    session=client.session,
                    log_level=client.log_level or DEFAULT_LEVEL,
                )
                return handshake.finish(await self._desk.call(request.params, asker, emit, trace))
            case methods.TOOLS_LIST:
                return self._desk.page(
                    client.domain, request.params, handshake.list_result, Era.HANDSHAKE
                )
            case methods.PING:
                return b"{}"
            case methods.SET_LEVEL:
                level = methods.read_level(request.params)
                self._sessions.set_log_level(client.id, client.principal, level)
                return b"{}"
            case _:
                raise unknown_method(request.method)


def unknown_method(method: str) -> BadMessage:
    """Return the error for a method that we do not carry in this era."""
    return BadMessage(message=f"method not found: {method[:120]}", rpc_code=codes.METHOD_NOT_FOUND)
