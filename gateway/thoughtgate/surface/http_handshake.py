"""The handshake era over HTTP: sessions by header, a GET stream, DELETE.

Never takes a lost connection for a cancellation: in this era that is a notification.
"""

import asyncio
from functools import partial
from typing import Final

from thoughtgate.core.errors import GateError, Overloaded
from thoughtgate.sessions import Connected
from thoughtgate.surface.batches import Batch
from thoughtgate.surface.clients import Clients, Live
from thoughtgate.surface.errors import Failed, failed_by, refusal
from thoughtgate.surface.handshake import HandshakeMethods
from thoughtgate.surface.http_exchange import Exchange, Taping
from thoughtgate.surface.http_io import JSON, HttpRequest, Refusal, respond
from thoughtgate.surface.http_streams import Feed, Streams
from thoughtgate.surface.relay import Line
from thoughtgate.wire import batches, codes, handshake, methods
from thoughtgate.wire.messages import Message, Request, encode_reply
from thoughtgate.wire.sse import KEEPALIVE, encode_event

_SESSION: Final = handshake.SESSION_HEADER.encode()
_LAST_EVENT: Final = handshake.LAST_EVENT_HEADER.encode()
_PRIMED: Final = frozenset(handshake.VERSIONS[handshake.VERSIONS.index("2025-11-25") :])

_OWN: Final = "session~"
"""Begins the event ids of a session's own stream, which goes on even where its tape is lost."""


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
        self._answers.take(client, live, message)
        await respond(request.send, 202, b"", ())

    async def post_batch(self, request: HttpRequest, body: bytes) -> None:
        """Serve the messages of a batch.

        Raises:
            Refusal: No session, or none that this principal has here.
            BadMessage: The client's version has no batches, or this is none.
        """
        client, live = self._find(request)
        messages = batches.read_batch(body, client.version)
        exchange = self._exchange(request, client)
        asks = live.asks if exchange.streams else None
        line = Line(emit=exchange.emit, asks=asks, trace=request.trace())
        batch = Batch(self._answers, client, live, line, live.running)
        with self._clients.sessions.holding(client.id, client.principal), exchange.kept_alive():
            try:
                await batch.run(messages)
            except asyncio.CancelledError:  # only a server that stops does this
                exchange.running.settle()
        await exchange.reply_all(batch.answers)

    async def get(self, request: HttpRequest) -> None:
        """Serve the stream of what belongs to no request, or one that the client comes back to.

        A newer stream of either kind replaces an older one.

        Raises:
            Refusal: No such session or stream, no stream is taken, or too many are open.
        """
        client, live = self._find(request)
        last = request.header(_LAST_EVENT)
        found = None if last is None else self._clients.shelf.find(client.id, last)
        if last is not None and found is None and not last.startswith(_OWN):
            raise Refusal(
                400, message="that stream is not kept any more; ask again what it was for"
            )
        with self._clients.sessions.holding(client.id, client.principal):
            if found is not None and found[0] is not live.tape:
                await self._streams.replay(request, *found)
                return
            feed = self._feed(client, live, -1 if found is None else found[1])
            await self._streams.follow(request, live.mailbox.attach, feed)

    async def delete(self, request: HttpRequest) -> None:
        """End a session.

        Raises:
            Refusal: No such session.
        """
        client, _ = self._find(request)
        self._clients.end(client)
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
        exchange = self._exchange(request, client)
        if not live.running.add(message.id, exchange.running):
            failed = Failed(codes.INVALID_REQUEST, "a request with this id is in flight")
            await exchange.reply(refusal(message.id, failed), 400)
            return
        line = Line(
            emit=exchange.emit,
            asks=live.asks if exchange.streams else None,
            trace=request.trace(),
        )
        try:
            with self._clients.sessions.holding(client.id, client.principal):
                work = self._answers.result(client, live, message, line)
                answer = await exchange.run(message.id, work)
        finally:
            live.running.discard(message.id)
        await exchange.reply(answer)

    def _exchange(self, request: HttpRequest, client: Connected) -> Exchange:
        taping = Taping(self._clients.shelf, client.id, primes=client.version in _PRIMED)
        return Exchange(request, keepalive=self._keepalive, taping=taping)

    def _feed(self, client: Connected, live: Live, number: int) -> Feed:
        """Return how the session's own stream is written, from after event `number` on."""
        missed: list[bytes] = []
        if live.tape is not None and number >= 0:
            missed = [event for _, event in live.tape.since(number)]
        write = partial(self._told, client.id, live)
        return Feed(first=KEEPALIVE + b"".join(missed), write=write)

    def _told(self, session_id: str, live: Live, message: bytes) -> bytes:
        """Return the event that carries a message, kept on the session's tape from the first on."""
        if live.tape is None:
            live.tape = self._clients.shelf.begin(session_id, _OWN)
        return encode_event(message) if live.tape is None else live.tape.record(message)

    def _find(self, request: HttpRequest) -> tuple[Connected, Live]:
        session_id = request.header(_SESSION)
        if session_id is None:
            raise Refusal(400, message="no session; send initialize first, then mcp-session-id")
        try:
            found = self._clients.find(session_id, request.principal, request.domain)
        except Overloaded as error:
            raise Refusal(503, message=error.message) from None
        if found is None:
            raise Refusal(404, message="no such session; send initialize again")
        return found
