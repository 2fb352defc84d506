"""A link over HTTP in the handshake era: a session that the server may forget.

Never resends a call but after a 404 to its session, which proves that it was not carried out.
"""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TypeVar

from thoughtgate.core.calls import Call
from thoughtgate.core.errors import (
    UpstreamError,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamReplied,
    UpstreamUnreachable,
)
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era, HttpTransport
from thoughtgate.upstream.eras import Handshake, call_request, lower_level, own_params
from thoughtgate.upstream.hearing import Hearing
from thoughtgate.upstream.home import Home
from thoughtgate.upstream.http_exchange import (
    ACCEPT_BOTH,
    EVENTS_TYPE,
    JSON_TYPE,
    Asked,
    Forgotten,
    check_session,
    check_status,
    drain,
    read_answer,
)
from thoughtgate.upstream.http_rules import server_headers
from thoughtgate.upstream.http_watch import OTHER_ERA, Pace, follow, heard, until_over
from thoughtgate.upstream.ports import (
    Changed,
    Counts,
    HttpClient,
    HttpReply,
    HttpRequest,
    Peer,
    SentTwice,
)
from thoughtgate.wire import handshake, methods
from thoughtgate.wire.messages import Failure, Reply, encode_notification, encode_request
from thoughtgate.wire.strict import MAX_RESULT

T = TypeVar("T")

_SIDE_TIMEOUT = 5.0
_UNASKED = 256
"""Answers and notifications that may be on their way to a server that does not take them."""

_OVERTAKEN = 1.0
"""Seconds in which a request has surely reached a server that is not too busy to heed it."""

_RESUMPTIONS = 3
"""Attempts in a row to read on that may bring nothing new."""

_NO_REPLAY = frozenset({400, 404, 405, 406, 410, 501})
"""What a server says that keeps no events, or not these."""

_SHORTEST_RETRY = 0.02
_LONGEST_RETRY = 30.0


