"""From clients over HTTP, in both eras, through a gateway to a native gRPC server and back."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.support.native_peer import TOOLS, NativePeer, result, serving
from tests.support.old_client import OldClient
from tests.support.raw_gateway import RawGateway, raw_gateway
from tests.support.raw_upstreams import HANDSHAKE, STATELESS
from tests.support.waiting import until, within

pytestmark = pytest.mark.asyncio(loop_scope="module")

eras = pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
EXACT = '{"n":123456789012345678901234567890,"x":1.50,"text":"日本","none":null}'


@dataclass
class Whole:
    """A native server with the gateway before it."""

    peer: NativePeer
    gateway: RawGateway

    async def old(self) -> OldClient:
        return await OldClient.open(f"http://127.0.0.1:{self.gateway.port}/mcp/default")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    peer = NativePeer()
    async with serving(peer) as port:
        config = (
            f'[servers.n]\nurl = "grpc://127.0.0.1:{port}"\n[domains.default]\nmax_tools = 50\n'
        )
        async with raw_gateway(tmp_path_factory.mktemp("home"), config) as gateway:
            gateway.discover()
            await gateway.listed("n")
            yield Whole(peer, gateway)


@eras
async def test_every_tool_is_listed_with_its_schema(era: str, whole: Whole) -> None:
    client = await whole.gateway.client("http", era)
    listed = {tool["name"]: tool for tool in await client.tools()}
    assert {f"n__{name}" for name in TOOLS} <= {*listed}
    assert listed["n__sum"]["inputSchema"]["required"] == ["a", "b"]


@eras
async def test_values_arrive_exactly_and_come_back_exactly(era: str, whole: Whole) -> None:
    client = await whole.gateway.client("http", era)
    got = await client.call("n__echo", EXACT)
    assert got.result["structuredContent"]["n"] == 123456789012345678901234567890
    assert whole.peer.calls[-1].arguments_json.decode() == EXACT.replace("1.50", "1.5")


@eras
async def test_arguments_that_break_the_schema_never_reach_the_server(
    era: str, whole: Whole
) -> None:
    client = await whole.gateway.client("http", era)
    before = len(whole.peer.calls)
    got = await client.call("n__sum", '{"a":1,"b":"two"}')
    assert got.trouble == "invalid_arguments"
    assert len(whole.peer.calls) == before


@eras
async def test_progress_comes_in_order_and_before_the_result(era: str, whole: Whole) -> None:
    client = await whole.gateway.client("http", era)
    got = await client.call("n__progress", meta={"progressToken": "p"})
    assert [note["params"]["progress"] for note in got.notes] == [0, 1, 2]
    assert {note["params"]["progressToken"] for note in got.notes} == {"p"}
    assert got.result["structuredContent"] == {"done": True}


@eras
async def test_a_status_is_a_result_that_says_what_is_known(era: str, whole: Whole) -> None:
    client = await whole.gateway.client("http", era)
    got = await client.call("n__fail", '{"status":"FAILED_PRECONDITION","text":"not now"}')
    assert got.trouble == "upstream_refused"
    assert got.result["structuredContent"]["outcome"] == "not_done"
    assert "not now" in got.result["content"][0]["text"]
    hidden = await client.call("n__fail", '{"status":"UNKNOWN","text":"s3cret"}')
    assert hidden.trouble == "upstream_failed"
    assert "s3cret" not in str(hidden.reply)


async def test_a_call_that_is_cancelled_ends_in_the_server(whole: Whole) -> None:
    client = await whole.old()
    before = whole.peer.cancelled
    id_, told = await client.begin("n__wait")
    await until(lambda: whole.peer.waiting)
    await client.tell("notifications/cancelled", requestId=id_)
    await until(lambda: whole.peer.cancelled == before + 1)
    told.drop()
    await client.leave()


async def test_a_caller_that_hangs_up_ends_its_call_in_the_server(whole: Whole) -> None:
    client = await whole.gateway.client("http", STATELESS)
    before = whole.peer.cancelled
    calling = asyncio.ensure_future(client.call("n__wait"))
    await until(lambda: whole.peer.waiting)
    client.close()
    await until(lambda: whole.peer.cancelled == before + 1)
    await asyncio.wait([calling])
    assert calling.exception() is not None


async def test_a_change_at_the_server_is_told_to_clients(whole: Whole) -> None:
    client = await whole.old()
    stream = await client.listen()
    await until(lambda: whole.peer.watching)
    await whole.peer.change()
    told = await within(stream.message(), 10.0)
    assert told["method"] == "notifications/tools/list_changed"
    assert f"n__{whole.peer.extra[-1]}" in await client.names("tools")
    client.drop()


@eras
async def test_what_a_server_garbles_fails_that_call_only(era: str, whole: Whole) -> None:
    client = await whole.gateway.client("http", era)
    whole.peer.scripts.append([result(b'{"a":1,"a":2}')])
    got = await client.call("n__script")
    assert got.trouble == "upstream_garbled"
    assert (await client.call("n__sum", '{"a":1,"b":2}')).result["structuredContent"] == {"sum": 3}
