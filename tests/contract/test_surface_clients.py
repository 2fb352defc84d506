"""The MCP faces against the SDK's client: both eras, over HTTP and stdio."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import TextContent

from tests.support.fake_gateway import FakeGateway, done, echo, talk
from tests.support.mcp_faces import Connect, connecting
from tests.support.waiting import until, within
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import InvalidArguments, Refused, UpstreamReplied, UpstreamTimeout
from thoughtgate.core.problems import Problem
from thoughtgate.core.servers import Era

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")  # logging still works

OLD, NEW = "legacy", "2026-07-28"


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway().add("echo").add("talk", talk)


@pytest.fixture(params=[OLD, NEW])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["http", "stdio"])
async def connect(
    request: pytest.FixtureRequest, mode: str, gateway: FakeGateway
) -> AsyncIterator[Connect]:
    async with connecting(gateway, request.param, mode) as function:
        yield function


async def test_a_probing_client_finds_the_newest_era(gateway: FakeGateway) -> None:
    for transport in ("http", "stdio"):
        async with connecting(gateway, transport, "auto") as connect, connect() as client:
            assert client.protocol_version == NEW
            assert client.server_info is not None
            assert client.server_info.name == "thoughtgate"
            assert client.instructions == "use default well"
            assert client.server_capabilities.tools is not None


async def test_a_client_learns_who_we_are_from_the_handshake(gateway: FakeGateway) -> None:
    async with connecting(gateway, "http", OLD) as connect, connect() as client:
        assert client.protocol_version == "2025-11-25"
        assert client.instructions == "use default well"
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed


async def test_a_tool_is_listed_with_fields_nobody_knows(
    connect: Connect, gateway: FakeGateway
) -> None:
    gateway.add("odd", _meta={"k": 1}, outputSchema={"type": "object"})
    async with connect() as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == ["echo", "odd", "talk"]
    assert tools[1].meta == {"k": 1}


async def test_a_call_carries_exact_arguments_and_brings_back_structured_content(
    connect: Connect, gateway: FakeGateway
) -> None:
    sent = {"n": 2**70, "null": None, "deep": [{"x": 1.5}], "text": "å\u2028"}
    async with connect() as client:
        result = await client.call_tool("echo", sent)
    assert result.structured_content == sent
    assert gateway.calls[0].arguments == sent


async def test_a_call_says_who_asks(connect: Connect, gateway: FakeGateway, mode: str) -> None:
    async with connect() as client:
        await client.call_tool("echo", {}, meta={"custom": 1})  # type: ignore[arg-type]  # the SDK's type knows no custom keys
    (call,) = gateway.calls
    assert call.session.era is (Era.HANDSHAKE if mode == OLD else Era.STATELESS)
    assert call.session.client["name"] == "mcp"
    assert call.meta == {"custom": 1}
    assert not call.wants_progress


async def test_progress_reaches_the_caller_that_asked_for_it(connect: Connect) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with connect() as client:
        await client.call_tool("talk", {}, progress_callback=note)
    assert seen == [(1, 2, "half")]


async def test_log_messages_come_from_the_level_that_was_asked_for(
    connect: Connect, mode: str
) -> None:
    seen: list[str] = []

    async def note(params: Any) -> None:
        seen.append(params.level)

    async with connect(logging_callback=note, log_level="warning") as client:
        if mode == OLD:
            await client.set_logging_level("warning")
        await client.call_tool("talk", {})
    assert seen == ["warning"]


async def test_a_new_client_that_asks_for_no_log_gets_none(gateway: FakeGateway) -> None:
    seen: list[str] = []

    async def note(params: Any) -> None:
        seen.append(params.level)

    async with (
        connecting(gateway, "http", NEW) as connect,
        connect(logging_callback=note) as client,
    ):
        await client.call_tool("talk", {})
    assert seen == []


async def test_a_cancelled_call_is_cancelled_in_the_tool(
    connect: Connect, gateway: FakeGateway
) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> Result:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return done()

    gateway.add("wait", wait)
    async with connect() as client:
        call = asyncio.create_task(client.call_tool("wait", {}))
        await within(begun.wait())
        call.cancel()
        await within(cancelled.wait())
        assert (await within(client.call_tool("echo", {"still": "here"}))).structured_content


async def test_calls_run_side_by_side_and_answers_find_their_calls(
    connect: Connect, gateway: FakeGateway
) -> None:
    gate = asyncio.Event()

    async def wait(call: Call) -> Result:
        await gate.wait()
        return await echo(call)

    gateway.add("wait", wait)
    async with connect() as client:
        calls = [asyncio.create_task(client.call_tool("wait", {"n": n})) for n in range(20)]
        await until(lambda: len(gateway.calls) == 20)
        gate.set()
        results = await within(asyncio.gather(*calls))
    assert [result.structured_content for result in results] == [{"n": n} for n in range(20)]


async def test_a_changed_list_is_told_to_a_client_of_the_handshake_era(
    gateway: FakeGateway,
) -> None:
    for transport in ("http", "stdio"):
        told: list[str] = []

        async def note(message: Any, told: list[str] = told) -> None:
            told.append(getattr(message, "method", ""))

        async with (
            connecting(gateway, transport, OLD) as connect,
            connect(message_handler=note) as client,
        ):
            await client.list_tools()
            gateway.add(f"late-{transport}")
            await until(partial(told.count, "notifications/tools/list_changed"))


async def test_a_changed_list_is_told_to_a_subscriber(gateway: FakeGateway) -> None:
    for transport in ("http", "stdio"):
        async with AsyncExitStack() as stack:
            connect = await stack.enter_async_context(connecting(gateway, transport, NEW))
            client = await stack.enter_async_context(connect())
            events = await stack.enter_async_context(client.listen(tools_list_changed=True))
            assert events.honored.tools_list_changed
            gateway.add(f"late-{transport}")
            event = await within(anext(events))
            assert type(event).__name__ == "ToolsListChanged"


async def test_a_subscription_ends_with_a_word_when_the_gateway_closes(
    gateway: FakeGateway,
) -> None:
    async with AsyncExitStack() as outer:
        async with AsyncExitStack() as inner:
            connect = await inner.enter_async_context(connecting(gateway, "http", NEW))
            client = await outer.enter_async_context(connect())
            events = await outer.enter_async_context(client.listen(tools_list_changed=True))
        with pytest.raises(StopAsyncIteration):
            await within(anext(events))


async def test_an_unknown_tool_is_a_protocol_error(connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nobody", {})
    assert caught.value.code == -32602


async def test_a_server_s_own_error_is_relayed_whole(
    connect: Connect, gateway: FakeGateway
) -> None:
    async def fail(call: Call) -> Result:
        raise UpstreamReplied(rpc_code=-31999, rpc_message="no", rpc_data={"why": [1]})

    gateway.add("fail", fail)
    async with connect() as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("fail", {})
    assert (caught.value.code, caught.value.message) == (-31999, "no")
    assert caught.value.error.data == {"why": [1]}


PROBLEM = Problem(
    pointer="/n", keyword="type", expected="a number", got_type="string", got_preview="x"
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (
            InvalidArguments(
                message="n must be a number",
                problems=[PROBLEM],
                data={"problems": [PROBLEM.as_json()]},
            ),
            "invalid_arguments",
        ),
        (Refused(message="not yours"), "refused"),
        (UpstreamTimeout(message="no answer within 1 s"), "upstream_timeout"),
    ],
)
async def test_what_a_model_can_mend_is_a_result(
    connect: Connect, gateway: FakeGateway, error: Exception, code: str
) -> None:
    async def fail(call: Call) -> Result:
        raise error

    gateway.add("fail", fail, outputSchema={"type": "object", "required": ["n"]})
    async with connect() as client:
        await client.list_tools()
        result = await client.call_tool("fail", {})
    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["error"] == code
    assert isinstance(result.content[0], TextContent)


async def test_a_bug_shows_an_incident_and_nothing_else(
    connect: Connect, gateway: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(call: Call) -> Result:
        raise ZeroDivisionError("postgres://user:secret@db")

    gateway.add("fail", fail)
    async with connect() as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("fail", {})
    assert caught.value.code == -32603
    assert "secret" not in str(caught.value.error)
    incident = caught.value.error.data["id"]
    assert [record.incident for record in caplog.records if hasattr(record, "incident")] == [
        incident
    ]


async def test_a_long_list_is_read_page_by_page(gateway: FakeGateway, mode: str) -> None:
    for number in range(250):
        gateway.add(f"t{number}")
    async with connecting(gateway, "http", mode) as connect, connect() as client:
        names, cursor = [], None
        for _ in range(3):
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
        assert cursor is None
        assert len(set(names)) == 252
        with pytest.raises(MCPError) as caught:
            await client.list_tools(cursor="bogus")
        assert caught.value.code == -32602
