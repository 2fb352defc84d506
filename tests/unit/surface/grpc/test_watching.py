"""What a client over gRPC is told without asking again: changes of a list, and health."""

import asyncio
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from tests.support.fake_gateway import FakeGateway
from tests.support.grpc_gateway import Caller, grpc_serving
from tests.support.waiting import until, within
from thoughtgate.surface.settings import FaceSettings
from thoughtgate_proto.gateway.v1.gateway_pb2 import WatchToolsRequest

SERVICE = "thoughtgate.gateway.v1.GatewayServer"
SERVING, NOT_SERVING, UNKNOWN = 1, 2, 3


def watch(caller: Caller, **request: Any) -> Any:
    return caller.stub.WatchTools(WatchToolsRequest(**request))


async def test_a_watcher_is_told_at_once_and_at_each_change() -> None:
    gateway = FakeGateway().add("a")
    async with grpc_serving(gateway) as caller:
        stream = watch(caller)
        first = (await within(stream.read())).revision
        assert first == gateway.view("default").revision
        gateway.add("b")
        second = (await within(stream.read())).revision
        assert second == gateway.view("default").revision != first
        stream.cancel()


async def test_who_knows_the_revision_is_told_only_of_the_next_one() -> None:
    gateway = FakeGateway().add("a")
    async with grpc_serving(gateway) as caller:
        before = gateway.watchers
        stream = watch(caller, known_revision=gateway.view("default").revision)
        reading = asyncio.ensure_future(stream.read())
        await until(lambda: caller.face.watchers == 1)
        gateway.offer("name", "a prompt is no tool")
        gateway.add("b")
        assert (await within(reading)).revision == gateway.view("default").revision
        stream.cancel()
        await until(lambda: caller.face.watchers == 0)
        assert gateway.watchers == before


async def test_a_watcher_of_an_unknown_domain_is_refused() -> None:
    async with grpc_serving(FakeGateway()) as caller:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await within(watch(caller, domain="nope").read())
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_watchers_are_bounded_and_the_next_one_hears_when_to_come_back() -> None:
    settings = FaceSettings(info={}, max_streams=2)
    async with grpc_serving(FakeGateway(), settings) as caller:
        streams = [watch(caller) for _ in range(2)]
        for stream in streams:
            await within(stream.read())
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await within(watch(caller).read())
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        streams.pop().cancel()
        await until(lambda: caller.face.watchers == 1)
        stream = watch(caller)
        assert (await within(stream.read())).revision
        stream.cancel()
        streams.pop().cancel()


async def test_health_says_what_readiness_says() -> None:
    ready = True

    async def is_ready() -> bool:
        return ready

    async with grpc_serving(FakeGateway(), ready=is_ready) as caller:
        health = HealthStub(caller.channel)
        assert await _checked(health) == SERVING
        assert await _checked(health, SERVICE) == SERVING
        ready = False
        assert await _checked(health) == NOT_SERVING
        ready = True
        caller.face.drain()
        assert await _checked(health) == NOT_SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await _checked(health, "nope")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def _checked(health: Any, service: str = "") -> Any:
    request = health_pb2.HealthCheckRequest(service=service)
    return (await within(health.Check(request))).status


async def test_a_watcher_of_health_hears_that_the_gateway_stops_and_its_stream_ends() -> None:
    async def is_ready() -> bool:
        return True

    async with grpc_serving(FakeGateway(), ready=is_ready) as caller:
        stream = HealthStub(caller.channel).Watch(health_pb2.HealthCheckRequest())
        assert (await within(stream.read())).status == SERVING
        unknown = HealthStub(caller.channel).Watch(health_pb2.HealthCheckRequest(service="nope"))
        assert (await within(unknown.read())).status == UNKNOWN
        caller.face.drain()
        assert (await within(stream.read())).status == NOT_SERVING
        caller.face.close()
        assert await within(stream.read()) is grpc.aio.EOF
        assert await within(unknown.read()) is grpc.aio.EOF


async def test_neither_health_nor_reflection_is_there_unless_switched_on() -> None:
    async with grpc_serving(FakeGateway()) as caller:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await _checked(HealthStub(caller.channel))
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        stream = reflected(caller, "v1alpha", ServerReflectionRequest(list_services=""))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await within(_all(stream))
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def reflected(caller: Caller, version: str, *requests: ServerReflectionRequest) -> Any:
    method: Any = caller.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=ServerReflectionRequest.SerializeToString,
        response_deserializer=ServerReflectionResponse.FromString,
    )
    return method(iter(requests))


async def _all(stream: Any) -> list[Any]:
    return [answer async for answer in stream]


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_answers_each_question_in_order(version: str) -> None:
    gateway_file = "thoughtgate_proto/gateway/v1/gateway.proto"
    questions = [
        ServerReflectionRequest(list_services=""),
        ServerReflectionRequest(file_containing_symbol=SERVICE),
        ServerReflectionRequest(file_by_filename="google/protobuf/timestamp.proto"),
        ServerReflectionRequest(all_extension_numbers_of_type="thoughtgate.gateway.v1.Run"),
        ServerReflectionRequest(file_by_filename="google/protobuf/struct.proto"),
        ServerReflectionRequest(file_containing_symbol="google.protobuf.FileDescriptorProto"),
        ServerReflectionRequest(file_containing_symbol="\x00"),
        ServerReflectionRequest(),
    ]
    async with grpc_serving(FakeGateway(), reflection=True) as caller:
        answers = await within(_all(reflected(caller, version, *questions)))
    services, by_symbol, by_name, extensions, *unknown = answers
    assert [one.name for one in services.list_services_response.service] == [SERVICE]
    assert len(by_symbol.file_descriptor_response.file_descriptor_proto) == 4
    assert gateway_file.encode() in by_symbol.file_descriptor_response.file_descriptor_proto[0]
    assert len(by_name.file_descriptor_response.file_descriptor_proto) == 1
    assert extensions.all_extension_numbers_response.base_type_name.endswith(".Run")
    assert [one.error_response.error_code for one in unknown] == [5] * 4


async def test_grpc_s_own_client_of_reflection_finds_the_service() -> None:
    async with grpc_serving(FakeGateway(), reflection=True) as caller:
        found = await within(asyncio.to_thread(_looked_up, caller.port))
    assert found == ([SERVICE], "thoughtgate_proto/gateway/v1/gateway.proto")


def _looked_up(port: int) -> tuple[list[str], str]:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        return list(database.get_services()), database.FindFileContainingSymbol(SERVICE).name
