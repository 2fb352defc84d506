"""The SDK's client through a real gateway: both eras, over HTTP and over stdio.

Behind the gateway stands the SDK's server. Every gateway of this file works on one registry.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client, MCPError
from mcp.types import CallToolResult, ErrorData, TextContent

from tests.support.gate import START, Gate, Home, gate, held, home, python_server
from tests.support.sdk_server import TOOLS
from tests.support.waiting import until, within

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROUTES = [(carrier, mode) for carrier in ("http", "stdio") for mode in ("legacy", "2026-07-28")]
FAKE = (sys.executable, "-m", "thoughtgate.testing.fake_server")
CHANGED = "notifications/tools/list_changed"

SETTINGS = python_server("peer", "tests.support.sdk_server") + (
    '[domains.few]\nexclude = ["peer/wait", "peer/change"]\ninstructions = "few is enough"\n'
    '[domains.few.tools."peer/sum"]\nrename = "add"\nfixed = {b = 40}\n'
)


@dataclass(frozen=True, kw_only=True)
class Route:
    """A client that is connected, and what it was told unasked."""

    carrier: str
    mode: str
    client: Client
    told: list[str]

    async def ask(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool and return the structured content of its result."""
        result = await within(self.client.call_tool(f"peer__{tool}", arguments))
        assert not result.is_error, result
        return result.structured_content


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return home(tmp_path_factory.mktemp("home"), SETTINGS)


@pytest.fixture(scope="module")
def gateway(place: Home) -> Iterator[Gate]:
    with gate(place) as running:
        yield running


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=ROUTES, ids=["-".join(r) for r in ROUTES]
)
async def route(place: Home, gateway: Gate, request: pytest.FixtureRequest) -> AsyncIterator[Route]:
    carrier, mode = request.param
    told: list[str] = []

    async def note(message: Any) -> None:
        told.append(getattr(message, "method", ""))

    target = gateway.url() if carrier == "http" else place.pipe()
    async with held(Client(target, mode=mode, message_handler=note)) as client:
        yield Route(carrier=carrier, mode=mode, client=client, told=told)


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await within(client.list_tools())).tools]


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def test_every_page_of_the_servers_list_is_shown(route: Route) -> None:
    listed = await names(route.client)
    assert {f"peer__{name}" for name in TOOLS} <= {*listed}
    assert listed == sorted(listed)


async def test_a_call_carries_exact_values_there_and_back(route: Route) -> None:
    sent = {"n": 2**63 + 1, "null": None, "deep": [{"x": 1.5, "": []}], "text": "世\u2028"}
    assert await route.ask("echo", **sent) == sent


async def test_arguments_that_break_the_schema_come_back_as_problems(route: Route) -> None:
    result = await within(route.client.call_tool("peer__sum", {"a": "1", "c": 2}))
    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["error"] == "invalid_arguments"
    pointers = {problem["pointer"] for problem in result.structured_content["problems"]}
    assert pointers == {"/a", "/b", "/c"}
    assert "/a" in text(result)


async def test_an_unknown_tool_is_an_error_of_the_protocol(route: Route) -> None:
    with pytest.raises(MCPError) as caught:
        await within(route.client.call_tool("peer__nobody", {}))
    assert caught.value.code == -32602


async def test_progress_comes_in_order_while_the_call_runs(route: Route) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    await within(route.client.call_tool("peer__progress", {}, progress_callback=note))
    assert seen == [(0, 3, "step 0"), (1, 3, "step 1"), (2, 3, "step 2")]


async def test_a_cancelled_call_is_cancelled_in_the_server(route: Route) -> None:
    before = await route.ask("cancelled")
    call = asyncio.create_task(route.client.call_tool("peer__wait", {}))
    async with asyncio.timeout(START):
        while (await route.ask("cancelled"))["waiting"] == before["waiting"]:
            assert not call.done()
        call.cancel()
        while (await route.ask("cancelled"))["cancelled"] == before["cancelled"]:
            assert call.cancelled() or not call.done()
    assert (await route.ask("cancelled"))["waiting"] == before["waiting"]


async def test_a_server_added_by_another_process_is_announced_and_callable(
    route: Route, place: Home
) -> None:
    name = f"late-{route.carrier}-{route.mode[:4]}"
    await within(route.client.list_tools())
    async with AsyncExitStack() as stack:
        if route.mode != "legacy":
            events = await stack.enter_async_context(route.client.listen(tools_list_changed=True))
            wait = follow(events)
        else:
            told = len(route.told)
            wait = until(lambda: CHANGED in route.told[told:], START)
        # this process is not the gateway's: the registry is all that they share
        added = place.invoke("server", "add", name, "--", *FAKE)
        assert added.exit_code == 0, added.output
        await within(wait, START)
    async with asyncio.timeout(START):
        while f"{name}__echo" not in await names(route.client):
            pass
    answer = await within(route.client.call_tool(f"{name}__echo", {"x": 1}))
    assert answer.structured_content == {"x": 1}
    assert place.invoke("server", "rm", name).exit_code == 0
    async with asyncio.timeout(START):
        while f"{name}__echo" in await names(route.client):
            pass


async def test_a_hidden_tool_and_a_missing_one_look_the_same(gateway: Gate) -> None:
    for mode in ("legacy", "2026-07-28"):
        async with Client(gateway.url("few"), mode=mode) as client:
            listed = await names(client)
            errors = [await refusal(client, tool) for tool in ("peer__wait", "peer__nope")]
        assert "peer__wait" not in listed
        for tool, error in zip(("peer__wait", "peer__nope"), errors, strict=True):
            assert (error.code, error.data["error"]) == (-32602, "unknown_tool")
            assert set(error.data["nearest"]) <= set(listed)
            near = ", ".join(error.data["nearest"])
            assert error.message == f"unknown tool: {tool}; nearest: {near}"


@pytest.mark.parametrize("carrier", ["http", "stdio"])
async def test_a_domain_renames_fixes_and_instructs(
    place: Home, gateway: Gate, carrier: str
) -> None:
    target = gateway.url("few") if carrier == "http" else place.pipe("--domain", "few")
    async with Client(target, mode="auto") as client:
        tools = {tool.name: tool for tool in (await within(client.list_tools(), START)).tools}
        result = await within(client.call_tool("add", {"a": 2}), START)
        code = (await refusal(client, "peer__sum")).code
        assert client.instructions is not None
        assert client.instructions.startswith("few is enough")
    assert set(tools["add"].input_schema["properties"]) == {"a"}
    assert result.structured_content == {"sum": 42}
    assert code == -32602


async def test_a_domain_that_does_not_exist_is_no_endpoint(place: Home, gateway: Gate) -> None:
    async with Client(gateway.url("nowhere"), mode="2026-07-28") as client:
        with pytest.raises(MCPError):
            await within(client.list_tools())
    refused = place.run("serve", "--stdio", "--domain", "nowhere")
    assert refused.returncode == 2
    assert "nowhere" in refused.stderr
    assert refused.stdout == ""


async def refusal(client: Client, tool: str) -> ErrorData:
    with pytest.raises(MCPError) as caught:
        await within(client.call_tool(tool, {}))
    return caught.value.error


async def follow(events: AsyncIterator[object]) -> None:
    await anext(events)
