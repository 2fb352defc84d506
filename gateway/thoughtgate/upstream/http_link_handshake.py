"""A link over HTTP in the handshake era: a session that the server may forget.

Never resends a call but after a 404 to its session, which proves that it was not carried out.
"""

import asyncio
import itertools
from collections.abc import Callable, Coroutine

from thoughtgate.core.calls import Call
from thoughtgate.core.errors import (
    UpstreamError,
    UpstreamLost,
    UpstreamReplied,
    UpstreamUnreachable,
)
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era, HttpTransport
from thoughtgate.core.traces import format_traceparent
from thoughtgate.upstream.eras import Handshake, call_params, lower_level, own_params
from thoughtgate.upstream.http_exchange import (
    ACCEPT_BOTH,
    EVENTS_TYPE,
    JSON_TYPE,
    Asked,
    check_status,
    drain,
    read_answer,
)
from thoughtgate.upstream.http_rules import server_headers
from thoughtgate.upstream.http_watch import Pace, follow
from thoughtgate.upstream.ports import Counts, HttpClient, HttpReply, HttpRequest, Peer
from thoughtgate.wire import codes, handshake, methods
from thoughtgate.wire.messages import (
    Notification,
    Request,
    encode_failure,
    encode_notification,
    encode_reply,
    encode_request,
)
from thoughtgate.wire.strict import MAX_RESULT

_SIDE_TIMEOUT = 5.0
_RESUMPTIONS = 3


class _Forgotten(UpstreamError):
    """The server does not know our session any more; the request was not carried out."""


