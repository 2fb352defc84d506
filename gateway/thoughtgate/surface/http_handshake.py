"""The handshake era over HTTP: sessions by header, a GET stream, DELETE.

Never takes a lost connection for a cancellation: in this era that is a notification.
"""

from typing import Final

from thoughtgate.core.errors import GateError, Overloaded
from thoughtgate.sessions import Connected
from thoughtgate.surface.clients import Clients, Live
from thoughtgate.surface.errors import Failed, failed_by, refusal
from thoughtgate.surface.handshake import HandshakeMethods
from thoughtgate.surface.http_exchange import Exchange, Feed, Streams
from thoughtgate.surface.http_io import JSON, HttpRequest, Refusal, respond
from thoughtgate.wire import codes, handshake, methods
from thoughtgate.wire.messages import (
    Message,
    Notification,
    Request,
    encode_notification,
    encode_reply,
)
from thoughtgate.wire.sse import KEEPALIVE, encode_event

_SESSION: Final = handshake.SESSION_HEADER.encode()
_CHANGES: Final = Feed(
    first=KEEPALIVE, change=encode_event(encode_notification(methods.TOOLS_CHANGED)), last=b""
)


class HandshakeFace:
    """Serves the clients of the handshake era at the MCP endpoints."""

    def __init__(
        self, answers: HandshakeMethods, clients: Clients, streams: Streams, *, keepalive: float
    ) -> None:
        self._answers = answers
        self._clients = clients
        self._streams = streams
        self._keepalive = keepalive

    async def post(self, request: HttpRequest, message: Message) -> None:
        """Serve one message.

        Raises:
            Refusal: No session, or none that this principal has here.
        """
        if isinstance(message, Request) and message.method == methods.INITIALIZE:
            await self._hello(request, message)
            return
        client, live = self._find(request)
        if isinstance(message, Request):
            await self._answer(request, message, client, live)
            return
        if isinstance(message, Notification) and message.method == methods.CANCELLED:
            running = live.running.get(methods.read_cancelled(message.params))
            if running is not None:
                running.give_up()
        await respond(request.send, 202, b"", ())

    async def get(self, request: HttpRequest) -> None:
        """Serve the stream of what belongs to no request; a newer stream replaces an older one.

        Raises:
            Refusal: No such session, no stream is taken, or too many are open.
        """
        client, live = self._find(request)
        with self._clients.sessions.holding(client.id, client.principal):
            await self._streams.follow(request, self._clients.new_bell(live), _CHANGES)

    async def delete(self, request: HttpRequest) -> None:
        """End a session.

        Raises:
            Refusal: No such session.
        """
        client, _ = self._find(request)
        self._clients.sessions.close(client.id, client.principal)
        await respond(request.send, 204, b"", ())

    async def _hello(self, request: HttpRequest, message: Request) -> None:
        try:
            said = handshake.read_hello(message.params)
            result = self._answers.welcome(said.version, request.domain)
            client = self._clients.open(said, request.principal, request.domain)
        except Overloaded as error:
            raise Refusal(503, message=error.message) from None
        except GateError as error:
            await respond(request.send, 200, refusal(message.id, failed_by(error)).body)
            return
        headers = (JSON, (_SESSION, client.id.encode()))
        await respond(request.send, 200, encode_reply(message.id, result), headers)

    async def _answer(
        self, request: HttpRequest, message: Request, client: Connected, live: Live
    ) -> None:
        exchange = Exchange(request, keepalive=self._keepalive)
        if not live.running.add(message.id, exchange.running):
            failed = Failed(codes.INVALID_REQUEST, "a request with this id is in flight")
            await exchange.reply(refusal(message.id, failed), 400)
            return
        try:
            with self._clients.sessions.holding(client.id, client.principal):
                work = self._answers.result(client, message, exchange.emit, request.trace())
                answer = await exchange.run(message.id, work)
        finally:
            live.running.discard(message.id)
        await exchange.reply(answer)

    def _find(self, request: HttpRequest) -> tuple[Connected, Live]:
        session_id = request.header(_SESSION)
        if session_id is None:
            raise Refusal(400, message="no session; send initialize first, then mcp-session-id")
        found = self._clients.find(session_id, request.principal, request.domain)
        if found is None:
            raise Refusal(404, message="no such session; send initialize again")
        return found
