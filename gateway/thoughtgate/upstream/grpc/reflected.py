"""A link to any gRPC server: what it declares becomes tools, and their calls become RPCs.

Never offers a method that nobody asked for, and never follows a stream without end.
"""

import asyncio
import logging
from collections.abc import Sequence

from thoughtgate.core.calls import Call, Notice, NoticeKind
from thoughtgate.core.errors import (
    ConfigError,
    UpstreamError,
    UpstreamFailed,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamReplied,
    UpstreamUnreachable,
)
from thoughtgate.core.json import JsonObject
from thoughtgate.core.servers import Era, GrpcTransport, Streaming
from thoughtgate.core.tools import Tool
from thoughtgate.protos.descriptors import Method, decode
from thoughtgate.upstream.grpc.carrying import Rpc, answered, streamed
from thoughtgate.upstream.grpc.channel import Connection, connect
from thoughtgate.upstream.grpc.health import CHECK
from thoughtgate.upstream.grpc.metadata import Metadata
from thoughtgate.upstream.grpc.offered import (
    DESCRIBED,
    Declared,
    Offered,
    offer,
    read_set,
    wanted_of,
)
from thoughtgate.upstream.grpc.reflection import reflect
from thoughtgate.upstream.grpc.sending import key_of, seconds_for, trace_metadata
from thoughtgate.upstream.grpc.spelling import messages_of, reply_of, told_of
from thoughtgate.upstream.home import Home
from thoughtgate.upstream.opening import Means
from thoughtgate.upstream.ports import Changed, Counts, Peer
from thoughtgate.wire import codes, methods
from thoughtgate.wire.messages import Reply
from thoughtgate.wire.strict import MAX_RESULT, dumps

_log = logging.getLogger(__name__)

RECHECK = 300.0
"""Seconds after which a server is asked again what it declares."""

GAP = 1.0
"""Seconds between two such questions, however many reasons there are for one."""

_PROBE = 10.0
_TOOLS: JsonObject = {"tools": {"listChanged": True}}
_ROOM = 4
"""The part of the largest result that the messages of a stream may take: they stand in it twice."""

_NO_SUCH_METHOD = "UNIMPLEMENTED"


async def open_reflected(
    transport: GrpcTransport, home: Home, means: Means, *, recheck: float = RECHECK
) -> "ReflectedLink":
    """Return an open link to a gRPC server whose methods are tools.

    Raises:
        UpstreamError: Why not.
    """
    connection = await connect(transport, limit=means.max_result)
    link = ReflectedLink(
        transport, connection, server=home.server, limit=means.max_result, recheck=recheck
    )
    opened = False
    try:
        await link.greet()
        opened = True
    finally:
        if not opened:
            await link.aclose()
    return link


