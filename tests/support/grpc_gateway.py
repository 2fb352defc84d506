"""The gRPC face on a port of its own, in this process, before a whole gateway or a fake one.

Never leaves anything listening: the face is stopped with the block.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from tests.support.waiting import within
from thoughtgate.app.compose import App, opened
from thoughtgate.config.files import Loaded, parse
from thoughtgate.surface.grpc.ports import DomainGateway
from thoughtgate.surface.grpc.serving import GrpcFace
from thoughtgate.surface.settings import FaceSettings
from thoughtgate_proto.gateway.v1.gateway_pb2 import CallToolRequest, CallToolResponse
from thoughtgate_proto.gateway.v1.gateway_pb2_grpc import GatewayServerStub

if TYPE_CHECKING:
    from thoughtgate_proto.gateway.v1.gateway_pb2_grpc import GatewayServerAsyncStub

SETTINGS = FaceSettings(info={})
OPENING = 30.0


@dataclass
class Caller:
    """A client's channel to a face; `stub` has its methods."""

    face: GrpcFace
    port: int
    channel: grpc.aio.Channel
    stub: "GatewayServerAsyncStub"

    def call(
        self, name: str, arguments: bytes = b"", **options: Any
    ) -> "grpc.aio.UnaryStreamCall[CallToolRequest, CallToolResponse]":
        """Begin a call; options are those of the RPC, and `domain` and `progress`."""
        request = CallToolRequest(
            domain=options.pop("domain", ""),
            name=name,
            arguments_json=arguments,
            want_progress=options.pop("progress", False),
            meta_json=options.pop("meta", b""),
        )
        return self.stub.CallTool(request, **options)

    async def events(self, name: str, arguments: bytes = b"", **options: Any) -> list[Any]:
        """Return every event of a call, as (kind, message)."""
        stream = self.call(name, arguments, **options)
        try:
            return await within(_all(stream))
        finally:
            stream.cancel()


async def _all(stream: Any) -> list[Any]:
    kinds = [(event.WhichOneof("event"), event) async for event in stream]
    return [(kind, getattr(event, kind)) for kind, event in kinds]


@asynccontextmanager
async def grpc_serving(
    gateway: DomainGateway, settings: FaceSettings = SETTINGS, **options: Any
) -> AsyncIterator[Caller]:
    """Serve a gateway over gRPC and give a client of it."""
    face = GrpcFace(gateway, settings, **options)
    port = await face.open("127.0.0.1:0")

    async def at_once(future: "asyncio.Future[object]") -> None:
        await asyncio.wait([future], timeout=0)

    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub: GatewayServerAsyncStub = GatewayServerStub(channel)
            yield Caller(face, port, channel, stub)
    finally:
        await within(face.stop(at_once))


@asynccontextmanager
async def grpc_gateway(home: Path, config: str) -> AsyncIterator[tuple[App, Caller]]:
    """Serve a whole gateway over gRPC; its servers have listed their tools."""
    loaded = Loaded(settings=parse(config, "test", {}), file=None, home=home)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    async with opened(loaded, environ) as app:
        await within(app.ensure_listed(on_progress=lambda line: None), OPENING)
        async with grpc_serving(app.gateway) as caller:
            yield app, caller
