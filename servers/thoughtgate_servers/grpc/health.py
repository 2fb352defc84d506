"""The standard health service, `grpc.health.v1.Health`, for a server of one service.

Never says that a service is served which this server does not have.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from thoughtgate_proto.health.v1.health_pb2 import (
    STATUS_NOT_SERVING,
    STATUS_SERVICE_UNKNOWN,
    STATUS_SERVING,
    HealthRequest,
    HealthResponse,
)


class Health:
    """Says SERVING for the whole server and for `service` until `stop`."""

    def __init__(self, service: str) -> None:
        self._known = {"", service}
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Say from now on that nothing is served."""
        self._stopped.set()

    def handler(self) -> grpc.GenericRpcHandler:
        """Return what a server needs to answer."""
        return grpc.method_handlers_generic_handler(
            "grpc.health.v1.Health",
            {
                "Check": grpc.unary_unary_rpc_method_handler(
                    self._check,
                    request_deserializer=HealthRequest.FromString,
                    response_serializer=HealthResponse.SerializeToString,
                ),
                "Watch": grpc.unary_stream_rpc_method_handler(
                    self._watch,
                    request_deserializer=HealthRequest.FromString,
                    response_serializer=HealthResponse.SerializeToString,
                ),
            },
        )

    async def _check(self, request: HealthRequest, context: Any) -> HealthResponse:
        if request.service not in self._known:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return self._said(request.service)

    async def _watch(self, request: HealthRequest, context: Any) -> AsyncIterator[HealthResponse]:
        del context
        yield self._said(request.service)
        await self._stopped.wait()
        yield self._said(request.service)

    def _said(self, service: str) -> HealthResponse:
        if service not in self._known:
            status = STATUS_SERVICE_UNKNOWN
        else:
            status = STATUS_NOT_SERVING if self._stopped.is_set() else STATUS_SERVING
        return HealthResponse(status=status)
