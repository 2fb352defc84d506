"""The gRPC face on its port: made, opened, drained, and ended within the time that is left.

Never listens beyond loopback; the configuration has been held to that.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import grpc

from thoughtgate.core.errors import ConfigError
from thoughtgate.surface.grpc.health import HealthService, Ready
from thoughtgate.surface.grpc.ports import DomainGateway
from thoughtgate.surface.grpc.reflection import ReflectionService
from thoughtgate.surface.grpc.rpcs import Rpcs
from thoughtgate.surface.grpc.servicer import GatewayService
from thoughtgate.surface.settings import FaceSettings

Wait = Callable[["asyncio.Future[object]"], Awaitable[object]]
"""Waits for something, but only as long as there is time."""

PATIENCE: Final = 60.0
"""Seconds in which a caller takes a message that waits for it."""

CONNECTIONS: Final = 1_024
"""Connections at once; further ones are closed at once."""

_LONG: Final = 86_400.0
"""Seconds that gRPC itself leaves to calls in flight: it is we who end them."""

_LAST: Final = 0.5
"""Seconds for telling those that were ended."""

_STREAMS: Final = 1_024
"""RPCs that one connection may have open at once; further ones wait at the client."""


class GrpcFace:
    """Serves the gateway over gRPC; belongs to one event loop.

    `ready` tells what health answers, None serves no health; `patience` is how long a caller may
    leave a message that waits for it, `connections` how many there may be at once.
    """

    def __init__(
        self,
        gateway: DomainGateway,
        settings: FaceSettings,
        *,
        ready: Ready | None = None,
        reflection: bool = False,
        patience: float = PATIENCE,
        connections: int = CONNECTIONS,
    ) -> None:
        self._rpcs = Rpcs(most=settings.max_running + settings.max_streams, patience=patience)
        self._service = GatewayService(gateway, settings)
        self._health = None if ready is None else HealthService(ready, pause=settings.keepalive)
        self._server = grpc.aio.server(
            options=_options(settings.max_body, connections),
            compression=grpc.Compression.NoCompression,
        )
        handlers = [self._service.handler(self._rpcs)]
        if self._health is not None:
            handlers.append(self._health.handler(self._rpcs))
        if reflection:
            handlers.extend(ReflectionService().handlers(self._rpcs))
        self._server.add_generic_rpc_handlers(tuple(handlers))

    @property
    def watchers(self) -> int:
        """Return how many clients watch lists of tools."""
        return self._service.watchers

    async def open(self, address: str) -> int:
        """Listen at `HOST:PORT` and return the port.

        Raises:
            ConfigError: The address cannot be had.
        """
        try:
            port: int = self._server.add_insecure_port(address)
        except RuntimeError:
            message = f"cannot serve gRPC at {address}: it is taken, or not an address of ours"
            raise ConfigError(message=f"{message}; choose another --grpc-port") from None
        await self._server.start()
        return port

    def drain(self) -> None:
        """Say in health that the gateway takes nothing new; go on with everything else."""
        if self._health is not None:
            self._health.stop()

    def close(self) -> None:
        """End every stream that watches."""
        self._service.close()
        if self._health is not None:
            self._health.close()

    async def stop(self, wait: Wait) -> None:
        """Take nothing new, let calls in flight finish as `wait` says, end those that do not."""
        self.close()
        stopping = asyncio.ensure_future(self._server.stop(_LONG))
        idle: asyncio.Future[object] = asyncio.ensure_future(self._rpcs.idle())
        await wait(idle)
        self._rpcs.end()
        await asyncio.wait([idle], timeout=_LAST)
        idle.cancel()
        await self._server.stop(0)
        await stopping


def _options(max_body: int, connections: int) -> list[tuple[str, int]]:
    """Return the limits that gRPC's own library holds a client to."""
    return [
        ("grpc.so_reuseport", 1),  # the port is reserved, and workers share it
        ("grpc.max_receive_message_length", max_body),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", 8_192),
        ("grpc.absolute_max_metadata_size", 16_384),
        ("grpc.max_concurrent_streams", _STREAMS),
        ("grpc.max_allowed_incoming_connections", connections),
        ("grpc.keepalive_time_ms", 60_000),  # a client that is gone without a word is noticed
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
        ("grpc.http2.max_ping_strikes", 5),
    ]
