"""A gRPC server of somebody else's behind the gateway: its methods are tools for clients over HTTP.

The server runs here and the gateway in a process of its own; the SDK's client asks.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from tests.support.gate import START, Gate, gated, held, home
from tests.support.grpc_orders import LEDGER, ORDERS, Shop, files_of, orders_set, serving
from tests.support.grpc_reflector import Reflector
from tests.support.waiting import until, within

CHANGED = "notifications/tools/list_changed"
NAMES = {
    f"shop__shop-v1-Orders-{name}"
    for name in ("GetOrder", "PlaceOrder", "WatchOrder", "SumOrders", "PriceOrders")
}
CLOSE = "shop__shop-v1-Ledger-Close"


def settings(port: int, reflect: str = ORDERS) -> str:
    return (
        f'[servers.shop]\nurl = "grpc://127.0.0.1:{port}"\nreflect = ["{reflect}"]\nbidi = true\n'
    )


def reflector() -> Reflector:
    return Reflector(files_of(orders_set()), [ORDERS, LEDGER])


@asynccontextmanager
async def served(shop: Shop, folder: Path, reflect: str = ORDERS) -> AsyncIterator[Gate]:
    async with (
        serving(shop.handler(), reflector().handler()) as port,
        gated(home(folder, settings(port, reflect))) as gateway,
    ):
        yield gateway


def name(method: str) -> str:
    return f"shop__shop-v1-Orders-{method}"


def words(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def called(client: Client, method: str, arguments: dict[str, Any], **more: Any) -> Any:
    result = await within(client.call_tool(name(method), arguments, **more), START)
    assert not result.is_error, words(result)
    return result.structured_content


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_methods_of_all_four_kinds_are_listed_and_called(tmp_path: Path, mode: str) -> None:
    heard: list[float] = []

    async def progress(at: float, total: float | None, message: str | None) -> None:
        heard.append(at)

    async with (
        served(Shop(), tmp_path) as gateway,
        Client(gateway.url(), mode=mode) as client,
    ):
        listed = await within(client.list_tools(), START)
        assert {tool.name for tool in listed.tools} == NAMES
        got = await called(client, "GetOrder", {"number": "7"})
        assert (got["number"], got["price"]["cents"]) == ("7", "250")
        watched = await called(
            client, "WatchOrder", {"number": 1, "changes": 3}, progress_callback=progress
        )
        assert len(watched["messages"]) == 3
        assert heard == [1, 2, 3]
        summed = await called(
            client, "SumOrders", {"messages": [{"price": {"cents": 2}}, {"price": {"cents": 3}}]}
        )
        assert summed["cents"] == "5"
        priced = await called(client, "PriceOrders", {"messages": [{"price": {"cents": 4}}]})
        assert priced["messages"] == [{"currency": "", "cents": "4"}]
        wrong = await within(client.call_tool(name("GetOrder"), {"nummer": 7}), START)
        assert wrong.is_error
        assert "nummer" in words(wrong)
        large = {"number": str(2**63)}  # a pattern cannot say how large
        refused = await within(client.call_tool(name("GetOrder"), large), START)
        assert refused.is_error
        assert "/number" in words(refused)
    rows = gateway.home.audit_rows()
    assert len(rows) >= 5


async def test_a_server_that_ends_in_a_stream_fails_that_call_alone_and_is_there_again(
    tmp_path: Path,
) -> None:
    shop = Shop(after_each=asyncio.Event())
    async with AsyncExitStack() as stack:
        server = serving(shop.handler(), reflector().handler())
        port = await server.__aenter__()
        gateway = await stack.enter_async_context(gated(home(tmp_path, settings(port))))
        client = await stack.enter_async_context(Client(gateway.url()))
        running = asyncio.ensure_future(
            client.call_tool(name("WatchOrder"), {"number": 1, "changes": 5})
        )
        await until(lambda: shop.seen, START)
        await server.__aexit__(None, None, None)
        failed = await within(running, START)
        assert failed.is_error
        assert "outcome is unknown" in words(failed)
        await stack.enter_async_context(serving(shop.handler(), reflector().handler(), port=port))
        async with asyncio.timeout(START):
            while (await client.call_tool(name("GetOrder"), {"number": 1})).is_error:
                pass


async def test_a_server_that_comes_back_with_other_methods_is_announced(tmp_path: Path) -> None:
    told: list[str] = []

    async def note(message: Any) -> None:
        told.append(getattr(message, "method", ""))

    shop = Shop()
    async with AsyncExitStack() as stack:
        few = reflector()
        few.services = [ORDERS]
        server = serving(shop.handler(), few.handler())
        port = await server.__aenter__()
        gateway = await stack.enter_async_context(gated(home(tmp_path, settings(port, "*"))))
        client = await stack.enter_async_context(
            held(Client(gateway.url(), mode="legacy", message_handler=note))
        )
        listed = await within(client.list_tools(), START)
        before = {tool.name for tool in listed.tools}
        await server.__aexit__(None, None, None)
        more = reflector()
        await stack.enter_async_context(serving(shop.handler(), more.handler(), port=port))
        await until(lambda: CHANGED in told, START)
        after = {tool.name for tool in (await within(client.list_tools(), START)).tools}
        assert after - before == {CLOSE} - before
        assert CLOSE in after