class HandshakeHttpLink:
    """One session with one server; connections come from the client's pool."""

    def __init__(
        self,
        transport: HttpTransport,
        client: HttpClient,
        dialect: Handshake,
        home: Home,
        *,
        limit: int = MAX_RESULT,
    ) -> None:
        self.peer = Peer(era=Era.HANDSHAKE, version="", server_info={}, capabilities={})
        self.counts = Counts()
        self._url = transport.url
        self._headers = server_headers(transport.headers)
        self._posted = {**self._headers, "content-type": JSON_TYPE, "accept": ACCEPT_BOTH}
        self._client = client
        self._limit = limit
        self._dialect = dialect
        self._ids = itertools.count(1)
        self._session = ""
        self._version = ""
        self._epoch = 0
        self._renewing = asyncio.Lock()
        self._renewed = asyncio.Event()
        self._home = home
        self._waiting: dict[int, Asked] = {}
        self._last_heard: str | None = None
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._side: set[asyncio.Task[None]] = set()
        self._hearing = Hearing(home, dialect.declared, self.counts, self._send)

    @property
    def lost(self) -> bool:
        """Tell whether no session can be had any more; each request has its own connection."""
        return self._over.done()

    @property
    def questions(self) -> int:
        """Return how many of the server's questions are open."""
        return len(self._hearing.questions)

    async def greet(self) -> None:
        """Open a session, and follow again what was followed before.

        Raises:
            UpstreamError: The server does not speak this era, or could not be asked.
        """
        self.peer = await self._dialect.greet(self._ask)
        self._version, self._last_heard = self.peer.version, None
        self._epoch += 1
        await self._send_body(encode_notification(methods.INITIALIZED))
        level, self._hearing.level = self._hearing.level, None
        if level is not None:
            await self._set_level(level)
        for uri in self._home.subscriptions.uris:
            try:
                await self._ask(methods.SUBSCRIBE, {"uri": uri})
            except UpstreamReplied:
                continue  # what was followed is there no more

    async def request(self, method: str, params: JsonObject) -> bytes:
        """Send a request of our own and return its result; see `Link.request`."""
        return await self._again(lambda: self._ask(method, params))

    async def call(self, call: Call) -> Reply:
        """Call a tool and return the reply; see `Link.call`."""
        return await self._again(lambda: self._call(call))

    async def subscribe(self, uri: str) -> None:
        """Follow a resource; see `Link.subscribe`."""
        await self.request(methods.SUBSCRIBE, {"uri": uri})

    async def unsubscribe(self, uris: Sequence[str]) -> None:
        """Follow resources no more; see `Link.unsubscribe`."""
        for uri in uris:
            await self.request(methods.UNSUBSCRIBE, {"uri": uri})

    def tell(self, method: str, params: JsonObject) -> None:
        """Send a notification; see `Link.tell`."""
        self._send(encode_notification(method, params or None))

    async def watch(self, changed: Changed) -> str:
        """Follow the server's own notifications until no session can be had; see `Link.watch`."""
        self._hearing.changed = changed
        gap = _nothing if self._home.private else partial(changed, "")
        return await until_over(self._over, follow(self._listen, gap))

    async def aclose(self) -> None:
        """Give the session back within a bound."""
        self._hearing.close()
        for task in list(self._side):
            task.cancel()
        if self._session:
            self._aside(self._delete())
            await asyncio.wait(self._side, timeout=_SIDE_TIMEOUT)

    async def _again(self, ask: Callable[[], Coroutine[None, None, T]]) -> T:
        """Ask; when the session was forgotten, open a new one (once for all callers), ask again."""
        if self._renewing.locked():
            async with self._renewing:  # a session is being opened: use it
                pass
        epoch = self._epoch
        try:
            return await ask()
        except Forgotten:
            await self._renew(epoch)
        try:
            return await ask()
        except Forgotten:
            raise SentTwice(message="the server forgets its sessions at once") from None

    async def _renew(self, epoch: int) -> None:
        async with self._renewing:
            if self._epoch == epoch:
                await self._greet_again()
                self._renewed.set()
                if self._hearing.changed is not None:
                    self._hearing.changed("")  # a server that forgot was likely restarted

    async def _greet_again(self) -> None:
        try:
            await self.greet()
        except (UpstreamReplied, UpstreamGarbled):
            if not self._over.done():
                self._over.set_result(OTHER_ERA)
            raise UpstreamUnreachable(message="the server opens no sessions any more") from None

    async def _call(self, call: Call) -> Reply:
        if call.log_level is not None and "logging" in self.peer.capabilities:
            await self._set_level(call.log_level)
        asked = self._asked(call)
        method, params = call_request(call, asked.id, self._dialect)
        trace = {} if call.trace is None else {"traceparent": params["_meta"]["traceparent"]}
        self._hearing.calls[asked.id] = call
        try:
            result = await self._exchange(asked, method, params, trace)
        except asyncio.CancelledError:
            self._take_back(asked)
            raise
        finally:
            self._hearing.over(asked.id)
        return self._dialect.read(result)

    def _take_back(self, asked: Asked) -> None:
        """Cancel a call; once more a little later when the server may not have had it yet.

        The notification has a connection of its own, and may be faster than the call.
        """
        message = encode_notification(methods.CANCELLED, methods.cancelled_params(asked.id))
        self._send(message)
        if not asked.begun:
            self._aside(self._send_later(message))

    async def _send_later(self, message: bytes) -> None:
        await asyncio.sleep(_OVERTAKEN)
        await self._send_body(message)

    async def _ask(self, method: str, params: JsonObject) -> bytes:
        asked = self._asked(None)
        return (await self._exchange(asked, method, own_params(params, self._dialect), {})).result

    async def _exchange(
        self, asked: Asked, method: str, params: JsonObject, headers: dict[str, str]
    ) -> Reply:
        opening = method == methods.INITIALIZE
        session = {} if opening else self._session_headers()
        reply = await self._post(encode_request(asked.id, method, params), headers | session)
        asked.begun = True
        if reply.status != 200:
            known = handshake.SESSION_HEADER in session
            await (check_session(reply) if known else check_status(reply))
        if opening:
            self._session = reply.headers.get(handshake.SESSION_HEADER, "")
        self._waiting[asked.id] = asked
        try:
            return await self._answer(reply, asked)
        finally:
            del self._waiting[asked.id]

    async def _answer(self, reply: HttpReply, asked: Asked) -> Reply:
        """Read the answer, wherever it comes: on this stream, on one that goes on, on another."""
        try:
            result = await read_answer(reply, asked)
        except UpstreamLost:
            if asked.answer is None and asked.last_event is None:
                raise
            result = None
        return await self._resume(asked) if result is None else result

    async def _resume(self, asked: Asked) -> Reply:
        """Read on, by the last event's id, where a stream ended without its answer."""
        tries = 0
        while asked.answer is None and asked.last_event is not None and tries < _RESUMPTIONS:
            seen = asked.last_event
            await _pause(asked)
            result = await self._read_on(asked, seen)
            if result is not None:
                return result
            tries = tries + 1 if asked.last_event == seen else 0
        return asked.outcome()

    async def _read_on(self, asked: Asked, seen: str) -> Reply | None:
        if asked.answer is not None:
            return None
        try:
            reply = await self._get(seen)
            if reply.status == 200:
                return await read_answer(reply, asked)
            reply.body.close()
            if reply.status in _NO_REPLAY:
                asked.last_event = None  # nor will it ever
        except (UpstreamUnreachable, UpstreamLost):
            pass  # this GET failed: what became of the call is still open
        return None

    def _elsewhere(self, message: Reply | Failure) -> bool:
        """Take an answer from a stream that is not its request's; False when nobody waits."""
        id_ = str(message.id)  # some servers send numbers back as strings
        other = self._waiting.get(int(id_)) if id_.isdecimal() and len(id_) < 20 else None
        if other is None:
            return False
        other.settle(message)
        return True

    async def _listen(self, pace: Pace) -> bool:
        """Hold one GET stream until it ends; False when the server has none."""
        if not self._home.traits.streams:
            return False
        self._renewed.clear()
        reply = await self._get(self._last_heard)
        if reply.status == 404 and self._session:
            reply.body.close()
            await self._renewed.wait()
            return True
        if reply.status != 200 or "event-stream" not in reply.headers.get("content-type", ""):
            reply.body.close()
            self._home.traits.streams = False
            return False  # 405 says so plainly; whatever else it is, it is no stream
        asked = self._asked(None)
        asked.on_event = pace.heard
        try:
            async with heard() as pulse:
                asked.on_chunk = pulse.beat
                await read_answer(reply, asked)
        except UpstreamReplied:
            reply.body.close()
        finally:
            self._last_heard = asked.last_event or self._last_heard
        return True

    async def _post(self, body: bytes, headers: dict[str, str]) -> HttpReply:
        return await self._client.send(
            HttpRequest(method="POST", url=self._url, headers=self._posted | headers, body=body)
        )

    async def _get(self, last_event: str | None) -> HttpReply:
        headers = {**self._headers, "accept": EVENTS_TYPE, **self._session_headers()}
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

    async def _set_level(self, level: str) -> None:
        """Tell the server the log level: the client's own, or the lowest that anybody wants."""
        known = self._hearing.level
        wanted = level if self._home.private else lower_level(known, level)
        if wanted == known:
            return
        self._hearing.level = wanted
        try:
            await self._ask(methods.SET_LEVEL, {"level": wanted})
        except UpstreamError:
            self._hearing.level = None  # the call itself will say what is wrong, if anything is

    def _asked(self, call: Call | None) -> Asked:
        return Asked(
            id=next(self._ids),
            hearing=self._hearing,
            call=call,
            elsewhere=self._elsewhere,
            limit=self._limit,
        )

    def _send(self, message: bytes) -> None:
        if len(self._side) < _UNASKED:
            self._aside(self._send_body(message))
        else:
            self.counts.unsent += 1

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


async def _pause(asked: Asked) -> None:
    """Wait as long as the server wishes, or until the answer has come on another stream."""
    asked.woken = asyncio.get_running_loop().create_future()
    pause = min(max(asked.retry_ms / 1000, _SHORTEST_RETRY), _LONGEST_RETRY)
    await asyncio.wait([asked.woken], timeout=pause)
    asked.woken = None


def _nothing() -> None:
    """Let a gap be: what all share is followed on the shared connection."""
