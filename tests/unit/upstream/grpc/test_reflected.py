"""A gRPC server of somebody else's as tools: all four kinds, errors, streams, and changes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection as grpcio_reflection

from tests.support.grpc_orders import (
    LEDGER,
    ORDERS,
    Shop,
    files_of,
    orders_pool,
    orders_set,
    serving,
)
from tests.support.grpc_reflector import Reflector, never
from tests.support.upstreams import Heard
from tests.support.waiting import until, within
from thoughtgate.core.calls import LOCAL, Call, Session
from thoughtgate.core.errors import (
    InvalidArguments,
    UpstreamFailed,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamRefused,
    UpstreamReplied,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import Era, GrpcTransport, Streaming
from thoughtgate.core.tools import Item, Kind, Tool
from thoughtgate.core.traces import SpanContext
from thoughtgate.upstream.grpc import carrying
from thoughtgate.upstream.grpc.reflected import ReflectedLink, open_reflected
from thoughtgate.upstream.home import Home
from thoughtgate.upstream.http_client import PooledClient
from thoughtgate.upstream.opening import Means

GET, PLACE, WATCH, SUM, PRICE = (
    f"shop-v1-Orders-{name}"
    for name in ("GetOrder", "PlaceOrder", "WatchOrder", "SumOrders", "PriceOrders")
)
MEANS = Means(client=PooledClient())


def call(name: str, arguments: dict[str, Any], seconds: float = 4.0, **more: Any) -> Call:
    tool = Tool(server="shop", name=name, definition={}, digest="sha256:0", input_schema={})
    made = Call(
        id="c1",
        target=tool,
        arguments=arguments,
        principal=LOCAL,
        session=Session(id="", era=Era.STATELESS, version="", client={}),
        domain="default",
        deadline=asyncio.get_running_loop().time() + seconds,
        listener=Heard(),
        meta={},
        advertised=name,
    )
    return replace(made, **more)


def reflector() -> Reflector:
    return Reflector(files_of(orders_set()), [ORDERS, LEDGER])


@asynccontextmanager
async def linked(
    shop: Shop,
    told: Reflector | None = None,
    *,
    recheck: float = 300.0,
    means: Means = MEANS,
    **more: Any,
) -> AsyncIterator[ReflectedLink]:
    told = told or reflector()
    async with serving(shop.handler(), told.handler()) as port:
        more.setdefault("reflect", (ORDERS,))
        transport = GrpcTransport(url=f"grpc://127.0.0.1:{port}", **more)
        link = await within(open_reflected(transport, Home("shop"), means, recheck=recheck))
        try:
            yield link
        finally:
            await within(link.aclose())


async def tools(link: ReflectedLink) -> dict[str, Any]:
    page = json.loads(await link.request("tools/list", {}))
    return {tool["name"]: tool for tool in page["tools"]}


async def structured(link: ReflectedLink, asked: Call) -> Any:
    reply = await within(link.call(asked))
    assert json.loads(reply.result) == reply.value
    assert json.loads(reply.value["content"][0]["text"]) == reply.value["structuredContent"]
    return reply.value["structuredContent"]


async def structured_of(link: ReflectedLink, asked: Call) -> Any:
    return (await within(link.call(asked))).value["structuredContent"]


async def test_the_methods_of_the_wanted_service_are_tools_and_no_others() -> None:
    async with linked(Shop()) as link:
        listed = await tools(link)
        assert list(listed) == [GET, PLACE, WATCH, SUM]
        assert listed[GET]["annotations"]["readOnlyHint"] is True
        assert "readOnlyHint" not in listed[PLACE].get("annotations", {})
        assert link.peer.version == "grpc.reflection.v1"


async def test_methods_in_which_both_sides_stream_have_to_be_asked_for() -> None:
    async with linked(Shop(), bidi=True) as link:
        assert PRICE in await tools(link)


async def test_one_method_alone_can_be_wanted() -> None:
    async with linked(Shop(), reflect=(f"{ORDERS}/GetOrder",)) as link:
        assert list(await tools(link)) == [GET]


async def test_a_unary_method_is_called_with_what_the_arguments_say() -> None:
    shop = Shop()
    async with linked(shop, headers={"x-team": "tea"}) as link:
        trace = SpanContext(trace_id=1, span_id=2, sampled=True)
        asked = call(GET, {"number": "7"}, idempotency_key="k1", trace=trace)
        assert await structured(link, asked) == {
            "number": "7",
            "items": ["tea"],
            "price": {"currency": "EUR", "cents": "250"},
            "labels": {},
        }
    [(name, request)] = shop.seen
    assert (name, request.number) == ("GetOrder", 7)
    sent = shop.metadata[0]
    assert (sent["x-team"], sent["idempotency-key"]) == ("tea", "k1")
    assert sent["traceparent"] == f"00-{1:032x}-{2:016x}-01"


@pytest.mark.parametrize(("given", "sent"), [("k2", "k2"), ("k\n3", None), ("ключ", None)])
async def test_a_client_s_key_goes_along_where_metadata_can_hold_it(
    given: str, sent: str | None
) -> None:
    shop = Shop()
    async with linked(shop) as link:
        meta = {"thoughtgate/idempotencyKey": given}
        await structured(link, call(GET, {"number": "7"}, meta=meta))
    assert shop.metadata[0].get("idempotency-key") == sent


async def test_each_message_of_a_stream_is_progress_and_all_of_them_the_result() -> None:
    async with linked(Shop()) as link:
        heard = Heard()
        asked = call(WATCH, {"number": 1, "changes": 3}, wants_progress=True, listener=heard)
        result = await structured(link, asked)
    assert [one["items"] for one in result["messages"]] == [[f"change {at}"] for at in (1, 2, 3)]
    assert result["truncated"] is False
    assert [one["progress"] for one in heard.params] == [1, 2, 3]
    assert json.loads(heard.params[0]["message"]) == result["messages"][0]


async def test_the_last_message_of_a_stream_can_be_the_result() -> None:
    async with linked(Shop(), streaming=Streaming.LAST) as link:
        result = await structured(link, call(WATCH, {"number": 1, "changes": 3}))
        assert result["items"] == ["change 3"]
        with pytest.raises(UpstreamGarbled, match="no message"):
            await within(link.call(call(WATCH, {"number": 1, "changes": 0})))


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_a_client_stream_takes_the_messages_of_an_array(count: int) -> None:
    orders = [{"price": {"cents": 2}}] * count
    async with linked(Shop()) as link:
        result = await structured(link, call(SUM, {"messages": orders}))
    assert result == {"currency": "EUR", "cents": str(2 * count)}


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_both_sides_of_a_method_can_stream(count: int) -> None:
    orders = [{"price": {"cents": 2, "currency": "EUR"}}] * count
    async with linked(Shop(), bidi=True) as link:
        result = await structured(link, call(PRICE, {"messages": orders}))
    assert result["messages"] == [{"currency": "EUR", "cents": "2"}] * count


async def test_a_stream_without_end_is_cut_in_time_and_the_server_is_told() -> None:
    shop = Shop(after_each=asyncio.Event())
    async with linked(shop) as link:
        result = await structured(link, call(WATCH, {"number": 1, "changes": 9}, seconds=0.2))
        assert len(result["messages"]) == 1
        assert result["truncated"] is True
        await until(lambda: shop.over == ["WatchOrder cancelled"])


async def test_a_stream_of_too_many_messages_is_cut_and_says_so() -> None:
    async with linked(Shop()) as link:
        asked = call(WATCH, {"number": 1, "changes": carrying.MAX_MESSAGES + 5})
        reply = await within(link.call(asked))
        exact = call(WATCH, {"number": 1, "changes": carrying.MAX_MESSAGES})
        whole = await structured(link, exact)
    assert len(reply.value["structuredContent"]["messages"]) == carrying.MAX_MESSAGES
    assert reply.value["structuredContent"]["truncated"] is True
    assert "cut after" in reply.value["content"][1]["text"]
    assert whole["truncated"] is False


async def test_a_stream_of_too_much_json_is_cut_and_one_message_of_too_much_is_refused() -> None:
    small = replace(MEANS, max_result=2_000)
    async with linked(Shop(), means=small) as link:
        result = await structured_of(link, call(WATCH, {"number": 1, "changes": 50}))
        assert 1 < len(result["messages"]) < 50
        assert result["truncated"] is True
        with pytest.raises(UpstreamGarbled, match="larger than 2000"):
            await within(link.call(call(PLACE, {"items": ["tea" * 1_000]})))


async def test_a_stream_that_says_nothing_in_time_is_a_timeout() -> None:
    async with linked(Shop(before={"WatchOrder": never})) as link:
        with pytest.raises(UpstreamTimeout):
            await within(link.call(call(WATCH, {"changes": 1}, seconds=0.1)))


@pytest.mark.parametrize(
    ("name", "arguments", "pointer"),
    [
        (GET, {"number": 9_223_372_036_854_775_808}, "/number"),
        (SUM, {"messages": [{}, {"price": {"cents": "x"}}]}, "/messages/1/price/cents"),
    ],
)
async def test_what_no_schema_could_refuse_is_refused_with_its_place_and_nothing_is_sent(
    name: str, arguments: dict[str, Any], pointer: str
) -> None:
    shop = Shop()
    async with linked(shop) as link:
        with pytest.raises(InvalidArguments) as failed:
            await within(link.call(call(name, arguments)))
    assert failed.value.problems[0].pointer == pointer
    assert shop.seen == []


async def test_giving_a_call_up_cancels_it_at_the_server() -> None:
    shop = Shop(before={"GetOrder": never, "WatchOrder": never})
    async with linked(shop) as link:
        running = [
            asyncio.ensure_future(link.call(call(name, {"number": 1}))) for name in (GET, WATCH)
        ]
        await until(lambda: len(shop.seen) == 2)
        for one in running:
            one.cancel()
            with pytest.raises(asyncio.CancelledError):
                await within(one)
        await until(lambda: len(shop.over) == 2)


def failing(code: grpc.StatusCode, text: str) -> Callable[..., Any]:
    async def fail(_: Shop, context: Any) -> None:
        await context.abort(code, text)

    return fail


@pytest.mark.parametrize("name", [GET, WATCH, SUM, PRICE])
async def test_the_words_of_a_status_that_are_not_for_callers_are_kept(name: str) -> None:
    method = name.rpartition("-")[2]
    shop = Shop(before={method: failing(grpc.StatusCode.UNKNOWN, "secret /etc/path")})
    async with linked(shop, bidi=True) as link:
        with pytest.raises(UpstreamFailed) as failed:
            await within(link.call(call(name, {})))
    assert "secret" not in failed.value.message


@pytest.mark.parametrize("name", [SUM, PRICE])
async def test_a_server_that_ends_a_call_which_is_still_written_to_is_understood(name: str) -> None:
    refuse = failing(grpc.StatusCode.INVALID_ARGUMENT, "no more")
    shop = Shop(before={"SumOrders": refuse, "PriceOrders": refuse})
    many = {"messages": [{"items": ["tea"]}] * 50}
    async with linked(shop, bidi=True) as link:
        for _ in range(5):
            with pytest.raises(UpstreamRefused, match="no more"):
                await within(link.call(call(name, many)))


async def test_a_method_that_the_server_has_lost_is_refused_and_it_is_asked_again() -> None:
    shop, told = Shop(withdrawn={"GetOrder"}), reflector()
    async with linked(shop, told) as link:
        watching = asyncio.ensure_future(link.watch(lambda _: None))
        before = len(told.asked)
        with pytest.raises(UpstreamRefused):
            await within(link.call(call(GET, {})))
        await until(lambda: len(told.asked) > before)
        watching.cancel()


async def test_what_is_no_tool_of_the_server_is_refused() -> None:
    async with linked(Shop()) as link:
        with pytest.raises(UpstreamRefused):
            await link.call(call("shop-v1-Ledger-Close", {}))
        item = Item(kind=Kind.PROMPT, server="shop", name="greeting")
        with pytest.raises(UpstreamReplied):
            await link.call(call("", {}, target=item))
        with pytest.raises(UpstreamReplied):
            await link.request("prompts/list", {})
        with pytest.raises(UpstreamReplied):
            await link.subscribe("mem://one")


async def test_a_changed_declaration_is_told_and_an_unchanged_one_is_not() -> None:
    told, heard = reflector(), list[str]()
    async with linked(Shop(), told, recheck=0.01, reflect=("*",)) as link:
        watching = asyncio.ensure_future(link.watch(heard.append))
        asked = len(told.asked)
        await until(lambda: len(told.asked) > asked)
        assert heard == []
        told.services = [ORDERS]
        del told.files["shop/orders.proto"]
        told.files["shop/orders.proto"] = _only_orders()
        await until(lambda: heard)
        assert "shop-v1-Ledger-Close" not in await tools(link)
        watching.cancel()
    assert heard == ["tools"]


def _only_orders() -> bytes:
    file = FileDescriptorProto.FromString(files_of(orders_set())["shop/orders.proto"])
    del file.service[1:]
    return file.SerializeToString()


async def test_a_server_without_what_is_wanted_says_what_it_has() -> None:
    with pytest.raises(UpstreamGarbled, match=r"shop\.v1\.Ledger"):
        async with linked(Shop(), reflect=("shop.v1.Order",)):
            pass


async def test_nobody_there_is_said_at_once() -> None:
    async with serving() as port:
        pass
    transport = GrpcTransport(url=f"grpc://127.0.0.1:{port}", reflect=("*",))
    with pytest.raises(UpstreamUnreachable, match="nobody listens"):
        await within(open_reflected(transport, Home("shop"), MEANS))


async def test_a_descriptor_set_stands_for_reflection_with_its_comments(tmp_path: Path) -> None:
    file = tmp_path / "set.binpb"
    file.write_bytes(orders_set(comments=True))
    shop = Shop()
    async with serving(shop.handler()) as port:
        transport = GrpcTransport(
            url=f"grpc://127.0.0.1:{port}", reflect=(ORDERS,), descriptor_set=str(file)
        )
        link = await within(open_reflected(transport, Home("shop"), MEANS))
        listed = await tools(link)
        result = await structured(link, call(GET, {"number": 4}))
        await link.aclose()
    assert "Returns an order by its number." in listed[GET]["description"]
    assert result["number"] == "4"


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"text"])
async def test_a_file_that_is_no_descriptor_set_is_named(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "set.binpb"
    file.write_bytes(data)
    transport = GrpcTransport(url="grpc://127.0.0.1:9", reflect=("*",), descriptor_set=str(file))
    with pytest.raises(UpstreamUnreachable, match="no descriptor set"):
        await within(open_reflected(transport, Home("shop"), MEANS))


async def test_a_server_that_ends_in_a_stream_is_lost_and_the_link_is_over() -> None:
    shop, told = Shop(after_each=asyncio.Event()), reflector()
    server = serving(shop.handler(), told.handler())
    port = await server.__aenter__()
    transport = GrpcTransport(url=f"grpc://127.0.0.1:{port}", reflect=(ORDERS,))
    link = await within(open_reflected(transport, Home("shop"), MEANS))
    watching = asyncio.ensure_future(link.watch(lambda _: None))
    running = asyncio.ensure_future(link.call(call(WATCH, {"changes": 5})))
    await until(lambda: shop.seen)
    await server.__aexit__(None, None, None)
    with pytest.raises(UpstreamLost):
        await within(running)
    assert "reached" in await within(watching)
    await link.aclose()


async def test_a_server_with_the_reflection_and_health_of_grpcio_is_called_and_those_are_not() -> (
    None
):
    names = (ORDERS, health.SERVICE_NAME, grpcio_reflection.SERVICE_NAME)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Shop().handler(),))
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)
    grpcio_reflection.enable_server_reflection(names, server, orders_pool())
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    transport = GrpcTransport(url=f"grpc://127.0.0.1:{port}", reflect=("*",))
    try:
        link = await within(open_reflected(transport, Home("shop"), MEANS))
        assert link.peer.version == "grpc.reflection.v1alpha"
        assert list(await tools(link)) == [GET, PLACE, WATCH, SUM]
        assert (await structured(link, call(GET, {"number": 3})))["number"] == "3"
        await within(link.aclose())
    finally:
        await server.stop(0)
