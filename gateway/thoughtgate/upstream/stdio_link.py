"""A link over the pipes of a child process, in either era.

Never waits for one caller on behalf of another: the pipe is read as fast as it fills.
"""

import asyncio
from collections.abc import Callable, Mapping

from thoughtgate.core.calls import Call, Notice, NoticeKind
from thoughtgate.core.errors import UpstreamError, UpstreamLost, UpstreamUnreachable
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era, StdioTransport
from thoughtgate.upstream.child import Child, Patience
from thoughtgate.upstream.eras import Dialect, call_params, lower_level, own_params
from thoughtgate.upstream.ports import Counts, Peer
from thoughtgate.upstream.waiting import Waiter, garbled
from thoughtgate.wire import codes, methods, stateless
from thoughtgate.wire.ids import Pending
from thoughtgate.wire.messages import (
    BadMessage,
    Failure,
    Notification,
    Reply,
    Request,
    decode,
    encode_failure,
    encode_notification,
    encode_reply,
    encode_request,
)
from thoughtgate.wire.salvage import salvage_id
from thoughtgate.wire.strict import MAX_RESULT

_GREETINGS = frozenset({methods.INITIALIZE, methods.DISCOVER})  # may not be cancelled
_BOM = b"\xef\xbb\xbf"


class StdioLink:
    """One child and everything in flight on its pipes."""

    def __init__(
        self,
        dialect: Dialect,
        *,
        patience: Patience,
        limit: int = MAX_RESULT,
        on_noise: Callable[[bytes], None] | None = None,
    ) -> None:
        self.peer = Peer(era=dialect.era, version="", server_info={}, capabilities={})
        self.counts = Counts()
        self._dialect = dialect
        self._patience = patience
        self._pending: Pending[Waiter] = Pending()
        self._calls: set[Waiter] = set()
        self._child = Child(self._line, cap=limit)
        self._on_noise = on_noise
        self._level: str | None = None
        self._changed: Callable[[], None] | None = None

    @property
    def lost(self) -> bool:
        """Tell whether the child has ended."""
        return self._child.ended.done()

    async def start(self, transport: StdioTransport, environ: Mapping[str, str]) -> None:
        """Start the child.

        Raises:
            UpstreamUnreachable: It cannot be started.
        """
        await self._child.start(transport, environ)
        self._child.ended.add_done_callback(self._fail_all)

    async def greet(self) -> None:
        """Open the conversation.

        Raises:
            UpstreamError: The child does not speak this era, or has ended.
        """
        self.peer = await self._dialect.greet(self.request)
        if self.peer.era is Era.HANDSHAKE:
            self._notify(methods.INITIALIZED, {})

    def speak(self, dialect: Dialect) -> None:
        """Go on in another era, after a greeting that was refused."""
        self._dialect = dialect

    async def request(self, method: str, params: JsonObject) -> bytes:
        """Send a request of our own and return its result; see `Link.request`."""
        dressed = own_params(params, self._dialect)
        return await self._exchange(Waiter(None, self.counts), method, lambda _: dressed)

    async def call(self, call: Call) -> bytes:
        """Call a tool and return its result; see `Link.call`."""
        if call.log_level is not None and self._dialect.era is Era.HANDSHAKE:
            await self._set_level(call.log_level)
        waiter = Waiter(call, self.counts)
        self._calls.add(waiter)
        try:
            result = await self._exchange(
                waiter, methods.TOOLS_CALL, lambda id_: call_params(call, id_, self._dialect)
            )
        finally:
            self._calls.discard(waiter)
        return self._dialect.check(result)

    async def watch(self, changed: Callable[[], None]) -> str:
        """Follow the child until it ends; see `Link.watch`."""
        self._changed = changed
        listening: asyncio.Task[bytes] | None = None
        if self._dialect.era is Era.STATELESS:
            params = stateless.listen_params({})
            listening = asyncio.ensure_future(self.request(methods.LISTEN, params))
            listening.add_done_callback(_forget)
        try:
            return await asyncio.shield(self._child.ended)
        finally:
            if listening is not None:
                listening.cancel()

    async def aclose(self) -> None:
        """End the child within a bound; calls that still wait get UpstreamLost."""
        await self._child.stop(self._patience)
        self._fail_all(self._child.ended)

    async def _exchange(
        self, waiter: Waiter, method: str, params: Callable[[int], JsonObject]
    ) -> bytes:
        await self._child.room()  # a caller that gives up here has sent nothing
        id_ = self._pending.add(waiter)
        try:
            if not self._child.write(encode_request(id_, method, params(id_)) + b"\n"):
                raise UpstreamUnreachable(message=f"the server is gone: {self._reason()}")
            return await waiter.outcome()
        except asyncio.CancelledError:
            if self._pending.get(id_) is not None and method not in _GREETINGS:
                self._notify(methods.CANCELLED, methods.cancelled_params(id_))
            raise
        finally:
            self._pending.pop(id_)

    def _notify(self, method: str, params: JsonObject) -> None:
        self._child.write(encode_notification(method, params or None) + b"\n")

    async def _set_level(self, level: str) -> None:
        """Lower the session's log level when a caller wants more than came so far."""
        wanted = lower_level(self._level, level)
        if wanted == self._level or "logging" not in self.peer.capabilities:
            return
        self._level = wanted
        try:
            await self.request(methods.SET_LEVEL, {"level": wanted})
        except UpstreamError:
            self._level = None  # the call itself will say what is wrong, if anything is

    def _line(self, line: bytes) -> None:
        """Take one line of the child's standard output."""
        data = line.removeprefix(_BOM)
        if not data.startswith(b"{"):
            self._note_noise(data)
            return
        try:
            message = decode(data)
        except BadMessage as error:
            waiter = self._pending.pop(salvage_id(data, error))
            if waiter is None:
                self._note_noise(data)
            else:
                waiter.fail(garbled(reason=error.message))
            return
        if isinstance(message, Reply | Failure):
            self._settle(message)
        elif isinstance(message, Notification):
            self._place(message)
        else:
            self._refuse(message)

    def _note_noise(self, line: bytes) -> None:
        self.counts.noise += 1
        if self._on_noise is not None:
            self._on_noise(line)

    def _settle(self, message: Reply | Failure) -> None:
        waiter = self._pending.pop(message.id)
        if waiter is None:
            self.counts.late += 1
        else:
            waiter.answer(message)

    def _place(self, message: Notification) -> None:
        """Find the call that a notification belongs to."""
        if message.method == methods.PROGRESS:
            token, notice = methods.read_progress(message.params)
            waiter = self._pending.get(token)
            if waiter is None or waiter.call is None or not waiter.call.wants_progress:
                self.counts.unplaced += 1
            else:
                waiter.notify(notice)
        elif message.method == methods.LOG:
            self._place_log(message.params)
        elif message.method == methods.TOOLS_CHANGED and self._changed is not None:
            self._changed()

    def _place_log(self, params: JsonObject) -> None:
        """Give a log message to the one call it can belong to: a shared pipe does not say.

        In the stateless era only calls that asked for logs can have caused it.
        """
        ours = [
            waiter
            for waiter in self._calls
            if self._dialect.era is Era.HANDSHAKE or _level_of(waiter) is not None
        ]
        if len(ours) != 1:
            self.counts.unplaced += 1
        elif methods.loud_enough(params, _level_of(ours[0])):
            ours[0].notify(Notice(kind=NoticeKind.LOG, params=params))

    def _refuse(self, message: Request) -> None:
        """Answer a server's request: we have declared nothing but being alive."""
        if message.method == methods.PING:
            self._child.write(encode_reply(message.id, b"{}") + b"\n")
            return
        self.counts.refused += 1
        refusal = encode_failure(message.id, codes.METHOD_NOT_FOUND, "not offered by this client")
        self._child.write(refusal + b"\n")

    def _fail_all(self, ended: "asyncio.Future[str]") -> None:
        for waiter in self._pending.drain():
            waiter.fail(UpstreamLost(message=f"the server {self._reason()}"))

    def _reason(self) -> str:
        return self._child.ended.result() if self._child.ended.done() else "was stopped"


def _level_of(waiter: Waiter) -> str | None:
    return None if waiter.call is None else waiter.call.log_level


def _forget(task: "asyncio.Task[bytes]") -> None:
    """Take a finished subscription's outcome: a server that has none may say so."""
    if not task.cancelled():
        task.exception()
