"""The stateless era over HTTP: one POST, one reply, or the stream of a subscription.

A client that leaves has cancelled its request; there is no other cancellation here.
"""

from collections.abc import Awaitable

from thoughtgate.core.errors import GateError
from thoughtgate.surface.errors import failed_by, refusal
from thoughtgate.surface.http_exchange import Exchange
from thoughtgate.surface.http_io import JSON, HttpRequest, Refusal, respond
from thoughtgate.surface.http_streams import Feed, Streams
from thoughtgate.surface.listening import Listening
from thoughtgate.surface.relay import Line
from thoughtgate.surface.stateless import StatelessMethods, asker_of
from thoughtgate.wire import codes, methods, stateless
from thoughtgate.wire.headers import PREFIX, mismatch
from thoughtgate.wire.messages import (
    BadMessage,
    Message,
    Notification,
    Request,
    encode_reply,
)
from thoughtgate.wire.sse import encode_event

_ROUTING = tuple(
    (name, name.encode())
    for name in (stateless.VERSION_HEADER, stateless.METHOD_HEADER, stateless.NAME_HEADER)
)


class StatelessFace:
    """Serves the clients of the stateless era at the MCP endpoints."""

    def __init__(
        self, answers: StatelessMethods, listening: Listening, streams: Streams, *, keepalive: float
    ) -> None:
        self._answers = answers
        self._listening = listening
        self._streams = streams
        self._keepalive = keepalive

    def post(self, request: HttpRequest, message: Message) -> Awaitable[None]:
        """Serve one message.

        Raises:
            Refusal: A subscription by a client that takes no stream.
        """
        if isinstance(message, Request):
            return self._answer(request, message)
        if isinstance(message, Notification):
            return self._note(request)
        raise Refusal(400, message="clients send requests and notifications only")

    async def _note(self, request: HttpRequest) -> None:
        """Acknowledge a notification: this era knows none, but clients in the field send some."""
        requested = request.header(stateless.VERSION_HEADER.encode()) or ""
        if requested in stateless.VERSIONS:
            await respond(request.send, 202, b"", ())
            return
        failed = failed_by(stateless.UnsupportedVersion(requested=requested))
        await respond(request.send, 400, refusal(None, failed).body)

    async def _answer(self, request: HttpRequest, message: Request) -> None:
        try:
            envelope = self._envelope(request, message)
            if message.method == methods.LISTEN:
                await self._listen(request, message, envelope)
                return
        except GateError as error:
            answer = refusal(message.id, failed_by(error))
            await respond(request.send, stateless.status_of(answer.code), answer.body, (JSON,))
            return
        exchange = Exchange(request, keepalive=self._keepalive)
        line = Line(emit=exchange.emit, trace=request.trace())
        work = self._answers.result(message, envelope, request.domain, request.principal, line)
        done = await exchange.run_watched(message.id, work)
        await exchange.reply(done, 200 if done is None else stateless.status_of(done.code))

    def _envelope(self, request: HttpRequest, message: Request) -> stateless.Envelope:
        sent = {name: value for name, key in _ROUTING if (value := request.header(key)) is not None}
        envelope = stateless.read_envelope(message.method, message.params, sent)
        if message.method == methods.TOOLS_CALL:
            self._check_mirrored(request, message)
        return envelope

    def _check_mirrored(self, request: HttpRequest, message: Request) -> None:
        """Hold the `Mcp-Param-*` headers against the arguments that the tool wants mirrored."""
        name, arguments = message.params.get("name"), message.params.get("arguments", {})
        if type(name) is not str or type(arguments) is not dict:
            return
        wanted = self._answers.mirrored(request.domain, name)
        if not wanted:
            return
        sent = {
            key.decode("latin-1"): value.strip(b" \t").decode("latin-1")
            for key, value in request.headers.items()
            if key.startswith(PREFIX.encode())
        }
        wrong = mismatch(wanted, arguments, sent)
        if wrong is not None:
            raise BadMessage(message=wrong, rpc_code=codes.HEADER_MISMATCH)

    async def _listen(
        self, request: HttpRequest, message: Request, envelope: stateless.Envelope
    ) -> None:
        asker = asker_of(envelope, request.domain, request.principal)
        async with self._listening.opened(message, asker) as (mailbox, first):
            end = encode_reply(message.id, stateless.listen_result(message.id))
            feed = Feed(first=encode_event(first), last=encode_event(end))
            await self._streams.follow(request, mailbox.attach, feed)
