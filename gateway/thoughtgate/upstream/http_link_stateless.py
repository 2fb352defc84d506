"""A link over HTTP in the stateless era: every request stands alone.

Never opens a session; giving up a call is closing its stream.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from thoughtgate.core.calls import Call
from thoughtgate.core.errors import (
    SchemaRejected,
    UpstreamError,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamReplied,
)
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era, HttpTransport
from thoughtgate.core.tools import Item, Tool
from thoughtgate.upstream.eras import Stateless, call_request, own_params
from thoughtgate.upstream.hearing import Hearing
from thoughtgate.upstream.home import Home
from thoughtgate.upstream.http_exchange import (
    ACCEPT_BOTH,
    JSON_TYPE,
    Asked,
    check_status,
    read_answer,
)
from thoughtgate.upstream.http_rules import server_headers
from thoughtgate.upstream.http_watch import LONGEST_STREAM, OTHER_ERA, heard, until_over
from thoughtgate.upstream.listening import Listening
from thoughtgate.upstream.ports import Changed, Counts, HttpClient, HttpReply, HttpRequest, Peer
from thoughtgate.wire import methods, stateless
from thoughtgate.wire.headers import ParamHeader, mirrored, param_headers
from thoughtgate.wire.messages import Reply, encode_request
from thoughtgate.wire.strict import MAX_RESULT

_REMEMBERED = 4096
"""Tool definitions whose mirrored arguments are remembered."""


_LOOK = 2.0
"""Seconds in which a server that refused a call must say which era it speaks."""

_REFUSED = frozenset({400, 404, 405})


class StatelessHttpLink:
    """One server's endpoint; connections come from the client's pool."""

    def __init__(
        self,
        transport: HttpTransport,
        client: HttpClient,
        dialect: Stateless,
        home: Home,
        *,
        limit: int = MAX_RESULT,
    ) -> None:
        self.peer = Peer(era=Era.STATELESS, version="", server_info={}, capabilities={})
        self.counts = Counts()
        self._url = transport.url
        self._headers = {
            **server_headers(transport.headers),
            "content-type": JSON_TYPE,
            "accept": ACCEPT_BOTH,
        }
        self._client = client
        self._limit = limit
        self._dialect = dialect
        self._ids = itertools.count(1)
        self._mirrored: dict[str, tuple[ParamHeader, ...]] = {}
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._hearing = Hearing(home, {}, self.counts)
        self._listening = Listening(home, self._listen, longest=LONGEST_STREAM)

    @property
    def lost(self) -> bool:
        """Tell whether the server speaks another era now; each request has its own connection."""
        return self._over.done()

    @property
    def questions(self) -> int:
        """Return 0: in this era a server asks by its results."""
        return 0

    async def greet(self) -> None:
        """Ask who is there.

        Raises:
            UpstreamError: Nobody, or one who does not speak this era.
        """
        self.peer = await self._dialect.greet(self.request)

    async def request(self, method: str, params: JsonObject) -> bytes:
        """Send a request of our own and return its result; see `Link.request`."""
        asked = self._asked(None)
        return (await self._exchange(asked, method, own_params(params, self._dialect), {})).result

    async def call(self, call: Call) -> Reply:
        """Send a call and return the reply; see `Link.call`."""
        asked = self._asked(call)
        method, params = call_request(call, asked.id, self._dialect)
        headers = param_headers(self._wanted(call.found), call.arguments)
        if call.trace is not None:
            headers["traceparent"] = params["_meta"]["traceparent"]
        reply = await self._post(asked, method, params, headers)
        try:
            return self._dialect.read(await self._answer(reply, asked))
        except (UpstreamReplied, UpstreamGarbled):
            if reply.status in _REFUSED:
                await self._look_again()
            raise

    async def subscribe(self, uri: str) -> None:
        """Follow a resource; see `Link.subscribe`."""
        await self._listening.follow(self.peer, uri)

    async def unsubscribe(self, uris: Sequence[str]) -> None:
        """Follow resources no more; see `Link.unsubscribe`."""
        await self._listening.follow(self.peer, None)

    def tell(self, method: str, params: JsonObject) -> None:
        """Do nothing: a client of this era has nothing to tell that no request carries."""

    async def watch(self, changed: Changed) -> str:
        """Follow the server's own notifications until it speaks another era; see `Link.watch`."""
        self._hearing.changed = changed
        return await until_over(self._over, self._followed(changed))

    async def _followed(self, changed: Changed) -> str:
        await self._listening.hold(self.peer, partial(changed, ""))
        return "is not followed any more"

    async def aclose(self) -> None:
        """Do nothing: there is no connection of its own to end."""

    async def _look_again(self) -> None:
        """Find out whether a server that refused a call still speaks this era."""
        try:
            async with asyncio.timeout(_LOOK):
                await self._dialect.greet(self.request)
        except (UpstreamReplied, UpstreamGarbled):
            if not self._over.done():
                self._over.set_result(OTHER_ERA)
        except (UpstreamError, TimeoutError):
            return

    async def _listen(self, wanted: JsonObject, agreed: Callable[[JsonObject], None]) -> bytes:
        """Hold one `subscriptions/listen` until its stream ends; see `Listen`."""
        asked = self._asked(None)
        asked.on_event = self._listening.pace.heard
        self._hearing.expect(asked.id, agreed)
        params = own_params({"notifications": wanted}, self._dialect)
        try:
            async with heard() as pulse:
                asked.on_chunk = pulse.beat
                return (await self._exchange(asked, methods.LISTEN, params, {})).result
        finally:
            self._hearing.forget(asked.id)

    async def _exchange(
        self, asked: Asked, method: str, params: JsonObject, headers: dict[str, str]
    ) -> Reply:
        return await self._answer(await self._post(asked, method, params, headers), asked)

    async def _answer(self, reply: HttpReply, asked: Asked) -> Reply:
        if reply.status != 200:
            await check_status(reply)
        result = await read_answer(reply, asked)
        if result is None:
            raise UpstreamLost(message="the stream ended without an answer")
        return result

    def _post(
        self, asked: Asked, method: str, params: JsonObject, headers: dict[str, str]
    ) -> Awaitable[HttpReply]:
        return self._client.send(
            HttpRequest(
                method="POST",
                url=self._url,
                headers=self._headers | stateless.request_headers(method, params) | headers,
                body=encode_request(asked.id, method, params),
            )
        )

    def _wanted(self, target: Tool | Item) -> tuple[ParamHeader, ...]:
        """Return the arguments that a tool's schema wants mirrored in headers."""
        if not isinstance(target, Tool):
            return ()
        wanted = self._mirrored.get(target.digest)
        if wanted is None:
            try:
                wanted = mirrored(target.input_schema)
            except SchemaRejected:
                wanted = ()  # the server will say so, if it minds
            if len(self._mirrored) >= _REMEMBERED:
                self._mirrored.clear()
            self._mirrored[target.digest] = wanted
        return wanted

    def _asked(self, call: Call | None) -> Asked:
        return Asked(id=next(self._ids), hearing=self._hearing, call=call, limit=self._limit)
