"""Real npm servers behind one gateway: what they offer is listed, called and relayed.

Both run over stdio as children of one gateway process; the SDK's client asks over HTTP.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import CallToolResult, ImageContent, ResourceLink, TextContent, Tool

from tests.support.gate import Gate, gate, home, server_table
from tests.support.peers import environment, everything, filesystem
from tests.support.waiting import within

LONG = "every__trigger-long-running-operation"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root").resolve()
    (folder / "a.txt").write_text("first line\nzweite Zeile\n第三行\n", encoding="utf-8")
    (folder / "sub").mkdir()
    return folder


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Gate]:
    settings = server_table("every", *everything()) + server_table("fs", *filesystem(root))
    settings += '[domains.reading]\ninclude = ["fs/read_*", "fs/list_*", "every/get-sum"]\n'
    with gate(home(tmp_path_factory.mktemp("home"), settings)) as running:
        yield running


@pytest.fixture(params=["legacy", "auto"])
def client(gateway: Gate, request: pytest.FixtureRequest) -> Client:
    return Client(gateway.url(), mode=request.param)


def words(result: CallToolResult) -> str:
    assert not result.is_error, result
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def plain(tool: Tool) -> dict[str, Any]:
    return tool.model_dump(by_alias=True, exclude_unset=True)


async def test_the_tools_of_both_servers_stand_in_one_list(client: Client) -> None:
    async with client:
        names = [tool.name for tool in (await within(client.list_tools())).tools]
    assert names == sorted(names)
    assert {"every__echo", "every__get-sum", "fs__read_text_file", "fs__list_directory"} <= {*names}
    assert all(name.startswith(("every__", "fs__")) for name in names)


async def test_a_tool_is_listed_as_its_server_defines_it(gateway: Gate) -> None:
    program, *rest = everything()
    direct = StdioServerParameters(command=program, args=rest, env=environment())
    async with (
        Client(direct, mode="legacy") as server,
        Client(gateway.url(), mode="legacy") as client,
    ):
        own = {tool.name: plain(tool) for tool in (await server.list_tools()).tools}
        shown = {tool.name: plain(tool) for tool in (await client.list_tools()).tools}
    assert len(own) > 10
    for name, definition in own.items():
        assert {**shown[f"every__{name}"], "name": name} == definition


async def test_a_tool_answers_through_the_gateway(client: Client) -> None:
    async with client:
        echoed = await within(client.call_tool("every__echo", {"message": "héllo, 世界"}))
        summed = await within(client.call_tool("every__get-sum", {"a": 2, "b": 40}))
    assert words(echoed) == "Echo: héllo, 世界"
    assert words(summed) == "The sum of 2 and 40 is 42."


async def test_structured_content_comes_back_and_fits_the_tools_own_schema(client: Client) -> None:
    async with client:
        await client.list_tools()  # the SDK's client then holds results against the schema
        result = await within(
            client.call_tool("every__get-structured-content", {"location": "Chicago"})
        )
    assert not result.is_error
    assert result.structured_content is not None
    assert set(result.structured_content) == {"temperature", "conditions", "humidity"}


async def test_images_and_resource_links_are_relayed(client: Client) -> None:
    async with client:
        image = await within(client.call_tool("every__get-tiny-image", {}))
        links = await within(client.call_tool("every__get-resource-links", {"count": 3}))
    (picture,) = [block for block in image.content if isinstance(block, ImageContent)]
    assert picture.mime_type == "image/png"
    assert len([block for block in links.content if isinstance(block, ResourceLink)]) == 3


async def test_a_long_call_reports_each_step_to_its_caller(client: Client) -> None:
    seen: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with client:
        result = await within(
            client.call_tool(LONG, {"duration": 0.4, "steps": 4}, progress_callback=note)
        )
    assert "completed" in words(result)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


async def test_files_are_listed_read_and_written_below_the_root(client: Client, root: Path) -> None:
    async with client:
        listed = await within(client.call_tool("fs__list_directory", {"path": str(root)}))
        read = await within(client.call_tool("fs__read_text_file", {"path": str(root / "a.txt")}))
        written = await within(
            client.call_tool("fs__write_file", {"path": str(root / "sub/b"), "content": "ß\n"})
        )
    assert {"[FILE] a.txt", "[DIR] sub"} <= {*words(listed).split("\n")}
    assert words(read) == (root / "a.txt").read_text(encoding="utf-8")
    assert not written.is_error
    assert (root / "sub" / "b").read_text(encoding="utf-8") == "ß\n"


async def test_a_tools_own_refusal_is_relayed_as_its_result(client: Client, root: Path) -> None:
    async with client:
        outside = await within(
            client.call_tool("fs__read_text_file", {"path": str(root.parent / "elsewhere")})
        )
    assert outside.is_error
    assert isinstance(outside.content[0], TextContent)
    assert "outside allowed directories" in outside.content[0].text


async def test_arguments_that_break_the_schema_never_reach_the_server(client: Client) -> None:
    async with client:
        result = await within(client.call_tool("every__get-sum", {"a": "two", "b": 40}))
    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["error"] == "invalid_arguments"
    (problem,) = result.structured_content["problems"]
    assert problem["pointer"] == "/a"


async def test_a_domain_shows_its_choice_of_both_servers_and_refuses_the_rest(
    gateway: Gate,
) -> None:
    async with Client(gateway.url("reading"), mode="auto") as client:
        names = [tool.name for tool in (await within(client.list_tools())).tools]
        summed = await within(client.call_tool("every__get-sum", {"a": 1, "b": 1}))
        with pytest.raises(MCPError) as caught:
            await within(client.call_tool("fs__write_file", {"path": "x", "content": "y"}))
    assert "every__get-sum" in names
    assert not any("write" in name or "echo" in name for name in names)
    assert words(summed) == "The sum of 1 and 1 is 2."
    assert caught.value.code == -32602
