"""The MCP face over stdio: framing, both eras on one pipe, cancel, the end of the pipe."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.support.fake_gateway import FakeGateway, done, talk
from tests.support.http_peer import ENVELOPE, request
from tests.support.mcp_faces import SETTINGS, piped
from tests.support.waiting import until, within
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.errors import UnknownTarget

ROOT = Path(__file__).parents[2]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw"}}


class Peer:
    """The client's end of the pipe, line by line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def say(self, *messages: object) -> None:
        for message in messages:
            data = (
                message
                if isinstance(message, bytes)
                else json.dumps(message, ensure_ascii=False).encode()
            )
            self.writer.write(data + b"\n")

    async def hear(self) -> Any:
        return json.loads(await within(self.reader.readline()))

    async def ask(self, method: str, params: dict[str, Any], id_: object = 1) -> Any:
        self.say(request(method, params, id_))
        return await self.hear()


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway().add("echo").add("talk", talk)


@pytest.fixture
async def peer(gateway: FakeGateway) -> AsyncIterator[Peer]:
    async with piped(gateway, replace(SETTINGS, max_body=200_000, max_running=5)) as pipe:
        yield Peer(*pipe)


async def test_both_eras_speak_on_one_pipe(peer: Peer) -> None:
    new = await peer.ask("server/discover", {"_meta": ENVELOPE})
    assert new["result"]["supportedVersions"] == ["2026-07-28"]
    old = await peer.ask("initialize", HELLO)
    assert old["result"]["protocolVersion"] == "2025-11-25"
    new = await peer.ask("tools/list", {"_meta": ENVELOPE})
    assert new["result"]["cacheScope"] == "private"
    old = await peer.ask("tools/list", {})
    assert list(old["result"]) == ["tools"]


async def test_before_hello_only_ping_is_answered(peer: Peer) -> None:
    assert (await peer.ask("ping", {}))["result"] == {}
    assert (await peer.ask("tools/list", {}))["error"]["code"] == -32600
    await peer.ask("initialize", HELLO)
    assert (await peer.ask("initialize", HELLO))["error"]["code"] == -32600
    assert "result" in await peer.ask("tools/list", {})


async def test_an_unknown_version_is_answered_with_our_newest(peer: Peer) -> None:
    got = await peer.ask("initialize", {**HELLO, "protocolVersion": "1999-01-01"})
    assert got["result"]["protocolVersion"] == "2025-11-25"