class HandshakeHttpLink:
    """One session with one server; connections come from the client's pool."""

    def __init__(
        self,
        transport: HttpTransport,
        client: HttpClient,
        dialect: Handshake,
        *,
        limit: int = MAX_RESULT,
    ) -> None:
        self.peer = Peer(era=Era.HANDSHAKE, version="", server_info={}, capabilities={})
        self.counts = Counts()
        self._url = transport.url
        self._headers = server_headers(transport.headers)
        self._client = client
        self._limit = limit
        self._dialect = dialect
        self._ids = itertools.count(1)
        self._session = ""
        self._version = ""
        self._epoch = 0
        self._renewing = asyncio.Lock()
        self._renewed = asyncio.Event()
        self._level: str | None = None
        self._changed: Callable[[], None] | None = None
        self._side: set[asyncio.Task[None]] = set()

    @property
    def lost(self) -> bool:
        """Return False: each request has a connection of its own, and a session can be renewed."""
        return False

    async def greet(self) -> None:
        """Open a session.

        Raises:
            UpstreamError: The server does not speak this era, or could not be asked.
        """
        self.peer = await self._dialect.greet(self._ask)
        self._version, self._level = self.peer.version, None
        self._epoch += 1
        await self._tell(methods.INITIALIZED, {})

    async def request(self, method: str, params: JsonObject) -> bytes:
        """Send a request of our own and return its result; see `Link.request`."""
        return await self._again(lambda: self._ask(method, params))

    async def call(self, call: Call) -> bytes:
        """Call a tool and return its result; see `Link.call`."""
        return await self._again(lambda: self._call(call))

    async def watch(self, changed: Callable[[], None]) -> str:
        """Follow the server's own notifications; never returns, a session can be renewed."""
        self._changed = changed
        return await follow(self._listen, changed)

    async def aclose(self) -> None:
        """Give the session back within a bound."""
        for task in list(self._side):
            task.cancel()
        if self._session:
            self._aside(self._delete())
            await asyncio.wait(self._side, timeout=_SIDE_TIMEOUT)

    async def _again(self, ask: Callable[[], Coroutine[None, None, bytes]]) -> bytes:
        """Ask; when the session was forgotten, open a new one (once for all callers), ask again."""
        if self._renewing.locked():
            async with self._renewing:  # a session is being opened: use it
                pass
        epoch = self._epoch
        try:
            return await ask()
        except _Forgotten:
            await self._renew(epoch)
        try:
            return await ask()
        except _Forgotten:
            raise UpstreamUnreachable(message="the server forgets its sessions at once") from None

    async def _renew(self, epoch: int) -> None:
        async with self._renewing:
            if self._epoch == epoch:
                await self.greet()
                self._renewed.set()
                if self._changed is not None:
                    self._changed()  # a server that forgot was likely restarted

    async def _call(self, call: Call) -> bytes:
        if call.log_level is not None and "logging" in self.peer.capabilities:
            await self._set_level(call.log_level)
        asked = self._asked(call)
        params = call_params(call, asked.id, self._dialect)
        trace = {} if call.trace is None else {"traceparent": format_traceparent(call.trace)}
        try:
            result = await self._exchange(asked, methods.TOOLS_CALL, params, trace)
        except asyncio.CancelledError:
            self._aside(self._tell(methods.CANCELLED, methods.cancelled_params(asked.id)))
            raise
        return self._dialect.check(result)

    async def _ask(self, method: str, params: JsonObject) -> bytes:
        asked = self._asked()
        return await self._exchange(asked, method, own_params(params, self._dialect), {})

    async def _exchange(
        self, asked: Asked, method: str, params: JsonObject, headers: dict[str, str]
    ) -> bytes:
        opening = method == methods.INITIALIZE
        session = {} if opening else self._session_headers()
        reply = await self._post(encode_request(asked.id, method, params), headers | session)
        if reply.status == 404 and handshake.SESSION_HEADER in session:
            reply.body.close()
            raise _Forgotten(message="the server has forgotten the session")
        await check_status(reply)
        if opening:
            self._session = reply.headers.get(handshake.SESSION_HEADER, "")
        result = await read_answer(reply, asked)
        if result is None:
            result = await self._resume(asked)
        return result

    async def _resume(self, asked: Asked) -> bytes:
        """Read on, by the last event's id, where a stream ended without its answer."""
        for _ in range(_RESUMPTIONS):
            if asked.last_event is None:
                break
            await asyncio.sleep(min(asked.retry_ms, 30_000) / 1000)
            try:
                reply = await self._get(asked.last_event)
            except UpstreamUnreachable:
                continue  # it was this GET that was not sent: the call was
            if reply.status == 200:
                result = await read_answer(reply, asked)
                if result is not None:
                    return result
            else:
                reply.body.close()
        raise UpstreamLost(message="the stream ended without an answer")

    async def _listen(self, pace: Pace) -> bool:
        """Hold one GET stream until it ends; False when the server has none."""
        self._renewed.clear()
        reply = await self._get(None)
        if reply.status == 404 and self._session:
            reply.body.close()
            await self._renewed.wait()
            return True
        if reply.status != 200 or "event-stream" not in reply.headers.get("content-type", ""):
            reply.body.close()
            return False  # 405 says so plainly; whatever else it is, it is no stream
        asked = self._asked()
        asked.on_event = pace.heard
        try:
            await read_answer(reply, asked)
        except UpstreamReplied:
            reply.body.close()
        return True

    async def _post(self, body: bytes, headers: dict[str, str]) -> HttpReply:
        return await self._client.send(
            HttpRequest(
                method="POST",
                url=self._url,
                headers={
                    **self._headers,
                    "content-type": JSON_TYPE,
                    "accept": ACCEPT_BOTH,
                    **headers,
                },
                body=body,
            )
        )

    async def _get(self, last_event: str | None) -> HttpReply:
        headers = {
            **self._headers,
            "accept": EVENTS_TYPE,
            **self._session_headers(),
        }
        if last_event is not None:
            headers[handshake.LAST_EVENT_HEADER] = last_event
        return await self._client.send(HttpRequest(method="GET", url=self._url, headers=headers))

    async def _delete(self) -> None:
        headers = {**self._headers, **self._session_headers()}
        await drain(
            await self._client.send(HttpRequest(method="DELETE", url=self._url, headers=headers))
        )

    def _session_headers(self) -> dict[str, str]:
        if not self._version:
            return {}
        return handshake.request_headers(self._version, self._session)

    async def _tell(self, method: str, params: JsonObject) -> None:
        await self._send_body(encode_notification(method, params or None))

    async def _set_level(self, level: str) -> None:
        """Lower the session's log level when a caller wants more than came so far."""
        wanted = lower_level(self._level, level)
        if wanted == self._level:
            return
        self._level = wanted
        try:
            await self._ask(methods.SET_LEVEL, {"level": wanted})
        except UpstreamError:
            self._level = None  # the call itself will say what is wrong, if anything is

    def _asked(self, call: Call | None = None) -> Asked:
        return Asked(
            id=next(self._ids),
            counts=self.counts,
            on_request=self._answer,
            on_notification=self._heard,
            call=call,
            limit=self._limit,
        )

    def _heard(self, message: Notification) -> None:
        if message.method == methods.TOOLS_CHANGED and self._changed is not None:
            self._changed()

    def _answer(self, message: Request) -> None:
        """Answer a server's request: we have declared nothing but being alive."""
        if message.method == methods.PING:
            body = encode_reply(message.id, b"{}")
        else:
            self.counts.refused += 1
            body = encode_failure(message.id, codes.METHOD_NOT_FOUND, "not offered by this client")
        self._aside(self._send_body(body))

    async def _send_body(self, body: bytes) -> None:
        await drain(await self._post(body, self._session_headers()))

    def _aside(self, sending: Coroutine[None, None, None]) -> None:
        """Send something that nobody waits for, bounded in time."""
        task = asyncio.get_running_loop().create_task(_bounded(sending))
        self._side.add(task)
        task.add_done_callback(self._side.discard)


async def _bounded(sending: Coroutine[None, None, None]) -> None:
    try:
        async with asyncio.timeout(_SIDE_TIMEOUT):
            await sending
    except (UpstreamError, TimeoutError):
        return  # the server did not want it, or is gone: nobody waits for this
