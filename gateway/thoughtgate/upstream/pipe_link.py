"""A link over one pipe that carries everything: a child's, or that of an HTTP+SSE server.

Never waits for one caller on behalf of another: the pipe is read as fast as it fills.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from thoughtgate.core.calls import Call
from thoughtgate.core.errors import UpstreamError, UpstreamLost, UpstreamUnreachable
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era
from thoughtgate.upstream.eras import Dialect, call_request, lower_level, own_params
from thoughtgate.upstream.hearing import Hearing
from thoughtgate.upstream.home import Home
from thoughtgate.upstream.listening import Listening
from thoughtgate.upstream.ports import Changed, Counts, Peer, Pipe
from thoughtgate.upstream.waiting import Waiter, garbled
from thoughtgate.wire import methods
from thoughtgate.wire.ids import Pending
from thoughtgate.wire.messages import (
    BadMessage,
    Failure,
    Notification,
    Reply,
    decode,
    encode_notification,
    encode_request,
)
from thoughtgate.wire.salvage import is_nameless, messages_within, salvage_id

_GREETINGS = frozenset({methods.INITIALIZE, methods.DISCOVER})  # may not be cancelled
_BOM = b"\xef\xbb\xbf"

_SHOWN = 200
"""Letters of a server's words that are shown."""

_WHY = 1.0
"""Seconds that a pipe which takes nothing may need to say why."""

MakePipe = Callable[[Callable[[bytes], None]], Pipe]
"""Makes the pipe, not yet open, around what takes each message that comes out of it."""


