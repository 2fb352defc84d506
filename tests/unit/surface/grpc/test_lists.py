"""Lists of domains and tools over gRPC, and tools that fit a task."""

import json
from typing import Any

import grpc
import pytest

from tests.support.fake_gateway import FakeGateway
from tests.support.grpc_gateway import Caller, grpc_serving
from tests.support.waiting import within
from thoughtgate.surface.grpc.tools import MOST_BYTES
from thoughtgate.surface.settings import FaceSettings
from thoughtgate_proto.gateway.v1.gateway_pb2 import (
    FindToolsRequest,
    ListDomainsRequest,
    ListToolsRequest,
    ListToolsResponse,
)

FIVE = FaceSettings(info={}, page_size=5)


def many(count: int, **fields: Any) -> FakeGateway:
    gateway = FakeGateway()
    for number in range(count):
        gateway.add(f"tool-{number:03}", **fields)
    return gateway


async def listed(caller: Caller, **request: Any) -> ListToolsResponse:
    return await within(_listed(caller, ListToolsRequest(**request)))


async def _listed(caller: Caller, request: ListToolsRequest) -> ListToolsResponse:
    return await caller.stub.ListTools(request)


async def every(caller: Caller, **request: Any) -> list[ListToolsResponse]:
    pages = [await listed(caller, **request)]
    while pages[-1].next_page_token:
        pages.append(await listed(caller, page_token=pages[-1].next_page_token, **request))
    return pages


async def test_domains_are_told_in_the_order_of_their_names() -> None:
    async with grpc_serving(many(3)) as caller:
        told = await within(_domains(caller))
    assert [(one.name, one.instructions, one.tools) for one in told] == [
        ("default", "use default well", 3),
        ("other", "use other well", 3),
    ]


async def _domains(caller: Caller) -> list[Any]:
    return list((await caller.stub.ListDomains(ListDomainsRequest())).domains)


@pytest.mark.parametrize(
    ("size", "lengths"), [(0, [5, 5, 2]), (2, [2] * 6), (5, [5, 5, 2]), (100, [5, 5, 2])]
)
async def test_all_pages_make_the_whole_list_at_one_revision(size: int, lengths: list[int]) -> None:
    async with grpc_serving(many(12), FIVE) as caller:
        pages = await every(caller, page_size=size)
    assert [len(page.tools) for page in pages] == lengths
    names = [tool.name for page in pages for tool in page.tools]
    assert names == [f"tool-{number:03}" for number in range(12)]
    assert len({page.revision for page in pages}) == 1


@pytest.mark.parametrize(
    "forge",
    [
        lambda token: "x",
        lambda token: token + "0",
        lambda token: token.rpartition("-")[0] + "-0",
        lambda token: token.rpartition("-")[0] + "-12",
        lambda token: "0" + token[1:] if token[0] != "0" else "1" + token[1:],
        lambda token: token.rpartition("-")[0] + "-²",
        lambda token: "x" * 100_000,
    ],
)
async def test_a_token_that_we_did_not_give_is_refused(forge: Any) -> None:
    async with grpc_serving(many(12), FIVE) as caller:
        token = (await listed(caller)).next_page_token
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await listed(caller, page_token=forge(token))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_token_from_before_a_change_is_stale() -> None:
    gateway = many(12)
    async with grpc_serving(gateway, FIVE) as caller:
        first = await listed(caller)
        gateway.add("another")
        with pytest.raises(grpc.aio.AioRpcError, match="stale"):
            await listed(caller, page_token=first.next_page_token)
        assert (await listed(caller)).revision != first.revision


async def test_a_page_is_small_enough_for_clients_as_they_come() -> None:
    heavy = {"type": "object", "description": "x" * 700_000}
    async with grpc_serving(many(7, inputSchema=heavy)) as caller:
        pages = await every(caller)
    assert [len(page.tools) for page in pages] == [2, 2, 2, 1]
    assert all(page.ByteSize() < MOST_BYTES + 1_000 for page in pages)


async def test_a_tool_is_told_with_all_that_is_known_of_it() -> None:
    output = {"type": "object", "maxProperties": 2**60}
    gateway = FakeGateway().add(
        "t",
        title="T",
        description="does",
        inputSchema={"type": "object", "minProperties": 0},
        outputSchema=output,
        annotations={"readOnlyHint": False, "idempotentHint": True, "openWorldHint": "no"},
        _meta={"thoughtgate/idempotency": "key"},
    )
    async with grpc_serving(gateway.add("bare")) as caller:
        bare, tool = (await listed(caller)).tools
    assert (tool.name, tool.title, tool.description) == ("t", "T", "does")
    assert json.loads(tool.input_schema_json) == {"type": "object", "minProperties": 0}
    assert json.loads(tool.output_schema_json) == output
    assert json.loads(tool.meta_json) == {"thoughtgate/idempotency": "key"}
    hints = tool.hints
    assert (hints.HasField("read_only"), hints.read_only, hints.idempotent) == (True, False, True)
    assert not hints.HasField("open_world")
    assert not hints.HasField("destructive")
    assert (bare.name, bare.title, bare.meta_json) == ("bare", "", b"")
    assert not bare.HasField("output_schema_json")


async def test_the_list_of_an_unknown_domain_is_not_an_empty_one() -> None:
    async with grpc_serving(many(1)) as caller:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await listed(caller, domain="nope")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_an_empty_list_is_one_empty_page() -> None:
    async with grpc_serving(FakeGateway()) as caller:
        (page,) = await every(caller)
    assert page.revision
    assert len(page.tools) == 0


async def found(caller: Caller, **request: Any) -> list[str]:
    return await within(_found(caller, FindToolsRequest(**request)))


async def _found(caller: Caller, request: FindToolsRequest) -> list[str]:
    return [tool.name for tool in (await caller.stub.FindTools(request)).tools]


async def test_no_task_is_a_mistake_and_not_a_search_without_finds() -> None:
    async with grpc_serving(many(1)) as caller:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await found(caller, task="  ")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_tools_that_fit_a_task_come_best_first() -> None:
    gateway = (
        FakeGateway()
        .add("send_mail", description="Send a mail to somebody.")
        .add("search_logs", description="Search the log files for an error.")
        .add("read_log", description="Read one log file.")
    )
    async with grpc_serving(gateway) as caller:
        assert await found(caller, task="look for an error in the logs") == [
            "search_logs",
            "read_log",
        ]
        assert await found(caller, task="an error in the logs", limit=1) == ["search_logs"]
        gateway.add("find_error", description="error error error")
        assert "find_error" in await found(caller, task="error")


async def test_no_more_tools_are_found_than_a_page_has() -> None:
    async with grpc_serving(many(12, description="same words"), FIVE) as caller:
        assert len(await found(caller, task="same words", limit=2**32 - 1)) == 5


async def test_a_task_without_end_is_refused() -> None:
    async with grpc_serving(many(1)) as caller:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await found(caller, task="x " * 20_000)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
