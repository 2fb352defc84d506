"""The MCP face over HTTP: a raw ASGI application. `/mcp` is the default domain, `/mcp/NAME` NAME.

Never guesses an era from a client's name: the version header decides, and what it does not know
is refused by the newer era, which names the versions that it speaks.
"""

from collections.abc import Awaitable, Sequence
from typing import Final

from thoughtgate.core.domains import DEFAULT_DOMAIN
from thoughtgate.core.errors import UnknownTarget
from thoughtgate.core.workers import ALONE, Crew
from thoughtgate.sessions import Sessions
from thoughtgate.surface.clients import Clients
from thoughtgate.surface.comebacks import Comebacks
from thoughtgate.surface.desk import Desk
from thoughtgate.surface.errors import Failed, refusal
from thoughtgate.surface.forwarding import forward, holder_of_call, holder_of_session
from thoughtgate.surface.handshake import HandshakeMethods
from thoughtgate.surface.health import ALIVE, READY, Health
from thoughtgate.surface.http_handshake import HandshakeFace
from thoughtgate.surface.http_io import (
    HttpRequest,
    Receive,
    Refusal,
    Scope,
    Send,
    check_post,
    not_allowed,
    read_body,
    refuse,
    repeated,
    respond,
)
from thoughtgate.surface.http_stateless import StatelessFace
from thoughtgate.surface.http_streams import Streams
from thoughtgate.surface.listening import Listening
from thoughtgate.surface.mailbox import Changes
from thoughtgate.surface.ports import Gateway
from thoughtgate.surface.rounds import Rounds
from thoughtgate.surface.settings import FaceSettings
from thoughtgate.surface.stateless import StatelessMethods
from thoughtgate.wire import codes, handshake, stateless
from thoughtgate.wire.batches import is_batch
from thoughtgate.wire.messages import BadMessage, Message, Request, decode
from thoughtgate.wire.salvage import asked_id

_ENDPOINT: Final = "/mcp"
_HEALTH: Final = frozenset({ALIVE, READY})
_VERSION: Final = handshake.VERSION_HEADER.encode()
_SESSION: Final = handshake.SESSION_HEADER.encode()


