"""A gateway that is told to stop, with everything open that can be, and one whose servers crash."""

import asyncio
import gc
import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.children import alive, children, memory, open_files, zombies
from tests.support.gate import START, Gate, gated, home, python_server
from tests.support.http_peer import ENVELOPE, NEW, HttpPeer, request
from tests.support.old_client import OldClient, Told
from tests.support.upstreams import rig
from tests.support.waiting import GUARD, until, within
from thoughtgate.core.errors import UpstreamError
from thoughtgate.core.servers import Era, Server, StdioTransport
from thoughtgate.upstream.breaker import Backoff

FAKE = "thoughtgate.testing.fake_server"
SLOW = [{"name": "slow", "on": "read", "seconds": 0.5}]
FORM = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}


@pytest.fixture
def hole() -> Iterator[str]:
    """The address of something that lets anybody in and never says a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def config(*, grace: int, delay: float = 0.0) -> str:
    """Return settings with two servers: one that is good, and one that will not go."""
    return (
        f"grace = {grace}\ndrain_delay = {delay}\n"
        + python_server("good", FAKE, "--faults", json.dumps(SLOW))
        + python_server("stubborn", FAKE, "--ignore-eof", "--ignore-term")
    )


class Crowd:
    """Clients of both eras with all that may be open at once."""

    def __init__(self, running: Gate) -> None:
        self.url = running.url()
        self.peer = HttpPeer(self.url)

    async def gather(self) -> None:
        """Open everything; when this returns, the gateway and the server are at work on it."""
        elicits = await OldClient.open(self.url, elicitation={})
        self.own = await elicits.listen()
        asked = {"method": "elicitation/create", "params": FORM}
        _, question = await elicits.begin("old__ask", asked)
        self.question = await question.head()
        assert (await question.message())["method"] == "elicitation/create"
        _, endless = await elicits.begin("good__endless", progressToken="p")
        self.endless = await endless.head()
        assert (await endless.message())["method"] == "notifications/progress"
        _, self.slow = await elicits.begin("good__read", {"n": 1})
        self.listening = await self._listen()
        assert "acknowledged" in (await self.listening.message())["method"]
        await self._batch()
        self.hanging = await self._ask("tools/call", {"name": "good__hang", "arguments": {}})
        self.parked = await self._park()
        self.half = await self._half()

    async def _half(self) -> Told:
        """Begin a request whose body stays half."""
        reader, writer = await self.peer.open()
        writer.write(self.peer.head("POST", "/mcp", 100, None) + b"{")
        return Told(reader, writer)

    async def _park(self) -> Any:
        """Have a call of the newer era ask its client, and leave the question open."""
        can = {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        asked = {"method": "elicitation/create", "params": FORM}
        params = {"name": "old__ask", "arguments": asked, "_meta": can}
        told = await self._ask("tools/call", params)
        return (await (await told.head()).rest())[-1]["result"]

    async def _batch(self) -> None:
        old = await OldClient.open(self.url, version="2025-03-26")
        calls = [request("tools/call", {"name": f"good__{name}"}, name) for name in ("hang", "pid")]
        self.batch = await self._post(calls, old.headers)

    async def _listen(self) -> Told:
        told = await self._ask(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
        )
        return await told.head()

    async def _ask(self, method: str, params: dict[str, Any]) -> Told:
        headers = {"mcp-protocol-version": NEW, "mcp-method": method}
        if "name" in params:
            headers["mcp-name"] = params["name"]
        return await self._post(request(method, {"_meta": ENVELOPE, **params}, 9), headers)

    async def _post(self, message: object, headers: dict[str, str]) -> Told:
        reader, writer = await self.peer.open()
        body = json.dumps(message).encode()
        writer.write(self.peer.head("POST", "/mcp", len(body), headers) + body)
        return Told(reader, writer)


def servers(running: Gate) -> list[int]:
    """Return the processes of the servers of a gateway."""
    return children(running.process.pid)


async def refused(port: int) -> None:
    """Return when nobody is let in at a port any more."""

    def gone() -> bool:
        with closing(socket.socket()) as one:
            return one.connect_ex(("127.0.0.1", port)) != 0

    await until(gone)


async def ended(running: Gate, seconds: float) -> int:
    """Return the exit code of a gateway that ends within some seconds."""
    return await asyncio.to_thread(running.process.wait, seconds)


def stopping(answer: Any) -> bool:
    """Tell whether an answer says that the gateway stops, and that the outcome is not known."""
    return "stopping" in answer["error"]["message"] and answer["error"]["data"] == {
        "error": "upstream_lost",
        "outcome": "unknown",
    }


async def test_a_gateway_with_everything_open_ends_well_within_its_grace(
    tmp_path: Path, hole: str
) -> None:
    extra = python_server("old", FAKE, "--era", "handshake", sharing="session")
    place = home(tmp_path, config(grace=2) + extra, OTEL_EXPORTER_OTLP_ENDPOINT=hole)
    async with gated(place) as running:
        crowd = Crowd(running)
        await crowd.gather()
        assert crowd.parked["resultType"] == "input_required"
        started = servers(running)
        running.process.send_signal(signal.SIGTERM)
        await refused(crowd.peer.port)
        assert await crowd.own.rest() == []
        assert (await crowd.listening.rest())[-1]["result"]["resultType"] == "complete"
        answered = (await (await crowd.slow.head()).rest())[-1]
        assert answered["result"]["structuredContent"] == {"n": 1}
        assert stopping((await (await crowd.hanging.head()).rest())[-1])
        assert stopping((await crowd.endless.rest())[-1])
        half = await crowd.half.head()
        assert (half.status, len(await half.rest())) == (503, 1)
        [asked] = await crowd.question.rest()  # its question found no answer
        assert asked["result"]["structuredContent"]["code"] < 0
        hang, pid = await (await crowd.batch.head()).message()
        assert stopping(hang)
        assert pid["result"]["structuredContent"]["pid"] in started
        assert await ended(running, START) == 0
    assert "Traceback" not in running.words
    assert [pid for pid in started if alive(pid)] == []


async def test_a_second_signal_ends_at_once_and_leaves_no_child(tmp_path: Path, hole: str) -> None:
    place = home(tmp_path, config(grace=3600), OTEL_EXPORTER_OTLP_ENDPOINT=hole)
    async with gated(place) as running:
        client = await OldClient.open(running.url())
        _, hanging = await client.begin("good__hang")
        started = servers(running)
        await client.call("good__echo")
        running.process.send_signal(signal.SIGTERM)
        await refused(client.peer.port)
        running.process.send_signal(signal.SIGINT)
        assert await ended(running, GUARD) == 0
        assert stopping((await (await hanging.head()).rest())[-1])
    assert "Traceback" not in running.words
    assert len(started) == 2
    assert [pid for pid in started if alive(pid)] == []


async def test_a_second_signal_kills_a_child_that_will_not_go(tmp_path: Path, hole: str) -> None:
    place = home(tmp_path, config(grace=3600), OTEL_EXPORTER_OTLP_ENDPOINT=hole)
    async with gated(place) as running:
        await (await OldClient.open(running.url())).call("good__echo")  # something to export
        started = servers(running)
        running.process.send_signal(signal.SIGTERM)
        await until(lambda: len(servers(running)) == 1, START)  # the good one has gone
        running.process.send_signal(signal.SIGTERM)
        assert await ended(running, GUARD) == 0
    assert [pid for pid in started if alive(pid)] == []


async def test_a_gateway_that_stops_is_not_ready_while_it_still_takes_calls(tmp_path: Path) -> None:
    place = home(tmp_path, config(grace=1, delay=600))
    async with gated(place) as running:
        peer = HttpPeer(running.url())
        assert (await peer.send("GET", "/readyz")).status == 200
        running.process.send_signal(signal.SIGTERM)

        async def unready() -> None:
            while (await peer.send("GET", "/readyz")).status == 200:
                pass

        await within(unready())
        told = await peer.send("GET", "/readyz")
        assert (told.status, told.json["reason"]) == (503, "stopping")
        assert (await peer.send("GET", "/healthz")).status == 200
        called = await peer.ask("tools/call", {"name": "good__echo", "arguments": {"n": 1}})
        assert called.json["result"]["structuredContent"] == {"n": 1}
        running.process.send_signal(signal.SIGTERM)
        assert await ended(running, START) == 0


QUICK = r"""
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},'
      result=$result'"serverInfo":{"name":"quick","version":"0"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"crash","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) exit 3 ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"""  # fmt: skip
"""A tool server that starts in a few milliseconds and crashes when it is called."""


async def test_two_hundred_crashes_leave_no_zombie_no_file_and_no_memory(tmp_path: Path) -> None:
    script = tmp_path / "quick.sh"
    script.write_text(QUICK, encoding="utf-8")
    server = Server(
        name="peer", transport=StdioTransport(argv=("/bin/sh", str(script))), era=Era.HANDSHAKE
    )
    never = Backoff(first=0.0, longest=0.0, give_up=None)
    async with rig(server, backoff=never) as upstreams:

        async def crash() -> None:
            with pytest.raises(UpstreamError) as lost:
                await upstreams.send("crash")
            assert "peer" in lost.value.message

        for _ in range(20):
            await crash()
        gc.collect()
        files, held = open_files(os.getpid()), memory(os.getpid())
        for _ in range(200):
            await crash()
        assert zombies(os.getpid()) == []
        assert len(children()) <= 1
        gc.collect()
        assert open_files(os.getpid()) <= files + 4  # of one child that starts
        assert memory(os.getpid()) - held < 4 * 2**20
    assert children() == []
