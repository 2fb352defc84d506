"""What a client of the handshake era may ask, over any transport.

Never frames a reply: each method returns the bytes of a result or raises.
"""

from msgspec.structs import replace

from thoughtgate.core.errors import Overloaded
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.sessions import Connected
from thoughtgate.surface.clients import DEFAULT_LEVEL, Clients, Live
from thoughtgate.surface.desk import Asker, Desk
from thoughtgate.surface.pages import LISTS
from thoughtgate.surface.relay import Line
from thoughtgate.wire import handshake, methods
from thoughtgate.wire.messages import Failure, Message, Notification, Reply, Request

MOST_SUBSCRIBED = 256
"""Resources that one session may follow."""

_LASTING = frozenset({methods.SUBSCRIBE, methods.UNSUBSCRIBE})


class HandshakeMethods:
    """Answers the requests of clients that said hello, and takes what else they send."""

    def __init__(self, desk: Desk, clients: Clients, info: JsonObject) -> None:
        self._desk = desk
        self._clients = clients
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
                capabilities=self._desk.capabilities(domain),
                instructions=self._desk.view(domain).instructions,
            )
        )

    async def result(self, client: Connected, live: Live, request: Request, line: Line) -> bytes:
        """Return the result of one request.

        Raises:
            GateError: Why there is none.
        """
        method, params = request.method, request.params
        if method in LISTS:
            write = handshake.list_result
            return self._desk.page(client.domain, method, params, write, Era.HANDSHAKE)
        if method == methods.PING:
            return b"{}"
        if method == methods.SET_LEVEL:
            self._clients.set_log_level(client, live, methods.read_level(params))
            return b"{}"
        asker = Asker(
            domain=client.domain,
            principal=client.principal,
            session=live.session,
            log_level=client.log_level or DEFAULT_LEVEL,
        )
        if method in _LASTING:
            return await self._subscribed(live, request, asker, line)
        result = await self._desk.call(method, params, asker, line)
        if method == methods.RESOURCES_READ:
            return handshake.finish_read(result.raw)
        return handshake.finish(result.raw, result.value)

    async def _subscribed(self, live: Live, request: Request, asker: Asker, line: Line) -> bytes:
        """Begin or end to follow a resource; what it brings goes to the session's own stream."""
        uri, begins = str(request.params.get("uri")), request.method == methods.SUBSCRIBE
        new = begins and uri not in live.subscribed
        if new and len(live.subscribed) >= MOST_SUBSCRIBED:
            message = f"{MOST_SUBSCRIBED} resources are subscribed to; unsubscribe from some"
            raise Overloaded(message=message)
        if new:
            live.subscribed[uri] = None  # it counts while it is asked for: others ask beside it
        line = replace(line, lasting=live.peer)
        try:
            raw = (await self._desk.call(request.method, request.params, asker, line)).raw
        except BaseException:
            if new:
                live.subscribed.pop(uri, None)
            raise
        if not begins:
            live.subscribed.pop(uri, None)
        return handshake.finish(raw)

    def take(self, client: Connected, live: Live, message: Message) -> None:
        """Take a notification, or the answer to a question of ours."""
        if isinstance(message, Reply | Failure):
            live.asks.answered(message)
        elif isinstance(message, Notification):
            if message.method == methods.CANCELLED:
                running = live.running.get(methods.read_cancelled(message.params))
                if running is not None:
                    running.give_up()
            elif message.method != methods.INITIALIZED:
                self._clients.tell(client, message.method, message.params)
