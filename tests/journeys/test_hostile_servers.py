"""A real gateway and servers that say too much: nothing of it may hold up or reach anybody else."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.children import memory, peak_memory
from tests.support.gate import ROOT, START, Gate, gated, home, server_table
from tests.support.http_peer import HttpPeer
from tests.support.old_client import OldClient
from tests.support.raw_http import Wire, raw_http
from tests.support.raw_upstreams import HANDSHAKE, RawUpstream
from tests.support.waiting import within
from thoughtgate.upstream.listing import MAX_TOOLS

pytestmark = pytest.mark.asyncio(loop_scope="module")

TALKER = ROOT / "tests" / "support" / "hostile_talker.py"
ABLE: dict[str, Any] = {"elicitation": {}}
YES = {"action": "accept", "content": {}}
QUESTION = "elicitation/create"
ROOM = 64 * 2**20
"""Bytes of memory that a gateway may take beyond what it had, whatever a server says."""


def talker(name: str, *options: object, **settings: Any) -> str:
    """Return the lines that configure a hostile server; each session has one of its own."""
    mine = {"era": "handshake", "sharing": "session", **settings}
    return server_table(name, sys.executable, "-S", "-E", TALKER, *options, **mine)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gate]:
    settings = (
        talker("bad")
        + talker("common", sharing="shared")
        + talker("new", "--era", "stateless", era="stateless")
        + talker("silent", "--undeclared", sharing="shared")
        + talker("many", "--resources", 100_000)
    )
    async with gated(home(tmp_path_factory.mktemp("home"), settings)) as gateway:
        yield gateway


@pytest_asyncio.fixture(loop_scope="module")
async def client(running: Gate) -> AsyncIterator[OldClient]:
    made = await OldClient.open(running.url(), **ABLE)
    yield made
    made.drop()
    await made.leave()


async def state(client: OldClient, server: str = "bad") -> Any:
    return await client.structured(f"{server}__state")


async def test_a_server_that_asks_without_end_asks_its_own_caller_only_until_it_cancels(
    running: Gate, client: OldClient
) -> None:
    other = await OldClient.open(running.url(), **ABLE)
    id_, told = await client.begin("bad__nag")
    await told.head()
    for _ in range(200):
        question = await told.message()
        assert question["method"] == QUESTION
        assert await client.answer(question, YES) == 202
    assert await client.structured("bad__echo", {"n": 1}) == {"n": 1}
    await client.tell("notifications/cancelled", requestId=id_)
    last = (await told.rest())[-1]
    assert last["method"] == "notifications/cancelled"
    async with asyncio.timeout(START):
        while not (seen := await state(client))["cancelled"]:
            pass
    assert seen["questions"] <= 202
    assert (await state(other))["questions"] == 0
    await other.leave()


@pytest.mark.parametrize("able", [ABLE, {}])
async def test_a_server_that_wants_input_without_end_is_given_up(
    running: Gate, able: dict[str, Any]
) -> None:
    """A client of the older era, for which the gateway asks and sends again."""
    client = await OldClient.open(running.url(), **able)
    _, told = await client.begin("new__nag")
    await told.head()
    asked = 0
    while (message := await told.message()) is not None and message.get("method") == QUESTION:
        asked += 1
        assert await client.answer(message, YES) == 202
    assert message is not None
    assert await told.rest() == []
    assert message["result"]["structuredContent"]["error"] == "upstream_garbled"
    assert asked <= 20
    assert bool(asked) is bool(able)
    assert await client.structured("new__echo", {"n": 1}) == {"n": 1}
    await client.leave()


async def test_a_newer_client_decides_each_round_by_itself(running: Gate) -> None:
    peer = HttpPeer(running.url())
    able = {"io.modelcontextprotocol/clientCapabilities": ABLE}
    for server in ("bad", "new"):
        params: dict[str, Any] = {"name": f"{server}__nag", "arguments": {}, "_meta": able}
        for _ in range(30):
            got = (await peer.ask("tools/call", params)).json["result"]
            assert got["resultType"] == "input_required"
            [key] = got["inputRequests"]
            params = {**params, "inputResponses": {key: YES}}
            if "requestState" in got:
                params["requestState"] = got["requestState"]


async def test_a_crowd_of_questions_outside_of_calls_is_bounded(client: OldClient) -> None:
    standing = await client.listen()
    assert "result" in await client.call("bad__crowd")
    async with asyncio.timeout(START):
        while len((await state(client))["codes"]) < 100:
            pass
    questions = [await standing.message() for _ in range(32)]
    assert {question["method"] for question in questions} == {QUESTION}
    for question in questions:
        assert await client.answer(question, YES) == 202
    async with asyncio.timeout(START):
        while (seen := await state(client))["good"] < 32:
            pass
    assert seen["good"] == 32
    assert set(seen["codes"]) <= {-32603, -32601}


async def test_a_question_after_its_call_goes_to_the_stream_of_its_session_or_to_nobody(
    running: Gate, client: OldClient
) -> None:
    other = await OldClient.open(running.url(), **ABLE)
    elsewhere = await other.listen()
    standing = await client.listen()
    await client.call("bad__afterwards")
    question = await standing.message()
    assert question["method"] == QUESTION
    assert await client.answer(question, YES) == 202
    async with asyncio.timeout(START):
        while (await state(client))["good"] < 1:
            pass
    # over a connection that all share there is nobody to ask
    await client.call("common__afterwards")
    async with asyncio.timeout(START):
        while not (seen := await state(client, "common"))["codes"]:
            pass
    assert seen["codes"] == [-32601]
    await other.leave()
    assert await elsewhere.rest() == []


async def test_a_server_that_answers_itself_and_asks_twice_under_one_id_changes_nothing(
    client: OldClient,
) -> None:
    _, told = await client.begin("bad__twins")
    await told.head()
    question = await told.message()
    assert question["method"] == QUESTION
    # its own refusal of the second question is what the server takes for the answer
    rest = await told.rest()
    assert rest[-1]["result"]["structuredContent"]["answer"]["error"]["code"] == -32600
    assert await client.answer(question, YES) == 202
    assert await client.structured("bad__echo", {"n": 1}) == {"n": 1}


async def test_the_first_of_three_answers_counts(client: OldClient) -> None:
    for _ in range(20):
        assert await client.structured("bad__again") == {"number": 0}
    assert await client.structured("bad__echo", {"n": 1}) == {"n": 1}


async def test_ten_thousand_things_told_outside_of_calls_cost_nobody_else_anything(
    running: Gate, client: OldClient
) -> None:
    """They reach the session's own stream, as far as there is room, and no other's."""
    other = await OldClient.open(running.url(), **ABLE)
    theirs = await other.listen()
    await other.structured("bad__echo")
    before = memory(running.process.pid)
    await client.structured("bad__echo")
    for _ in range(5):
        await client.call("bad__gossip")
        assert await other.structured("bad__echo", {"n": 1}) == {"n": 1}
    assert await client.structured("bad__echo", {"n": 2}) == {"n": 2}
    standing = await client.listen()
    methods = {(await standing.message())["method"] for _ in range(100)}
    assert methods <= {
        "notifications/message",
        "notifications/odd",
        "notifications/resources/updated",
        "notifications/tools/list_changed",
    }
    assert peak_memory(running.process.pid) < before + ROOM
    await other.leave()
    assert {one["method"] for one in await theirs.rest()} <= {"notifications/tools/list_changed"}


async def test_a_storm_of_changed_lists_is_listed_a_few_times_only(
    running: Gate, client: OldClient
) -> None:
    before = (await state(client, "common"))["methods"].count("tools/list")
    for _ in range(3):
        await client.call("common__gossip")
    after = (await state(client, "common"))["methods"].count("tools/list")
    assert after - before <= 6


async def test_a_server_that_sends_pings_and_reads_no_answer_does_not_fill_our_memory(
    running: Gate, client: OldClient
) -> None:
    before = memory(running.process.pid)
    assert "result" in await client.call("bad__pings", {"count": 300_000})
    assert peak_memory(running.process.pid) < before + ROOM


PING = 'data: {"jsonrpc":"2.0","id":%d,"method":"ping"}\n\n'


class Flood:
    """A server that sends a hundred thousand pings in each call, and takes no answer to any.

    In the older transport its messages come on the one stream that it has.
    """

    def __init__(self, *, sse: bool) -> None:
        self.sse = sse
        self.stream: Wire | None = None
        self.upstream = RawUpstream(era=HANDSHAKE)

    async def serve(self, wire: Wire) -> None:
        while (seen := await wire.request()) is not None:
            message = json.loads(seen.body) if seen.body else {}
            if not seen.head.startswith("POST"):
                await self._stand(wire)
            elif "method" not in message:
                await wire.closed()
            elif texts := await self.upstream.take(seen.body):
                await self._answer(wire, message["method"], texts[0])
            else:
                await wire.reply(b"", status=202)

    async def _stand(self, wire: Wire) -> None:
        if not self.sse:
            await wire.reply(b"", status=405)
            return
        self.stream = wire
        await self._begin(wire)
        await wire.write(b"event: endpoint\ndata: /messages\n\n")
        await wire.closed()

    async def _begin(self, wire: Wire) -> None:
        await wire.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        await wire.write(b"connection: close\r\n\r\n")

    async def _answer(self, wire: Wire, method: str, text: str) -> None:
        flooding = method == "tools/call"
        if self.stream is not None:
            await wire.reply(b"", status=202)
            wire = self.stream
        elif flooding:
            await self._begin(wire)
        else:
            kind = "content-type: application/json\r\nmcp-session-id: s\r\n"
            await wire.reply(text.encode(), extra=kind)
            return
        for start in range(0, 100_000 if flooding else 0, 1000):
            await wire.write("".join(PING % (start + n) for n in range(1000)).encode())
        await wire.write(f"data: {text}\n\n".encode())
        if self.stream is None:
            wire.writer.close()


@pytest.mark.parametrize("sse", [False, True])
async def test_a_server_that_sends_pings_over_http_and_takes_no_answer_fills_no_memory(
    tmp_path: Path, *, sse: bool
) -> None:
    async with raw_http(Flood(sse=sse).serve) as server:
        old = f'era = "handshake"\nsse = {str(sse).lower()}\n'
        settings = f'[servers.web]\nurl = "{server.url}"\n{old}'
        async with gated(home(tmp_path, settings + talker("bad"))) as gateway:
            client = await OldClient.open(gateway.url())
            await client.structured("bad__echo")
            before = memory(gateway.process.pid)
            for _ in range(1 if sse else 2):  # all that is sent to it goes one way there
                assert (await client.call("web__echo"))["result"] == {"content": []}
            assert await client.structured("bad__echo", {"n": 1}) == {"n": 1}
            assert peak_memory(gateway.process.pid) < before + ROOM
            await client.leave()


async def test_what_a_client_tells_a_server_that_reads_nothing_fills_no_memory(
    running: Gate,
) -> None:
    client = await OldClient.open(running.url(), version="2025-03-26")
    await client.structured("bad__echo")
    before = memory(running.process.pid)
    _, stuck = await client.begin("bad__sleep")
    told = {"jsonrpc": "2.0", "method": "notifications/odd", "params": {"x": "x" * 30_000}}
    for _ in range(50):
        assert (await client.post([told] * 100)).status == 202
    assert peak_memory(running.process.pid) < before + ROOM
    stuck.drop()
    await client.leave()


async def test_what_a_server_does_not_declare_is_not_asked_for_but_its_tools_are_shown(
    client: OldClient,
) -> None:
    assert await client.structured("silent__echo", {"n": 1}) == {"n": 1}
    seen = await state(client, "silent")
    assert "tools/list" in seen["methods"]
    assert not {"prompts/list", "resources/list"} & set(seen["methods"])
    assert not [name for name in await client.names("prompts") if name.startswith("silent")]


async def test_a_hundred_thousand_resources_are_cut_with_a_warning(
    running: Gate, client: OldClient
) -> None:
    found = await client.names("resources")
    assert len(found) == len(set(found)) == MAX_TOOLS
    assert await client.structured("many__echo", {"n": 1}) == {"n": 1}
    assert "many" in running.hear("resources ends there")


async def test_what_a_server_declares_after_a_reconnect_is_what_counts(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    fickle = talker("odd", "--fickle", "--starts", starts, sharing="shared")
    async with gated(home(tmp_path, fickle)) as gateway:
        client = await OldClient.open(gateway.url())
        standing = await client.listen()
        for _ in range(3):
            declared = len(starts.read_text(encoding="utf-8").splitlines()) % 2
            for kind in ("prompts", "resources"):
                async with asyncio.timeout(START):
                    while len(await client.names(kind)) != declared:
                        await standing.message()
            assert await client.structured("odd__echo", {"n": 1}) == {"n": 1}
            assert "result" in await client.call("odd__crash")
            assert await client.structured("odd__echo", {"n": 2}) == {"n": 2}
        client.drop()


async def test_a_child_s_child_that_holds_the_pipes_holds_up_nobody(client: OldClient) -> None:
    """Neither its output nor the end of its parent, which it outlives."""
    pid = (await client.structured("bad__spawn"))["pid"]
    for _ in range(5):
        assert await client.structured("bad__echo", {"n": 1}) == {"n": 1}
    waiting = asyncio.ensure_future(client.call("bad__nag"))
    lost = await within(client.call("bad__crash"), START)
    assert lost["result"]["structuredContent"]["error"] == "upstream_lost"
    assert (await within(waiting, START))["result"]["isError"]
    assert await client.structured("bad__pid") != {"pid": pid}
