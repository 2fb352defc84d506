"""The end of the gRPC face: what runs may end, what watches ends at once, nothing hangs."""

import asyncio

import grpc
import pytest

from tests.support.fake_gateway import FakeGateway, done
from tests.support.grpc_gateway import Caller, grpc_serving
from tests.support.waiting import until, within
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import ConfigError
from thoughtgate.surface.grpc.serving import GrpcFace
from thoughtgate.surface.settings import FaceSettings
from thoughtgate_proto.gateway.v1.gateway_pb2 import WatchToolsRequest


class Held:
    """A tool that answers when it is let."""

    def __init__(self) -> None:
        self.started, self.free, self.over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, call: Call) -> Result:
        self.started.set()
        try:
            await self.free.wait()
        finally:
            self.over.set()
        return done("late")


async def patiently(future: "asyncio.Future[object]") -> None:
    await within(asyncio.wait([future]))


async def not_at_all(future: "asyncio.Future[object]") -> None:
    await asyncio.wait([future], timeout=0)


async def refused(caller: Caller) -> bool:
    try:
        await caller.events("echo")
    except grpc.aio.AioRpcError as error:
        return error.code() is grpc.StatusCode.UNAVAILABLE
    return False


async def test_a_call_in_flight_ends_well_and_nothing_new_is_taken() -> None:
    held = Held()
    async with grpc_serving(FakeGateway().add("held", held).add("echo")) as caller:
        running = asyncio.ensure_future(caller.events("held"))
        await within(held.started.wait())
        stopping = asyncio.ensure_future(caller.face.stop(patiently))
        await until(lambda: caller.channel.get_state() is not grpc.ChannelConnectivity.READY)
        assert await refused(caller)
        held.free.set()
        ((kind, _),) = await within(running)
        await within(stopping)
    assert kind == "result"


async def test_a_call_that_does_not_end_in_time_hears_that_its_outcome_is_unknown() -> None:
    held = Held()
    async with grpc_serving(FakeGateway().add("held", held)) as caller:
        running = asyncio.ensure_future(caller.events("held"))
        await within(held.started.wait())
        await within(caller.face.stop(not_at_all))
        await within(held.over.wait())
        with pytest.raises(grpc.aio.AioRpcError, match="may have been carried out") as caught:
            await within(running)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_watcher_does_not_hold_up_the_end() -> None:
    async with grpc_serving(FakeGateway()) as caller:
        stream = caller.stub.WatchTools(WatchToolsRequest())
        await within(stream.read())
        await within(caller.face.stop(patiently))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await within(stream.read())
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_face_that_was_never_opened_ends_too() -> None:
    await within(GrpcFace(FakeGateway(), FaceSettings(info={})).stop(patiently))


async def test_it_may_be_stopped_twice() -> None:
    async with grpc_serving(FakeGateway()) as caller:
        await within(caller.face.stop(patiently))
        await within(caller.face.stop(patiently))


async def test_an_address_that_cannot_be_had_is_a_fault_of_the_configuration() -> None:
    face = GrpcFace(FakeGateway(), FaceSettings(info={}))
    with pytest.raises(ConfigError, match="--grpc-port"):
        await face.open("192.0.2.1:1")
    await within(face.stop(patiently))


async def test_nothing_is_left_on_the_loop() -> None:
    before = asyncio.all_tasks()
    held = Held()
    async with grpc_serving(FakeGateway().add("held", held)) as caller:
        running = asyncio.ensure_future(caller.events("held"))
        await within(held.started.wait())
        await within(caller.face.stop(not_at_all))
        with pytest.raises(grpc.aio.AioRpcError):
            await within(running)
    await until(lambda: asyncio.all_tasks() <= before)
