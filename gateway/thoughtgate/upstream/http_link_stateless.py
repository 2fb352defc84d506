"""A link over HTTP in the stateless era: every request stands alone.

Never opens a session; giving up a call is closing its stream.
"""

import itertools
from collections.abc import Callable

from thoughtgate.core.calls import Call
from thoughtgate.core.errors import SchemaRejected, UpstreamError, UpstreamLost
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era, HttpTransport
from thoughtgate.core.traces import format_traceparent
from thoughtgate.upstream.eras import Stateless, call_params, own_params
from thoughtgate.upstream.http_exchange import (
    ACCEPT_BOTH,
    JSON_TYPE,
    Asked,
    check_status,
    read_answer,
)
from thoughtgate.upstream.http_rules import server_headers
from thoughtgate.upstream.http_watch import Pace, follow
from thoughtgate.upstream.ports import Counts, HttpClient, HttpReply, HttpRequest, Peer
from thoughtgate.wire import methods, stateless
from thoughtgate.wire.headers import ParamHeader, mirrored, param_headers
from thoughtgate.wire.messages import Notification, Request, encode_request
from thoughtgate.wire.strict import MAX_RESULT

_REMEMBERED = 4096
"""Tool definitions whose mirrored arguments are remembered."""


class StatelessHttpLink:
    """One server's endpoint; connections come from the client's pool."""

    def __init__(
        self,
        transport: HttpTransport,
        client: HttpClient,
        dialect: Stateless,
        *,
        limit: int = MAX_RESULT,
    ) -> None:
        self.peer = Peer(era=Era.STATELESS, version="", server_info={}, capabilities={})
        self.counts = Counts()
        self._url = transport.url
        self._headers = server_headers(transport.headers)
        self._changed: Callable[[], None] | None = None
        self._client = client
        self._limit = limit
        self._dialect = dialect
        self._ids = itertools.count(1)
        self._mirrored: dict[str, tuple[ParamHeader, ...]] = {}

    @property
    def lost(self) -> bool:
        """Return False: each request has a connection of its own."""
        return False

    async def greet(self) -> None:
        """Ask who is there.

        Raises:
            UpstreamError: Nobody, or one who does not speak this era.
        """
        self.peer = await self._dialect.greet(self.request)

    async def request(self, method: str, params: JsonObject) -> bytes:
        """Send a request of our own and return its result; see `Link.request`."""
        asked = self._asked()
        return await self._exchange(asked, method, own_params(params, self._dialect), {})

    async def call(self, call: Call) -> bytes:
        """Call a tool and return its result; see `Link.call`."""
        asked = self._asked(call)
        params = call_params(call, asked.id, self._dialect)
        headers = param_headers(self._wanted(call), call.arguments)
        if call.trace is not None:
            headers["traceparent"] = format_traceparent(call.trace)
        return self._dialect.check(await self._exchange(asked, methods.TOOLS_CALL, params, headers))

    async def watch(self, changed: Callable[[], None]) -> str:
        """Follow the server's own notifications; never returns, since there is no connection."""
        self._changed = changed
        return await follow(self._listen, changed)

    async def aclose(self) -> None:
        """Do nothing: there is no connection of its own to end."""

    async def _listen(self, pace: Pace) -> bool:
        """Hold one subscription until it ends; False when the server has none."""
        asked = self._asked()
        asked.on_event = pace.heard
        params = own_params(stateless.listen_params({}), self._dialect)
        reply = await self._post(asked, methods.LISTEN, params, {})
        try:
            await check_status(reply)
            await read_answer(reply, asked)
        except UpstreamLost:
            return True
        except UpstreamError:
            return False
        return True

    async def _exchange(
        self, asked: Asked, method: str, params: JsonObject, headers: dict[str, str]
    ) -> bytes:
        reply = await self._post(asked, method, params, headers)
        await check_status(reply)
        result = await read_answer(reply, asked)
        if result is None:
            raise UpstreamLost(message="the stream ended without an answer")
        return result

    async def _post(
        self, asked: Asked, method: str, params: JsonObject, headers: dict[str, str]
    ) -> HttpReply:
        return await self._client.send(
            HttpRequest(
                method="POST",
                url=self._url,
                headers={
                    **self._headers,
                    "content-type": JSON_TYPE,
                    "accept": ACCEPT_BOTH,
                    **stateless.request_headers(method, params),
                    **headers,
                },
                body=encode_request(asked.id, method, params),
            )
        )

    def _wanted(self, call: Call) -> tuple[ParamHeader, ...]:
        """Return the arguments that the tool's schema wants mirrored in headers."""
        digest = call.tool.digest
        wanted = self._mirrored.get(digest)
        if wanted is None:
            try:
                wanted = mirrored(call.tool.input_schema)
            except SchemaRejected:
                wanted = ()  # the server will say so, if it minds
            if len(self._mirrored) >= _REMEMBERED:
                self._mirrored.clear()
            self._mirrored[digest] = wanted
        return wanted

    def _asked(self, call: Call | None = None) -> Asked:
        return Asked(
            id=next(self._ids),
            counts=self.counts,
            on_request=self._refuse,
            on_notification=self._heard,
            call=call,
            limit=self._limit,
        )

    def _heard(self, message: Notification) -> None:
        if message.method == methods.TOOLS_CHANGED and self._changed is not None:
            self._changed()

    def _refuse(self, message: Request) -> None:
        """Drop a server's request: this era has none."""
        self.counts.refused += 1
