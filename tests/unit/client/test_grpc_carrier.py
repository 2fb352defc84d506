"""The client library over gRPC, where servers are away, are others, or break the protocol."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from tests.support.fake_gateway import FakeGateway, done
from tests.support.grpc_gateway import grpc_serving
from tests.support.waiting import within
from thoughtgate.core.calls import Call, Result
from thoughtgate_client import (
    ConnectionLost,
    Garbled,
    Refused,
    Unreachable,
    connect,
)
from thoughtgate_proto.gateway.v1 import gateway_pb2 as wire
from thoughtgate_proto.tools.v1.tool_server_pb2 import CallResult, Progress, Tool

SERVICE = "thoughtgate.gateway.v1.GatewayServer"
OBJECT = b'{"type":"object"}'

Serve = Callable[[Any], Awaitable[None]]


@asynccontextmanager
async def hostile(*events: wire.CallToolResponse, tool: Tool | None = None) -> AsyncIterator[str]:
    """Serve a gateway that answers each call with these events, well-formed or not."""

    async def domains(request: bytes, context: Any) -> bytes:
        domain = wire.Domain(name="default")
        return wire.ListDomainsResponse(domains=[domain]).SerializeToString()

    async def tools(request: bytes, context: Any) -> bytes:
        shown = tool or Tool(name="x", input_schema_json=OBJECT)
        return wire.ListToolsResponse(tools=[shown]).SerializeToString()

    async def call(request: bytes, context: Any) -> None:
        for event in events:
            await context.write(event.SerializeToString())

    server = grpc.aio.server()
    one, many = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "ListDomains": one(domains),
        "ListTools": one(tools),
        "CallTool": many(call),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        await server.stop(None)


def result(**fields: Any) -> wire.CallToolResponse:
    return wire.CallToolResponse(result=CallResult(**fields))


PROGRESS = wire.CallToolResponse(progress=Progress(progress=1))


@pytest.mark.parametrize(
    "events",
    [
        (),
        (PROGRESS,),
        (result(), result()),
        (result(), PROGRESS),
        (result(content_json=b"{}"),),
        (result(content_json=b"[1]"),),
        (result(content_json=b"[{"),),
        (result(content_json=b'[{"type":"\xff"}]'),),
        (result(structured_content_json=b"nope"),),
        (result(meta_json=b"nope"),),
    ],
)
async def test_an_answer_that_breaks_the_protocol_is_garbled(
    events: tuple[wire.CallToolResponse, ...],
) -> None:
    async with hostile(*events) as url, connect(url) as gate:
        with pytest.raises(Garbled):
            await within(gate.try_call("x"))


async def test_a_schema_that_is_no_json_is_garbled() -> None:
    async with hostile(tool=Tool(name="x", input_schema_json=b"{")) as url, connect(url) as gate:
        with pytest.raises(Garbled):
            await within(gate.tools())


async def test_a_result_may_break_an_output_schema_that_has_changed_since() -> None:
    async def number(call: Call) -> Result:
        return done(structured={"n": 3})

    schema = {"type": "object", "properties": {"n": {"type": "string"}}}
    gateway = FakeGateway().add("count", number, outputSchema=schema)
    async with grpc_serving(gateway) as caller, connect(f"grpc://127.0.0.1:{caller.port}") as gate:
        with pytest.raises(Garbled, match="output schema"):
            await within(gate.call("count"))
        gateway.add("count", number, outputSchema={"type": "object"})
        assert (await within(gate.call("count"))).structured == {"n": 3}


async def test_an_absent_structured_result_is_none_and_null_is_too() -> None:
    async with hostile(result(structured_content_json=b"null")) as url, connect(url) as gate:
        assert (await within(gate.call("x"))).structured is None


@pytest.mark.parametrize(
    "url", ["grpc://", "grpc://127.0.0.1", "grpc://127.0.0.1:x", "grpc://127.0.0.1:1/a/b", "grpc:"]
)
async def test_an_address_that_is_none_says_what_one_looks_like(url: str) -> None:
    with pytest.raises(Unreachable, match="grpc://HOST:PORT"):
        await connect(url).__aenter__()


async def test_nobody_listening_is_told_with_what_to_do_and_without_secrets() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(Unreachable, match="--grpc-port") as caught:
        await within(connect(f"grpc://user:pw@127.0.0.1:{port}/ops?key=secret").__aenter__())
    assert f"grpc://127.0.0.1:{port}/ops" in caught.value.message
    assert "secret" not in caught.value.message
    assert "pw" not in caught.value.message


async def test_a_gateway_that_is_reached_by_tls_says_that_it_has_none() -> None:
    async with grpc_serving(FakeGateway()) as caller:
        with pytest.raises(Unreachable, match="has no TLS: write grpc://HOST:PORT"):
            await within(connect(f"grpcs://127.0.0.1:{caller.port}").__aenter__())


@pytest.mark.parametrize("url", ["127.0.0.1:8765", "localhost", "ftp://127.0.0.1/mcp", ""])
async def test_an_address_of_no_kind_says_what_kinds_there_are(url: str) -> None:
    with pytest.raises(Unreachable, match="write http://HOST:PORT/mcp or grpc://HOST:PORT"):
        await connect(url).__aenter__()


async def test_the_port_of_grpc_reached_by_http_says_how_it_is_written() -> None:
    async with grpc_serving(FakeGateway()) as caller:
        with pytest.raises(Unreachable, match="grpc://HOST:PORT where it speaks gRPC"):
            await within(connect(f"http://127.0.0.1:{caller.port}/mcp").__aenter__())


async def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"grpc://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unreachable, match="did not answer"):
            await within(connect(url, start_seconds=0.2).__aenter__())


async def test_a_grpc_server_that_is_no_gateway_is_told_apart() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    with pytest.raises(Unreachable, match="no gateway"):
        await within(connect(f"grpc://127.0.0.1:{port}").__aenter__())
    await server.stop(None)


async def test_a_domain_that_is_not_there_is_told_at_once() -> None:
    async with grpc_serving(FakeGateway()) as caller:
        with pytest.raises(Unreachable, match="no such domain"):
            await within(connect(f"grpc://127.0.0.1:{caller.port}/elsewhere").__aenter__())


async def test_the_path_names_the_domain() -> None:
    async with (
        grpc_serving(FakeGateway().add("echo")) as caller,
        connect(f"grpc://127.0.0.1:{caller.port}/other") as gate,
    ):
        assert gate.instructions == "use other well"
        assert gate.protocol_version == "thoughtgate.gateway.v1"
        assert (await within(gate.call("echo", {"名": 2**70}))).structured == {"名": 2**70}


@pytest.mark.parametrize(
    "headers", [{"a b": "c"}, {"grpc-timeout": "1S"}, {"x": "a\nb"}, {"x": "é"}, {"": "x"}]
)
async def test_a_header_that_grpc_cannot_send_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Unreachable, match="header"):
        await connect("grpc://127.0.0.1:1", headers=headers).__aenter__()


async def test_a_gateway_that_goes_away_loses_the_connection_only() -> None:
    async with grpc_serving(FakeGateway().add("echo")) as caller:
        context = connect(f"grpc://127.0.0.1:{caller.port}")
        gate = await context.__aenter__()
        await within(gate.call("echo"))
    with pytest.raises(ConnectionLost):
        await within(gate.call("echo"))
    await within(context.__aexit__(None, None, None))
    with pytest.raises(ConnectionLost):
        await within(gate.call("echo"))


async def test_what_was_under_way_when_the_gateway_stops_may_have_happened() -> None:
    started = asyncio.Event()

    async def wait(call: Call) -> Result:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with connecting(FakeGateway().add("wait", wait)) as (gate, caller):
        waiting = asyncio.create_task(gate.call("wait"))
        await within(started.wait())
        await within(caller.face.stop(_at_once))
        with pytest.raises(ConnectionLost, match="may have"):
            await within(waiting)


async def _at_once(future: "asyncio.Future[object]") -> None:
    await asyncio.wait([future], timeout=0)


@asynccontextmanager
async def connecting(gateway: FakeGateway) -> AsyncIterator[tuple[Any, Any]]:
    async with grpc_serving(gateway) as caller, connect(f"grpc://127.0.0.1:{caller.port}") as gate:
        yield gate, caller


async def test_text_that_utf_8_cannot_say_is_refused_as_every_bad_argument_is() -> None:
    async with connecting(FakeGateway()) as (gate, _):
        with pytest.raises(Refused, match="UTF-8") as caught:
            await within(gate.call("echo", {"word": "\ud800"}))
    assert caught.value.code == -32602


async def test_errors_carry_the_code_and_the_reason() -> None:
    async with connecting(FakeGateway()) as (gate, _):
        with pytest.raises(Refused) as caught:
            await within(gate.call("nope"))
    assert caught.value.code == -32602
    assert caught.value.data == {"status": "NOT_FOUND", "error": "unknown_tool"}


async def test_a_result_of_more_than_four_megabytes_comes_whole() -> None:
    async def large(call: Call) -> Result:
        return done("x" * 6_000_000)

    async with connecting(FakeGateway().add("large", large)) as (gate, _):
        assert len((await within(gate.call("large"))).text) == 6_000_000
