"""`grpc.health.v1.Health`: whether the gateway can do its work, as `/readyz` says it.

Never names a server, and never has one asked more often than an answer is remembered.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc

from thoughtgate.core.errors import UnknownTarget
from thoughtgate.surface.grpc.rpcs import Rpc, Rpcs
from thoughtgate.surface.grpc.servicer import SERVICE, read
from thoughtgate_proto.health.v1.health_pb2 import (
    STATUS_NOT_SERVING,
    STATUS_SERVICE_UNKNOWN,
    STATUS_SERVING,
    HealthRequest,
    HealthResponse,
    Status,
)

HEALTH: Final = "grpc.health.v1.Health"

Ready = Callable[[], Awaitable[bool]]
"""Tells whether the gateway is ready."""

_KNOWN: Final = frozenset({"", SERVICE})


class HealthService:
    """Answers `Check` and `Watch`; a watcher is told within `pause` seconds of a change."""

    def __init__(self, ready: Ready, *, pause: float) -> None:
        self._ready = ready
        self._pause = pause
        self._stopping = asyncio.Event()
        self._closed = asyncio.Event()

    def stop(self) -> None:
        """Not serve from now on."""
        self._stopping.set()

    def close(self) -> None:
        """End everything that watches."""
        self.stop()
        self._closed.set()

    def handler(self, rpcs: Rpcs) -> grpc.GenericRpcHandler:
        """Return what a gRPC server takes."""
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Check": grpc.unary_unary_rpc_method_handler(rpcs.served(self._check)),
            "Watch": grpc.unary_stream_rpc_method_handler(rpcs.served(self._watch)),
        }
        return grpc.method_handlers_generic_handler(HEALTH, methods)

    async def _check(self, data: bytes, rpc: Rpc) -> bytes:
        del rpc
        name = read(HealthRequest, data).service
        if name not in _KNOWN:
            raise UnknownTarget(name=name, kind="service")
        return _told(await self._status())

    async def _watch(self, data: bytes, rpc: Rpc) -> None:
        known = read(HealthRequest, data).service in _KNOWN
        last = None
        while not self._closed.is_set():
            status = await self._status() if known else STATUS_SERVICE_UNKNOWN
            if status != last:
                await rpc.write(_told(status))
                last = status
            awaited = self._closed if self._stopping.is_set() else self._stopping
            try:
                async with asyncio.timeout(self._pause):
                    await awaited.wait()
            except TimeoutError:
                continue

    async def _status(self) -> Status.ValueType:
        ready = not self._stopping.is_set() and await self._ready()
        return STATUS_SERVING if ready and not self._stopping.is_set() else STATUS_NOT_SERVING


def _told(status: Status.ValueType) -> bytes:
    return HealthResponse(status=status).SerializeToString()
