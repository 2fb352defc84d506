"""Asking a gRPC server what it speaks: both versions, missing imports, bounds, bad answers."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc import aio
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection as grpcio_reflection

from tests.support.grpc_orders import LEDGER, ORDERS, V1, V1ALPHA, files_of, orders_set, serving
from tests.support.grpc_reflector import Reflector, chain, failure, never
from tests.support.waiting import until, within
from thoughtgate.core.errors import UpstreamDenied, UpstreamGarbled, UpstreamTimeout
from thoughtgate.core.servers import GrpcTransport
from thoughtgate.upstream.grpc.channel import Connection, connect
from thoughtgate.upstream.grpc.reflection import Bounds, NoReflection, Told, reflect
from thoughtgate_proto.reflection.v1.reflection_pb2 import (
    Files,
    ReflectionRequest,
    ReflectionResponse,
    Services,
)

SMALL = Bounds(files=8, size=64 * 1024, questions=16, services=8, seconds=3.0)


def orders(**more: Any) -> Reflector:
    return Reflector(files_of(orders_set()), [ORDERS, LEDGER, "grpc.health.v1.Health"], **more)


def only(*names: str) -> Callable[[Sequence[str]], Sequence[str]]:
    return lambda services: [name for name in services if name in names]


def names(told: Told) -> list[str]:
    return [FileDescriptorProto.FromString(data).name for data in told.files]


@asynccontextmanager
async def channel(*handlers: grpc.GenericRpcHandler) -> AsyncIterator[Connection]:
    async with (
        serving(*handlers) as port,
        connected(port) as made,
    ):
        yield made


@asynccontextmanager
async def connected(port: int, **headers: str) -> AsyncIterator[Connection]:
    url = f"grpc://127.0.0.1:{port}"
    made = await connect(GrpcTransport(url=url, headers=headers))
    try:
        yield made
    finally:
        await made.aclose()


async def asked(
    reflector: Reflector, bounds: Bounds = SMALL, wanted: Sequence[str] = (ORDERS,)
) -> Told:
    async with channel(reflector.handler()) as made:
        told = await within(reflect(made, only(*wanted), bounds))
        await until(lambda: reflector.open == 0)
        return told


@pytest.mark.parametrize("version", [V1, V1ALPHA])
async def test_a_server_tells_of_itself_in_either_version(version: str) -> None:
    told = await asked(orders(version=version))
    assert told.version == version
    assert told.services == (ORDERS, LEDGER, "grpc.health.v1.Health")
    assert names(told) == ["shop/money.proto", "shop/orders.proto"]


async def test_imports_that_came_along_are_not_asked_for_again() -> None:
    reflector = orders(whole=True)
    told = await asked(reflector, wanted=(ORDERS, LEDGER))
    assert names(told) == ["shop/money.proto", "shop/orders.proto"]
    assert [one.WhichOneof("question") for one in reflector.asked] == [
        "list_services",
        "file_containing_symbol",
    ]


async def test_the_metadata_goes_with_the_question() -> None:
    reflector, seen = orders(), dict[str, Any]()

    class Looking(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> Any:
            seen.update(dict(details.invocation_metadata))
            return None

    async with (
        serving(Looking(), reflector.handler()) as port,
        connected(port, **{"X-Team": "shop"}) as made,
    ):
        await within(reflect(made, only(ORDERS), SMALL))
    assert seen["x-team"] == "shop"


async def test_a_server_without_reflection_says_what_to_do() -> None:
    async with channel() as made:
        with pytest.raises(NoReflection, match="give a descriptor set"):
            await within(reflect(made, only(ORDERS), SMALL))


async def test_a_refusal_is_the_callers_to_read_and_the_older_version_is_not_tried() -> None:
    async def refuse(request: Any, context: Any) -> AsyncIterator[bytes]:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "log in")
        yield b""

    handler = grpc.method_handlers_generic_handler(
        f"{V1}.ServerReflection",
        {"ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(refuse)},
    )
    older = orders(version=V1ALPHA)
    async with channel(handler, older.handler()) as made:
        with pytest.raises(UpstreamDenied):
            await within(reflect(made, only(ORDERS), SMALL))
    assert older.asked == []


async def test_an_import_that_the_server_does_not_have_is_left_out() -> None:
    reflector = orders()
    del reflector.files["shop/money.proto"]
    assert names(await asked(reflector)) == ["shop/orders.proto"]


@pytest.mark.parametrize("services", [("a.Ghost", ORDERS), (ORDERS, "a.Ghost")])
async def test_a_service_that_is_listed_and_not_declared_is_left_out(
    services: tuple[str, str],
) -> None:
    told = await asked(Reflector(files_of(orders_set()), services), wanted=services)
    assert names(told) == ["shop/money.proto", "shop/orders.proto"]


async def test_services_of_which_none_is_declared_are_an_error() -> None:
    ghosts = ("a.Ghost", "b.Ghost")
    with pytest.raises(UpstreamGarbled, match=r"b\.Ghost \(error 5\)"):
        await asked(Reflector(files_of(orders_set()), ghosts), wanted=ghosts)


async def test_files_that_import_one_another_end_after_each_was_asked_for_once() -> None:
    reflector = Reflector(dict(chain(6)), ["chain.Loop"])
    told = await asked(reflector, wanted=("chain.Loop",))
    assert len(told.files) == 6
    assert len(reflector.asked) == 7


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        (Bounds(files=8), "more than 8 files"),
        (Bounds(size=200), "200 bytes"),
        (Bounds(questions=5), "more than 5 questions"),
        (Bounds(services=0), "more than 0 services"),
    ],
)
async def test_a_server_that_tells_too_much_is_refused(bounds: Bounds, reason: str) -> None:
    with pytest.raises(UpstreamGarbled, match=reason):
        await asked(Reflector(dict(chain(30)), ["chain.Loop"]), bounds, ("chain.Loop",))


async def test_a_server_that_does_not_answer_costs_no_longer_than_its_bound() -> None:
    async def silent(request: Any, context: Any) -> AsyncIterator[bytes]:
        await never()
        yield b""

    handler = grpc.method_handlers_generic_handler(
        f"{V1}.ServerReflection",
        {"ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(silent)},
    )
    async with channel(handler) as made:
        with pytest.raises(UpstreamTimeout):
            await within(reflect(made, only(ORDERS), Bounds(seconds=0.05)))


def junk(request: ReflectionRequest) -> ReflectionResponse | None:
    if request.WhichOneof("question") == "list_services":
        return None
    return ReflectionResponse(files=Files(descriptors=[b"\xff\xff\xff"]))


def refusing(request: ReflectionRequest) -> ReflectionResponse:
    return failure(7)


def elsewhere(request: ReflectionRequest) -> ReflectionResponse | None:
    if request.WhichOneof("question") == "list_services":
        return None
    return ReflectionResponse(services=Services())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (junk, "no file descriptor"),
        (refusing, r"lists no services \(error 7\)"),
        (elsewhere, "does not tell of service"),
    ],
)
async def test_a_bad_answer_is_named_and_the_servers_words_are_not_repeated(
    answer: Callable[[ReflectionRequest], ReflectionResponse | None], reason: str
) -> None:
    reflector = orders(answer=answer)
    with pytest.raises(UpstreamGarbled, match=reason) as failed:
        await asked(reflector)
    assert "secret" not in str(failed.value)


async def test_bytes_that_are_no_message_are_named() -> None:
    async def junky(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for _ in requests:
            yield b"\xff\xff\xff"

    handler = grpc.method_handlers_generic_handler(
        f"{V1}.ServerReflection",
        {"ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(junky)},
    )
    async with channel(handler) as made:
        with pytest.raises(UpstreamGarbled, match="no such message"):
            await within(reflect(made, only(ORDERS), SMALL))


async def test_a_stream_that_ends_early_is_named() -> None:
    async def ended(requests: Any, context: Any) -> AsyncIterator[bytes]:
        for data in list[bytes]():
            yield data

    handler = grpc.method_handlers_generic_handler(
        f"{V1}.ServerReflection",
        {"ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(ended)},
    )
    async with channel(handler) as made:
        with pytest.raises(UpstreamGarbled, match="ended without an answer"):
            await within(reflect(made, only(ORDERS), SMALL))


async def test_the_services_of_grpcio_tell_of_themselves() -> None:
    server = aio.server()
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)
    served = ("grpc.health.v1.Health", grpcio_reflection.SERVICE_NAME)
    grpcio_reflection.enable_server_reflection(served, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with connected(port) as made:
            told = await within(reflect(made, only(*served), SMALL))
    finally:
        await server.stop(0)
    assert told.version == V1ALPHA
    assert set(told.services) == set(served)
    pool = descriptor_pool.DescriptorPool()
    for data in told.files:
        pool.AddSerializedFile(data)
    assert "Check" in pool.FindServiceByName("grpc.health.v1.Health").methods_by_name