class McpFront:
    """The ASGI application. `close` ends its streams, which a server waits for when it stops."""

    def __init__(self, gateway: Gateway, sessions: Sessions, settings: FaceSettings) -> None:
        self._settings = settings
        self._desk = Desk(gateway, page_size=settings.page_size, call_timeout=settings.call_timeout)
        self._changes = Changes(gateway)
        self._health = Health(settings.probe, settings.silent)
        comebacks = Comebacks(settings.seal_key, crew=settings.crew, ended=settings.ended)
        self._clients = Clients(gateway, sessions, self._changes, comebacks)
        streams = Streams(most=settings.max_streams, keepalive=settings.keepalive)
        old = HandshakeMethods(self._desk, self._clients, settings.info)
        self._rounds = Rounds(self._desk, settings.seal_key, crew=settings.crew)
        new = StatelessMethods(self._desk, self._rounds, settings.info)
        wait = settings.keepalive
        listening = Listening(gateway, self._desk, self._changes)
        self._handshake = HandshakeFace(old, self._clients, streams, keepalive=wait)
        self._stateless = StatelessFace(new, listening, streams, keepalive=wait)

    def drain(self) -> None:
        """Say at `/readyz` that the gateway takes nothing new; go on with everything else."""
        self._health.stop()

    def close(self) -> None:
        """End every stream with its proper last word and stop watching the gateway."""
        self.drain()
        self._changes.close()
        self._rounds.close()
        self._clients.close()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one ASGI connection."""
        if scope["type"] == "http":
            return self._guarded(scope, receive, send, self._settings.crew)
        return _live(receive, send) if scope["type"] == "lifespan" else _shut(receive, send)

    def forwarded(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one HTTP request that another worker sent on: it goes no further."""
        return self._guarded(scope, receive, send, ALONE)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send, crew: Crew) -> None:
        try:
            headers = self._checked(scope["headers"])
            scope["headers"] = ()  # from here on the request has them
            if scope["path"] in _HEALTH:
                await self._health.answer(scope["path"], scope["method"], send)
                return
            request = HttpRequest(
                method=scope["method"],
                headers=headers,
                domain=_domain(scope["path"]),
                principal=self._settings.identify(headers),
                receive=receive,
                send=send,
                crew=crew,
                whole=scope.get("state", {}).get("whole", False),
            )
            await self._serve(request)
        except Refusal as error:
            await refuse(send, error)

    def _checked(self, pairs: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
        """Return the headers, once Host and Origin are checked, whatever the path."""
        headers = dict(pairs)
        self._settings.hosts.check(headers)
        if headers.get(b"connection", b"").lower().count(b"upgrade"):
            # the parser stops at such a head: the body would be lost
            raise Refusal(400, message="no other protocol is spoken here; do not ask to upgrade")
        twice = repeated(pairs) if len(headers) != len(pairs) else None
        if twice is not None:
            message = f"the {twice} header came twice"
            raise Refusal(400, message=message, code=codes.HEADER_MISMATCH)
        return headers

    def _serve(self, request: HttpRequest) -> Awaitable[None]:
        try:
            self._desk.view(request.domain)
        except UnknownTarget:
            raise Refusal(404, message="no such domain") from None
        version = request.header(_VERSION)
        stateful = version is None or version in handshake.VERSIONS
        if request.method == "POST":
            return self._post(request, stateful=stateful)
        if not stateful or request.method not in {"GET", "DELETE"}:
            raise not_allowed(b"GET, POST, DELETE" if stateful else b"POST")
        worker = holder_of_session(request)
        if worker is not None:
            return forward(request, worker)
        if request.method == "GET":
            return self._handshake.get(request)
        return self._handshake.delete(request)

    async def _post(self, request: HttpRequest, *, stateful: bool) -> None:
        check_post(request)
        body = await read_body(
            request, cap=self._settings.max_body, seconds=self._settings.body_timeout
        )
        worker = holder_of_session(request) if stateful else None
        if worker is not None:
            await forward(request, worker, body)
            return
        try:
            if stateful and is_batch(body):
                await self._handshake.post_batch(request, body)
                return
            message = decode(body)
        except BadMessage as error:
            failed = Failed(error.rpc_code, error.message)
            await respond(request.send, 400, refusal(asked_id(body, error), failed).body)
            return
        if stateful and not _forgot_header(request, message):
            await self._handshake.post(request, message)
            return
        worker = holder_of_call(request, message)
        if worker is not None:
            await forward(request, worker, body)
        else:
            await self._stateless.post(request, message)


def _domain(path: str) -> str:
    if path in {_ENDPOINT, _ENDPOINT + "/"}:
        return DEFAULT_DOMAIN
    prefix, slash, name = path.rpartition("/")
    if prefix != _ENDPOINT or not slash:
        raise Refusal(404, message="nothing is served here; the MCP endpoint is /mcp")
    return name


def _forgot_header(request: HttpRequest, message: Message) -> bool:
    """Tell whether a request of the stateless era came without its header.

    The stateless face tells the client so; without this it would hear of a missing session.
    """
    if not isinstance(message, Request) or _SESSION in request.headers:
        return False
    meta = message.params.get("_meta")
    return type(meta) is dict and stateless.VERSION_KEY in meta


async def _shut(receive: Receive, send: Send) -> None:
    """Refuse a websocket."""
    await receive()
    await send({"type": "websocket.close", "code": 1008})


async def _live(receive: Receive, send: Send) -> None:
    while True:
        event = await receive()
        await send({"type": event["type"] + ".complete"})
        if event["type"] == "lifespan.shutdown":
            return