class ReflectedLink:
    """One gRPC server; what it declares is read when it opens, and again when it may differ."""

    def __init__(
        self,
        transport: GrpcTransport,
        connection: Connection,
        *,
        server: str,
        limit: int = MAX_RESULT,
        recheck: float = RECHECK,
    ) -> None:
        self.peer = Peer(era=Era.STATELESS, version="", server_info={}, capabilities=_TOOLS)
        self._server = server
        self.counts = Counts()
        self._transport = transport
        self._connection = connection
        self._limit = limit
        self._recheck = recheck
        self._offered: Offered | None = None
        self._doubt = asyncio.Event()

    @property
    def lost(self) -> bool:
        """Tell whether the server cannot be reached any more."""
        return self._connection.lost

    @property
    def questions(self) -> int:
        """Return 0: nobody is asked anything here."""
        return 0

    async def greet(self) -> None:
        """Find out whether the server is there, and what it declares.

        Raises:
            UpstreamError: Nobody is there, or nothing of what is wanted.
        """
        self._offered = await self._made(await self._declared())

    async def request(self, method: str, params: JsonObject) -> bytes:
        """Answer a request of our own from what the server declares; see `Link.request`."""
        if method == methods.TOOLS_LIST and self._offered is not None:
            return self._offered.page()
        raise _no_method(method)

    async def call(self, call: Call) -> Reply:
        """Carry a call out as one RPC; see `Link.call`."""
        offered = self._offered
        if offered is None or not isinstance(call.found, Tool):
            raise _no_method(call.found.name)
        method = offered.methods.get(call.found.name)
        if method is None:
            raise UpstreamRefused(message="it does not offer this method (any more)")
        now = asyncio.get_running_loop().time()
        rpc = Rpc(
            path=method.path,
            messages=messages_of(call, method, offered.descriptors),
            metadata=_metadata(call),
            until=now + seconds_for(call, now),
        )
        try:
            if method.server_streaming:
                return await self._streamed(call, offered, method, rpc)
            wire = await answered(self._connection, rpc)
        except UpstreamRefused as error:
            if error.data.get("grpcStatus") == _NO_SUCH_METHOD:
                self._doubt.set()
            raise
        return reply_of(decode(offered.descriptors, method.response, wire), self._limit)

    async def subscribe(self, uri: str) -> None:
        """Refuse: such a server has no resources."""
        raise _no_method(methods.SUBSCRIBE)

    async def unsubscribe(self, uris: Sequence[str]) -> None:
        """Do nothing: nothing is followed."""

    def tell(self, method: str, params: JsonObject) -> None:
        """Do nothing: such a server has no ear for it."""

    async def watch(self, changed: Changed) -> str:
        """Ask again what the server declares, when it may differ; see `Link.watch`."""
        loop = asyncio.get_running_loop()
        tasks = (
            loop.create_task(self._connection.over(self._doubt.set)),
            loop.create_task(self._looked(changed)),
        )
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        return next(iter(ended)).result()

    async def aclose(self) -> None:
        """Close the channel; calls that still wait get UpstreamLost."""
        await self._connection.aclose()

    async def _looked(self, changed: Changed) -> str:
        """Look again and again; return why the server is of no use any more."""
        while True:
            await self._until_doubtful()
            try:
                declared = await self._declared()
                if self._offered is None or declared.digest != self._offered.digest:
                    self._offered = await self._made(declared)
                    changed("tools")
            except UpstreamGarbled as error:
                return f"declares itself differently now: {error.message}"
            except UpstreamError as error:
                _log.warning(
                    "server %s: what it declares cannot be read again: %s",
                    self._server,
                    error.message,
                )
            await asyncio.sleep(min(GAP, self._recheck))

    async def _until_doubtful(self) -> None:
        try:
            async with asyncio.timeout(self._recheck):
                await self._doubt.wait()
        except TimeoutError:
            return
        finally:
            self._doubt.clear()

    async def _declared(self) -> Declared:
        """Return what the server declares now."""
        if not self._transport.descriptor_set:
            told = await reflect(self._connection, wanted_of(self._transport).services)
            self._say(told.version)
            return Declared(services=told.services, files=told.files)
        try:
            declared = await asyncio.to_thread(read_set, self._transport.descriptor_set)
        except ConfigError as error:
            raise UpstreamUnreachable(message=error.message) from None
        if self._offered is None:
            await self._found()
            self._say(DESCRIBED)
        return declared

    async def _made(self, declared: Declared) -> Offered:
        """Return what is offered; made in a thread, since large files take their time."""
        return await asyncio.to_thread(offer, declared, self._transport)

    async def _found(self) -> None:
        """Find out whether anybody is there who speaks gRPC, whatever the answer is."""
        try:
            await self._connection.answer(CHECK, b"", seconds=_PROBE)
        except (UpstreamRefused, UpstreamFailed):
            return

    def _say(self, version: str) -> None:
        self.peer = Peer(era=Era.STATELESS, version=version, server_info={}, capabilities=_TOOLS)

    async def _streamed(self, call: Call, offered: Offered, method: Method, rpc: Rpc) -> Reply:
        """Return the messages of a stream as one array, or the last of them."""
        last = self._transport.streaming is Streaming.LAST
        taken: list[JsonObject] = []
        number = size = 0

        async def arrived(wire: bytes) -> bool:
            nonlocal number, size
            value = decode(offered.descriptors, method.response, wire)
            spelled = dumps(value)
            size = len(spelled) + (0 if last else size)
            if size > self._limit // _ROOM:
                return False
            number += 1
            if last:
                taken.clear()
            taken.append(value)
            if call.wants_progress:
                notice = Notice(kind=NoticeKind.PROGRESS, params=told_of(spelled, number))
                await call.listener.notify(notice)
            return True

        whole = await streamed(self._connection, rpc, arrived)
        note = "" if whole else f"the stream was cut after {number} messages"
        if not last:
            value = {"messages": taken, "truncated": not whole}
            return reply_of(value, self._limit, note=note)
        if not taken:
            raise UpstreamGarbled(message="it streamed no message")
        return reply_of(taken[0], self._limit, note=note)


def _metadata(call: Call) -> Metadata:
    """Return what goes with one RPC beside the server's own headers."""
    traced = trace_metadata(call)
    key = key_of(call)
    return (*traced, ("idempotency-key", key)) if key else traced


def _no_method(name: str) -> UpstreamReplied:
    return UpstreamReplied(
        rpc_code=codes.METHOD_NOT_FOUND, rpc_message=f"a gRPC server has no {name[:120]}"
    )
