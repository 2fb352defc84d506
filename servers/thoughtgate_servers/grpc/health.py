"""The standard health service, `grpc.health.v1.Health`, for a server of one service.

Never needs a package for it: the two messages hold one field each.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3


def _messages() -> tuple[type[Message], type[Message]]:
    """Return the classes of request and response, from a pool that no other package shares."""
    file = descriptor_pb2.FileDescriptorProto(
        name="health.proto", package="grpc.health.v1", syntax="proto3"
    )
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, field, kind in (
        ("HealthCheckRequest", "service", kinds.TYPE_STRING),
        ("HealthCheckResponse", "status", kinds.TYPE_INT32),
    ):
        # an enum and an int32 are the same on the wire
        file.message_type.add(name=name).field.add(
            name=field, number=1, type=kind, label=kinds.LABEL_OPTIONAL
        )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    request = pool.FindMessageTypeByName("grpc.health.v1.HealthCheckRequest")
    response = pool.FindMessageTypeByName("grpc.health.v1.HealthCheckResponse")
    return message_factory.GetMessageClass(request), message_factory.GetMessageClass(response)


class Health:
    """Says SERVING for the whole server and for `service` until `stop`."""

    def __init__(self, service: str) -> None:
        self._known = {"", service}
        self._stopped = asyncio.Event()
        self._request, self._response = _messages()

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
                    request_deserializer=self._request.FromString,
                    response_serializer=self._response.SerializeToString,
                ),
                "Watch": grpc.unary_stream_rpc_method_handler(
                    self._watch,
                    request_deserializer=self._request.FromString,
                    response_serializer=self._response.SerializeToString,
                ),
            },
        )

    async def _check(self, request: Any, context: Any) -> Message:
        if request.service not in self._known:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return self._said(request.service)

    async def _watch(self, request: Any, context: Any) -> AsyncIterator[Message]:
        del context
        yield self._said(request.service)
        await self._stopped.wait()
        yield self._said(request.service)

    def _said(self, service: str) -> Message:
        if service not in self._known:
            status = SERVICE_UNKNOWN
        else:
            status = NOT_SERVING if self._stopped.is_set() else SERVING
        return self._response(status=status)
