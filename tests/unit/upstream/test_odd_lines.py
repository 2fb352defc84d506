"""Replies of a child that do not come as they should: they end the call that they belong to."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.upstreams import Rig, rig
from tests.support.waiting import until, within
from thoughtgate.core.errors import UpstreamGarbled, UpstreamLost
from thoughtgate.core.servers import Era, Server, StdioTransport

PEER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "odd", "version": "0"}
    elif asked["method"] == "tools/list":
        result = {"tools": []}
    else:
        said = asked["params"]["arguments"].get("said", "")
        sys.stdout.write(said.replace("NUMBER", str(asked["id"])))
        sys.stdout.flush()
        if asked["params"]["name"] == "exit":
            sys.exit(3)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""A server whose tools write what they are given, NUMBER for the id; `exit` exits then."""

GOOD = '{"jsonrpc":"2.0","id":NUMBER,"result":{"structuredContent":{"n":1}}}'
LAST = '{"result":{"structuredContent":{"n":1}},"jsonrpc":"2.0","id":NUMBER}'


@asynccontextmanager
async def odd() -> AsyncIterator[Rig]:
    transport = StdioTransport(argv=(sys.executable, "-S", "-E", "-c", PEER))
    async with rig(Server(name="peer", transport=transport, era=Era.HANDSHAKE)) as made:
        yield made


@pytest.mark.parametrize("reply", [GOOD, LAST])
@pytest.mark.parametrize("noise", ["Loading... ", "{done} ", 'got {"id":7} and {"id":8} '])
async def test_a_reply_behind_noise_on_its_line_is_taken(noise: str, reply: str) -> None:
    async with odd() as made:
        assert await made.call("say", {"said": f"{noise}{reply}\n"}) == {"n": 1}
        assert made.upstreams.counts("peer").noise == 1


async def test_a_broken_reply_behind_noise_fails_its_own_call() -> None:
    async with odd() as made:
        other = asyncio.ensure_future(made.send("say"))
        broken = GOOD.replace("1}}}", "NaN}}}")
        with pytest.raises(UpstreamGarbled, match="other words stand before it"):
            await within(made.send("say", {"said": f"Loading... {broken}\n"}, timeout=60))
        assert not other.done()
        other.cancel()


@pytest.mark.parametrize(
    "printed",
    [
        'sent {"jsonrpc":"2.0","id":999,"result":{}}',
        'got {"jsonrpc":"2.0","id":NUMBER,"method":"tools/call","params":{}}',
        '{"id":NUMBER,"level":"info"} {"id":NUMBER,"result":"handled"}',
        'sent {"result":{},"jsonrpc":"2.0","id":999} at last',
    ],
)
async def test_what_a_server_prints_of_other_messages_is_noise(printed: str) -> None:
    async with odd() as made:
        assert await made.call("say", {"said": f"{printed}\n{GOOD}\n"}) == {"n": 1}


NAMELESS = [
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no cheese"}}',
    '{"jsonrpc":"2.0","error":{"code":-32700,"message":"no cheese"}}',
    '{"jsonrpc":"2.0","id":null,"result":{}}',
    '{"jsonrpc":"2.0","result":{}}',
]


@pytest.mark.parametrize("reply", NAMELESS)
async def test_a_reply_that_names_no_request_fails_the_only_call_at_once(reply: str) -> None:
    async with odd() as made:
        with pytest.raises(UpstreamGarbled) as caught:
            await within(made.send("say", {"said": f"{reply}\n"}, timeout=60))
        assert ("no cheese" in caught.value.message) == ("no cheese" in reply)
        assert await made.call("say", {"said": f"{GOOD}\n"}) == {"n": 1}


@pytest.mark.parametrize("reply", NAMELESS)
async def test_a_reply_that_could_be_two_calls_own_fails_neither(reply: str) -> None:
    def counted(made: Rig) -> Any:
        counts = made.upstreams.counts("peer")
        return counts.noise + counts.late

    async with odd() as made:
        await made.call("say", {"said": f"{GOOD}\n"})
        calls = [asyncio.ensure_future(made.send("say", timeout=60)) for _ in range(2)]
        await asyncio.sleep(0)
        assert await made.call("say", {"said": f"{reply}\n{GOOD}\n"}) == {"n": 1}
        assert counted(made) == 1
        assert not any(call.done() for call in calls)
        calls[0].cancel()
        await asyncio.wait([calls[0]])
        late = asyncio.ensure_future(made.send("say", {"said": f"{reply}\n"}, timeout=60))
        await until(lambda: counted(made) == 2)
        assert not any(call.done() for call in (calls[1], late))  # it may be the one given up
        for call in (calls[1], late):
            call.cancel()


async def test_a_whole_reply_without_a_line_end_is_not_lost_when_its_server_exits() -> None:
    async with odd() as made:
        assert await made.call("exit", {"said": GOOD}, timeout=60) == {"n": 1}
        with pytest.raises(UpstreamLost, match="code 3"):
            await within(made.send("exit", {"said": GOOD[:-1]}, timeout=60))