async def test_a_bad_line_costs_nothing_but_itself(peer: Peer) -> None:
    peer.say(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', b"", b"  \r", b"\xff")
    assert [(await peer.hear())["error"]["code"] for _ in range(2)] == [-32700, -32700]
    assert (await peer.ask("ping", {}))["result"] == {}


async def test_a_long_line_arrives_whole_and_a_longer_one_is_refused_alone(peer: Peer) -> None:
    await peer.ask("initialize", HELLO)
    text = "å" * 90_000
    got = await peer.ask("tools/call", {"name": "echo", "arguments": {"text": text}})
    assert got["result"]["structuredContent"] == {"text": text}
    peer.say(b"[" * 200_001)
    assert (await peer.hear())["error"]["code"] == -32700
    assert (await peer.ask("ping", {}))["result"] == {}


async def test_line_ends_inside_a_relayed_result_stay_inside_its_line(
    peer: Peer, gateway: FakeGateway
) -> None:
    async def answer(call: Call) -> Result:
        return Result(raw=b'{\r\n "content": [\n], "text": "a\\nb"\n}')

    gateway.add("pretty", answer)
    await peer.ask("initialize", HELLO)
    got = await peer.ask("tools/call", {"name": "pretty"})
    assert got["result"] == {"content": [], "text": "a\nb"}


async def test_a_cancellation_overtakes_the_call_and_nothing_is_sent_for_it(
    peer: Peer, gateway: FakeGateway
) -> None:
    ended: list[str] = []

    async def wait(call: Call) -> Result:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(call.session.era)
            raise
        return done()

    gateway.add("wait", wait)
    await peer.ask("initialize", HELLO)
    peer.say(
        request("tools/call", {"name": "wait"}, "a"),
        request("tools/call", {"name": "wait", "_meta": ENVELOPE}, "b"),
    )
    await until(lambda: len(gateway.calls) == 2)
    for id_ in ("b", "a", "never", None, [1]):
        note = {"method": "notifications/cancelled", "params": {"requestId": id_}}
        peer.say({"jsonrpc": "2.0", **note})
    await until(lambda: len(ended) == 2)
    assert (await peer.ask("ping", {}, 9))["id"] == 9


async def test_a_call_cancelled_in_the_same_breath_never_runs(
    peer: Peer, gateway: FakeGateway
) -> None:
    await peer.ask("initialize", HELLO)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    peer.say(request("tools/call", {"name": "echo"}, 5), note, request("ping", {}, 6))
    assert (await peer.hear())["id"] == 6
    peer.say(request("ping", {}, 5))
    assert (await peer.hear())["id"] == 5


async def test_an_id_in_flight_and_too_many_requests_are_refused(
    peer: Peer, gateway: FakeGateway
) -> None:
    gate = asyncio.Event()

    async def wait(call: Call) -> Result:
        await gate.wait()
        return done()

    gateway.add("wait", wait)
    await peer.ask("initialize", HELLO)
    peer.say(*(request("tools/call", {"name": "wait"}, id_) for id_ in (1, 1, 2, 3, 4, 5, 6)))
    refused = [await peer.hear() for _ in range(2)]
    assert [(got["id"], got["error"]["code"]) for got in refused] == [(1, -32600), (6, -32603)]
    gate.set()
    assert {(await peer.hear())["id"] for _ in range(5)} == {1, 2, 3, 4, 5}


async def test_a_subscription_is_told_of_changes_until_it_is_cancelled(
    peer: Peer, gateway: FakeGateway
) -> None:
    params = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE}
    first = await peer.ask("subscriptions/listen", params, "sub")
    assert first["method"] == "notifications/subscriptions/acknowledged"
    gateway.add("late")
    changed = await peer.hear()
    assert changed["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "sub"}
    note = {"method": "notifications/cancelled", "params": {"requestId": "sub"}}
    peer.say({"jsonrpc": "2.0", **note}, request("ping", {}, 2))
    assert (await peer.hear())["id"] == 2
    gateway.add("later")
    assert (await peer.ask("ping", {}, 3))["id"] == 3


async def test_calls_that_run_at_the_end_of_the_pipe_are_answered(gateway: FakeGateway) -> None:
    gate = asyncio.Event()

    async def wait(call: Call) -> Result:
        await gate.wait()
        return done()

    gateway.add("wait", wait)
    async with piped(gateway) as pipe:
        peer = Peer(*pipe)
        peer.say(request("tools/call", {"name": "wait", "_meta": ENVELOPE}, 7))
        peer.writer.write_eof()
        await until(lambda: gateway.calls)
        gate.set()
        assert (await peer.hear())["id"] == 7


async def test_a_client_that_is_gone_ends_the_talk_and_its_calls(gateway: FakeGateway) -> None:
    cancelled = asyncio.Event()

    async def wait(call: Call) -> Result:
        try:
            while True:
                await talk(call)
        finally:
            cancelled.set()

    gateway.add("wait", wait)
    async with piped(gateway) as (_, writer):
        meta = {**ENVELOPE, "progressToken": 1}
        body = json.dumps(request("tools/call", {"name": "wait", "_meta": meta}))
        writer.write(body.encode() + b"\n")
        await until(lambda: gateway.calls)
        writer.transport.abort()
    assert cancelled.is_set()
    assert gateway.watchers == 0


async def test_an_unknown_domain_is_refused_at_the_start(gateway: FakeGateway) -> None:
    with pytest.raises(UnknownTarget):
        async with piped(gateway, domain="nobody") as (reader, _):
            await within(reader.read())


async def test_a_child_process_speaks_protocol_only_on_its_standard_output() -> None:
    child = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tests.support.stdio_gateway"],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'gateway'}:{ROOT}"},
    )
    for mode in ("legacy", "auto"):
        async with Client(child, mode=mode) as client:
            result = await within(client.call_tool("echo", {"n": 2**60}))
            assert result.structured_content == {"n": 2**60}


def test_files_may_stand_in_for_pipes(tmp_path: Path) -> None:
    asked, answered = tmp_path / "in", tmp_path / "out"
    asked.write_text(json.dumps(request("ping", {})) + "\n", encoding="utf-8")
    with asked.open("rb") as given, answered.open("wb") as wanted:
        subprocess.run(
            [sys.executable, "-m", "tests.support.stdio_gateway"],
            cwd=ROOT,
            env={"PYTHONPATH": f"{ROOT / 'gateway'}:{ROOT}"},
            stdin=given,
            stdout=wanted,
            stderr=subprocess.DEVNULL,
            timeout=30,
            check=True,
        )
    reply = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert json.loads(answered.read_text(encoding="utf-8")) == reply