class PipeLink:
    """One pipe and everything in flight on it."""

    def __init__(
        self,
        dialect: Dialect,
        home: Home,
        make: MakePipe,
        *,
        on_noise: Callable[[bytes], None] | None = None,
    ) -> None:
        self.peer = Peer(era=dialect.era, version="", server_info={}, capabilities={})
        self.counts = Counts()
        self._dialect = dialect
        self._home = home
        self._pending: Pending[Waiter] = Pending()
        self._waiters: dict[int, Waiter] = {}
        self._asked: set[int] = set()
        self._gave_up = False
        self._pipe = make(self._line)
        self._hearing = Hearing(home, dialect.declared, self.counts, self._send)
        self._listening = Listening(home, self._listen, longest=None)
        self._on_noise = on_noise
        self._pipe.ended.add_done_callback(self._fail_all)

    @property
    def lost(self) -> bool:
        """Tell whether the pipe has ended."""
        return self._pipe.ended.done()

    @property
    def questions(self) -> int:
        """Return how many of the server's questions are open."""
        return len(self._hearing.questions)

    async def greet(self) -> None:
        """Open the conversation, and follow again what was followed before.

        Raises:
            UpstreamError: The server does not speak this era, or has ended.
        """
        self.peer = await self._dialect.greet(self.request)
        if self.peer.era is Era.HANDSHAKE:
            self.tell(methods.INITIALIZED, {})
            for uri in self._home.subscriptions.uris:
                await self._again(uri)

    def speak(self, dialect: Dialect) -> None:
        """Go on in another era, after a greeting that was refused."""
        self._dialect = dialect
        self._hearing = Hearing(self._home, dialect.declared, self.counts, self._send)

    async def request(self, method: str, params: JsonObject) -> bytes:
        """Send a request of our own and return its result; see `Link.request`."""
        dressed = own_params(params, self._dialect)
        asked = await self._exchange(Waiter(None, self.counts), lambda _: (method, dressed))
        return asked.result

    async def call(self, call: Call) -> Reply:
        """Send a call and return the reply; see `Link.call`."""
        if call.log_level is not None and self._dialect.era is Era.HANDSHAKE:
            await self._set_level(call.log_level)
        waiter = Waiter(call, self.counts)
        result = await self._exchange(waiter, lambda id_: call_request(call, id_, self._dialect))
        return self._dialect.read(result)

    async def subscribe(self, uri: str) -> None:
        """Follow a resource; see `Link.subscribe`."""
        if self.peer.era is Era.HANDSHAKE:
            await self.request(methods.SUBSCRIBE, {"uri": uri})
        else:
            await self._listening.follow(self.peer, uri)

    async def unsubscribe(self, uris: Sequence[str]) -> None:
        """Follow resources no more; see `Link.unsubscribe`."""
        if self.peer.era is Era.STATELESS:
            await self._listening.follow(self.peer, None)
            return
        for uri in uris:
            await self.request(methods.UNSUBSCRIBE, {"uri": uri})

    def tell(self, method: str, params: JsonObject) -> None:
        """Send a notification; see `Link.tell`."""
        self._send(encode_notification(method, params or None))

    async def watch(self, changed: Changed) -> str:
        """Follow the server until the pipe ends; see `Link.watch`."""
        self._hearing.changed = changed
        listening: asyncio.Task[None] | None = None
        if self._dialect.era is Era.STATELESS:
            listening = asyncio.ensure_future(self._listening.hold(self.peer, partial(changed, "")))
        try:
            return await asyncio.shield(self._pipe.ended)
        finally:
            if listening is not None:
                listening.cancel()

    async def aclose(self) -> None:
        """End the pipe within a bound; calls that still wait get UpstreamLost."""
        await self._pipe.stop()
        self._fail_all(self._pipe.ended)

    async def _exchange(
        self, waiter: Waiter, request: Callable[[int], tuple[str, JsonObject]]
    ) -> Reply:
        await self._pipe.room()  # a caller that gives up here has sent nothing
        id_ = self._pending.add(waiter)
        method, params = request(id_)
        if method != methods.LISTEN:
            self._asked.add(id_)
        if waiter.call is not None:
            self._hearing.calls[id_], self._waiters[id_] = waiter.call, waiter
        try:
            if not self._pipe.send(encode_request(id_, method, params), id_):
                await asyncio.wait([self._pipe.ended], timeout=_WHY)
                raise UpstreamUnreachable(message=f"the server is gone: {self._reason()}")
            return await waiter.outcome()
        except asyncio.CancelledError:
            self._gave_up = True
            if self._pending.get(id_) is not None and method not in _GREETINGS:
                self.tell(methods.CANCELLED, methods.cancelled_params(id_))
            raise
        finally:
            self._pending.pop(id_)
            self._asked.discard(id_)
            if self._waiters.pop(id_, None) is not None:
                self._hearing.over(id_)

    async def _listen(self, wanted: JsonObject, agreed: Callable[[JsonObject], None]) -> bytes:
        """Send one `subscriptions/listen` and return when it is over; see `Listen`."""
        params = own_params({"notifications": wanted}, self._dialect)
        ids: list[int] = []

        def request(id_: int) -> tuple[str, JsonObject]:
            ids.append(id_)
            self._hearing.expect(id_, agreed)
            return methods.LISTEN, params

        try:
            return (await self._exchange(Waiter(None, self.counts), request)).result
        finally:
            for id_ in ids:
                self._hearing.forget(id_)

    async def _again(self, uri: str) -> None:
        """Follow a resource on a new connection; a server that refuses has lost it."""
        try:
            await self.subscribe(uri)
        except UpstreamLost:
            raise
        except UpstreamError:
            return

    def _send(self, message: bytes) -> None:
        if not self._pipe.send(message):
            self.counts.unsent += 1

    async def _set_level(self, level: str) -> None:
        """Tell the server the log level: the client's own, or the lowest that anybody wants."""
        known = self._hearing.level
        wanted = level if self._home.private else lower_level(known, level)
        if wanted == known or "logging" not in self.peer.capabilities:
            return
        self._hearing.level = wanted
        try:
            await self.request(methods.SET_LEVEL, {"level": wanted})
        except UpstreamError:
            self._hearing.level = None  # the call itself will say what is wrong, if anything is

    def _line(self, line: bytes) -> None:
        """Take one line of the child's standard output."""
        data = line.removeprefix(_BOM)
        if not data.startswith(b"{"):
            self._look_within(data)
            return
        try:
            message = decode(data)
        except BadMessage as error:
            waiter = self._pending.pop(salvage_id(data, error))
            if waiter is None and is_nameless(data, error):
                waiter = self._only_asked()
            if waiter is None:
                self._look_within(data)
            else:
                waiter.fail(garbled(reason=error.message))
            return
        if isinstance(message, Reply | Failure):
            self._settle(message)
        elif isinstance(message, Notification):
            self._place(message, len(data))
        else:
            self._hearing.asked(message, None)

    def _look_within(self, line: bytes) -> None:
        """Count a line that begins with something else; take the reply that stands behind it.

        Only one that is waited for: a server may print what it sends and what it gets.
        """
        self.counts.noise += 1
        if self._on_noise is not None:
            self._on_noise(line)
        for data in messages_within(line):
            try:
                message = decode(data)
            except BadMessage as error:
                waiter = self._pending.pop(salvage_id(data, error))
                if waiter is not None:
                    reason = f"other words stand before it on its line, and {error.message}"
                    waiter.fail(garbled(reason=reason))
                    return
                continue
            if isinstance(message, Reply | Failure) and self._pending.get(message.id) is not None:
                self._settle(message)
            return

    def _settle(self, message: Reply | Failure) -> None:
        waiter = self._pending.pop(message.id)
        if waiter is not None:
            waiter.answer(message)
            return
        only = self._only_asked() if message.id is None else None
        if only is not None and isinstance(message, Failure):
            only.fail(garbled(reason=f"an error that names no request: {message.message[:_SHOWN]}"))
        else:
            self.counts.late += 1

    def _only_asked(self) -> Waiter | None:
        """Return what alone waits for a reply: one that names no request can only be its own.

        Unless a request was given up before: then it may be the reply to that.
        """
        if self._gave_up or len(self._asked) != 1:
            return None
        [id_] = self._asked
        return self._pending.pop(id_)

    def _place(self, message: Notification, size: int) -> None:
        """Find the call that a notification of so many bytes belongs to."""
        if message.method == methods.PROGRESS:
            token, notice = methods.read_progress(message.params)
            waiter = self._pending.get(token)
            if waiter is None or waiter.call is None or not waiter.call.wants_progress:
                self.counts.unplaced += 1
            else:
                waiter.notify(notice, size)
            return
        only = self._only(logs=message.method == methods.LOG)
        told = self._hearing.told(message, None if only is None else only.call)
        if told is not None and only is not None:
            only.notify(told, size)

    def _only(self, *, logs: bool) -> Waiter | None:
        """Return the one call that a message can belong to: a shared pipe does not say.

        In the stateless era only calls that asked for logs can have caused one.
        """
        ours = list(self._waiters.values())
        if logs and self._dialect.era is Era.STATELESS:
            ours = [one for one in ours if one.call is not None and one.call.log_level is not None]
        return ours[0] if len(ours) == 1 else None

    def _fail_all(self, ended: "asyncio.Future[str]") -> None:
        self._hearing.close()
        for waiter in self._pending.drain():
            waiter.fail(UpstreamLost(message=f"the server {self._reason()}"))

    def _reason(self) -> str:
        return self._pipe.ended.result() if self._pipe.ended.done() else "was stopped"
