"""One channel for one link, and RPCs over it as bytes.

Never leaves an RPC running that nobody waits for, and never sends one twice.
"""

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Final, Protocol

import grpc

from thoughtgate.core.errors import (
    ConfigError,
    UpstreamError,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import GrpcTransport
from thoughtgate.protos.urls import Address, address_of
from thoughtgate.upstream.grpc.credentials import credentials
from thoughtgate.upstream.grpc.endings import Ending
from thoughtgate.upstream.grpc.failures import failure, status_of
from thoughtgate.upstream.grpc.metadata import Metadata, metadata_of
from thoughtgate.wire.strict import MAX_REQUEST, MAX_RESULT

KEEPALIVE: Final = 310.0
"""Seconds of silence after which a server is pinged; most forbid it more often than every 300."""

KEEPALIVE_PATIENCE: Final = 20.0
"""Seconds in which it must answer, and in which whatever was sent must have arrived."""

MAX_TRAILERS: Final = 16_384
"""Bytes of all headers or trailers of one answer."""

_FRAME = 65_536
_LOST = frozenset({
    grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN
})  # fmt: skip


Request = bytes | AsyncIterable[bytes] | Iterable[bytes]
"""One message, or those of a client that streams."""


class _Stream(Protocol):
    """What is used of an RPC that answers with a stream."""

    def read(self) -> Awaitable[object]: ...

    def code(self) -> Awaitable[object]: ...

    def cancel(self) -> bool: ...


async def connect(transport: GrpcTransport, *, limit: int = MAX_RESULT) -> "Connection":
    """Return a connection to a server, which is opened by the first RPC on it.

    `limit` is the largest message in bytes that is taken from the server.

    Raises:
        UpstreamUnreachable: The URL, a header or a file cannot be used.
    """
    address, metadata = _address(transport.url), metadata_of(transport.headers)
    target, options = f"dns:///{address.shown}", _options(limit, transport.tls.name)
    if not address.secure:
        if transport.tls.ca or transport.tls.cert or transport.tls.key:
            raise UpstreamUnreachable(
                message="files for TLS were given, but the url says grpc://; write grpcs://"
            )
        return Connection(grpc.aio.insecure_channel(target, options), metadata)
    proof = await asyncio.to_thread(credentials, transport.tls)
    return Connection(grpc.aio.secure_channel(target, proof, options), metadata)


class Connection:
    """A channel with the server's own metadata; belongs to one event loop.

    `seconds` is the deadline of an RPC from now, None for none. A request is one message, or an
    iterable of them where the client streams. `more` is metadata of one RPC.
    """

    def __init__(self, channel: grpc.aio.Channel, metadata: Metadata) -> None:
        self._channel = channel
        self._metadata = metadata
        self._methods: dict[tuple[str, bool, bool], Callable[..., Any]] = {}

    @property
    def lost(self) -> bool:
        """Tell whether the server cannot be reached any more."""
        return self._channel.get_state() in _LOST

    @property
    def _ready(self) -> bool:
        return self._channel.get_state() is grpc.ChannelConnectivity.READY

    async def answer(
        self,
        path: str,
        request: Request,
        *,
        seconds: float | None = None,
        more: Metadata = (),
    ) -> bytes:
        """Return the one message that a method answers with.

        Raises:
            UpstreamError: What went wrong, and whether the outcome is known.
        """
        outcome = await self._answered(path, request, seconds, self._metadata + more)
        if isinstance(outcome, UpstreamError):
            raise outcome
        if not isinstance(outcome, bytes):
            raise UpstreamGarbled(message="it answered without a message")
        return outcome

    def answers(
        self,
        path: str,
        request: Request,
        *,
        seconds: float | None = None,
        more: Metadata = (),
    ) -> "Answers":
        """Return the stream of messages that a method answers with; to be used in a `with`."""
        method = self._method(path, streams_in=not isinstance(request, bytes), streams_out=True)
        ready = self._ready
        try:
            call = method(request, timeout=seconds, metadata=self._metadata + more)
        except grpc.aio.BaseError:
            raise _closed() from None
        ending = None if isinstance(request, bytes) else Ending(call)
        return Answers(call, partial(self._outcome, ready=ready, ending=ending))

    async def over(self, reconnected: Callable[[], None] | None = None) -> str:
        """Return why the server cannot be reached any more, once it cannot; keeps it connected.

        A server may end one connection, and take the next: then `reconnected` runs.
        """
        state = self._channel.get_state(try_to_connect=True)
        while state not in _LOST:
            await self._channel.wait_for_state_change(state)
            state = self._channel.get_state(try_to_connect=True)
            if state is grpc.ChannelConnectivity.READY and reconnected is not None:
                reconnected()
        return "cannot be reached any more"

    async def aclose(self) -> None:
        """Close the channel; whoever still waits for an answer gets UpstreamLost."""
        await self._channel.close()

    def _method(self, path: str, *, streams_in: bool, streams_out: bool) -> Callable[..., Any]:
        key = (path, streams_in, streams_out)
        method = self._methods.get(key)
        if method is None:
            method = self._methods[key] = _opener(self._channel, streams_in, streams_out)(path)
        return method

    async def _answered(
        self, path: str, request: Request, seconds: float | None, metadata: Metadata
    ) -> object:
        method = self._method(path, streams_in=not isinstance(request, bytes), streams_out=False)
        ready = self._ready
        try:
            call = method(request, timeout=seconds, metadata=metadata)
        except grpc.aio.BaseError:
            return _closed()
        try:
            return await self._outcome(call, ready=ready)
        finally:
            call.cancel()

    async def _outcome(
        self, waiting: Awaitable[object], *, ready: bool, ending: Ending | None = None
    ) -> object:
        """Return what an RPC brings, or the error for what it raises.

        An RPC that began when the channel was `ready` may have been sent, whatever became of it.
        No error is raised here: its traceback would hold the RPC, which holds the connection open.
        Closing the channel cancels its RPCs, and with them whoever waits, as if he had been.
        """
        try:
            return await waiting
        except grpc.aio.AioRpcError as error:
            connected = ready or self._ready
            if ending is not None:
                return failure(status_of(ending.truly(error), connected=connected))
            return failure(status_of(error, connected=connected))
        except grpc.aio.BaseError:
            return UpstreamLost(message="the call could not be carried by gRPC")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return UpstreamLost(message="the connection was closed")


class Answers:
    """The messages of one stream, read by one reader; leaving it cancels the RPC."""

    def __init__(self, call: _Stream, outcome: Callable[[Awaitable[object]], Awaitable[object]]):
        self._call: _Stream | None = call
        self._outcome = outcome

    def __enter__(self) -> "Answers":
        """Begin to read."""
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel the RPC unless it is over, and let it go."""
        call, self._call = self._call, None
        if call is not None:
            call.cancel()

    async def next(self) -> bytes | None:
        """Return the next message, None when the server has ended the stream as it should.

        Raises:
            UpstreamError: What went wrong, and whether the outcome is known.
        """
        if self._call is None:
            raise _closed()
        outcome = await self._outcome(self._call.read())
        if isinstance(outcome, UpstreamError):
            raise outcome
        return outcome if isinstance(outcome, bytes) else None

    async def over(self, seconds: float) -> bool:
        """Tell whether the server ends the stream within so many seconds, as it should.

        The end comes behind all messages, so none is left then. That costs less than asking for a
        message that does not come; where it is not so, `next` says why, or what comes instead.
        """
        if self._call is None:
            return False
        try:
            async with asyncio.timeout(seconds):
                return await self._call.code() is grpc.StatusCode.OK
        except TimeoutError:
            return False


def _address(url: str) -> Address:
    try:
        return address_of(url)
    except ConfigError as error:
        raise UpstreamUnreachable(message=error.message) from None


def _opener(
    channel: grpc.aio.Channel, streams_in: bool, streams_out: bool
) -> Callable[[str], Callable[..., Any]]:
    if streams_in:
        return channel.stream_stream if streams_out else channel.stream_unary
    return channel.unary_stream if streams_out else channel.unary_unary


def _options(limit: int, name: str) -> list[tuple[str, Any]]:
    """Return the options of a channel; C-core's own retries touch only what was never processed."""
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", limit),
        ("grpc.max_send_message_length", MAX_REQUEST + _FRAME),
        ("grpc.absolute_max_metadata_size", MAX_TRAILERS),
        ("grpc.keepalive_time_ms", int(KEEPALIVE * 1000)),
        ("grpc.keepalive_timeout_ms", int(KEEPALIVE_PATIENCE * 1000)),
        ("grpc.primary_user_agent", "thoughtgate"),
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    if name:
        options.append(("grpc.ssl_target_name_override", name))
    return options


def _closed() -> UpstreamUnreachable:
    return UpstreamUnreachable(message="the connection was closed")
