"""What sessions hold while they live, and what is left of them: nothing.

Real gateways and raw clients; counted from outside, by the kernel and by the servers behind.
"""

import asyncio
import random
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client

from tests.support.admin import AdminClient
from tests.support.children import alive, children, open_files, zombies
from tests.support.gate import (
    ROOT,
    START,
    STOP,
    Gate,
    Home,
    gate,
    gated,
    home,
    python_server,
    server_table,
)
from tests.support.old_client import OldClient
from tests.support.waiting import until, within
from thoughtgate.app.admin_token import TOKEN_FILE
from thoughtgate.testing.fake_http import FakeHttp, fake_http

pytestmark = pytest.mark.asyncio(loop_scope="module")

TALKER = ROOT / "tests" / "support" / "hostile_talker.py"
FAKE = "thoughtgate.testing.fake_server"
OWN = python_server("own", FAKE, "--era", "handshake", era="handshake", sharing="session")
SHARED = python_server("all", FAKE)
ABLE: dict[str, Any] = {"elicitation": {}, "sampling": {}}
ASK = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web() -> AsyncIterator[FakeHttp]:
    async with fake_http() as endpoint:
        yield endpoint


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory, web: FakeHttp) -> AsyncIterator[Gate]:
    settings = f'[servers.web]\nurl = "{web.url}"\nera = "handshake"\n{OWN}{SHARED}'
    async with gated(home(tmp_path_factory.mktemp("home"), settings)) as gateway:
        yield gateway


def sessions(running: Gate) -> int:
    """Return how many sessions the gateway counts."""
    token = (running.home.state / TOKEN_FILE).read_text(encoding="utf-8").strip()
    return int(AdminClient(url=running.url(), token=token).get("/status")["sessions"])


async def pid_of(client: OldClient, server: str) -> int:
    return int((await client.structured(f"{server}__pid"))["pid"])


async def test_five_hundred_clients_that_come_and_go_leave_nothing(
    running: Gate, web: FakeHttp
) -> None:
    """One in three cuts a call and its streams off in the middle before it goes."""
    pid = running.process.pid
    first = await OldClient.open(running.url())
    await first.structured("web__echo")
    await first.leave()
    await until(lambda: len(web.sessions) == 1)
    files, processes, streams = open_files(pid), children(pid), len(web.streams)

    async def visit(number: int) -> None:
        client = await OldClient.open(running.url(), **ABLE)
        await client.listen()
        assert await client.structured("web__remember", {"number": number}) == {}
        if number % 3 == 0:
            await client.begin("web__hang")
            _, asked = await client.begin("web__ask", ASK)
            await asked.head()
        client.drop()
        await client.leave()

    for start in range(0, 500, 20):
        await asyncio.gather(*(visit(number) for number in range(start, start + 20)))
    await until(lambda: len(web.sessions) == 1, START)
    assert await asyncio.to_thread(sessions, running) == 0
    assert children(pid) == processes
    assert len(web.streams) <= streams + 1
    await until(lambda: web.server.running == 0, START)
    await until(lambda: open_files(pid) <= files + 100, START)  # the pool keeps idle connections


async def test_the_connection_and_the_child_of_a_session_end_with_it(
    running: Gate, web: FakeHttp
) -> None:
    going, staying = await OldClient.open(running.url()), await OldClient.open(running.url())
    for client in (going, staying):
        await client.structured("web__echo")
    pids = [await pid_of(client, "own") for client in (going, staying)]
    assert len({*pids, await pid_of(going, "all"), await pid_of(staying, "all")}) == 3
    await going.leave()
    await until(lambda: not alive(pids[0]), START)
    await until(lambda: len(web.sessions) == 2)
    assert await pid_of(staying, "own") == pids[1]
    await staying.leave()
    await until(lambda: not alive(pids[1]), START)


async def test_the_child_of_a_session_ends_though_its_call_is_running(running: Gate) -> None:
    client = await OldClient.open(running.url(), **ABLE)
    pid = await pid_of(client, "own")
    await client.begin("own__hang")
    _, asked = await client.begin("own__ask", ASK)
    await asked.head()
    assert (await asked.message())["method"] == "elicitation/create"
    await client.leave()
    await until(lambda: not alive(pid), START)
    client.drop()


async def test_a_hundred_calls_of_many_clients_are_served_by_one_child(running: Gate) -> None:
    before = len(children(running.process.pid))
    clients = [await OldClient.open(running.url()) for _ in range(5)]
    pids = {
        pid
        for _ in range(20)
        for pid in await asyncio.gather(*(pid_of(client, "all") for client in clients))
    }
    assert len(pids) == 1
    assert len(children(running.process.pid)) == before
    for client in clients:
        await client.leave()


async def test_a_client_that_never_comes_back_is_given_up(tmp_path: Path) -> None:
    settings = f"[limits]\nsession_idle = 0.5\n{OWN}"
    async with gated(home(tmp_path, settings)) as gateway:
        client = await OldClient.open(gateway.url(), **ABLE)
        pid = await pid_of(client, "own")
        await until(lambda: not alive(pid), START)
        assert (await client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 404


async def test_an_idle_connection_of_one_session_ends_and_opens_again(tmp_path: Path) -> None:
    async with gated(home(tmp_path, f"{OWN}idle_timeout = 0.3\n")) as gateway:
        client = await OldClient.open(gateway.url())
        pid = await pid_of(client, "own")
        await until(lambda: not alive(pid), START)
        assert await pid_of(client, "own") != pid
        assert zombies(gateway.process.pid) == []


async def test_many_reconnects_leave_no_zombie(tmp_path: Path) -> None:
    bad = server_table("bad", sys.executable, "-S", "-E", TALKER, era="handshake")
    async with gated(home(tmp_path, bad)) as gateway:
        client = await OldClient.open(gateway.url())
        pids = set()
        for _ in range(25):
            pids.add(await pid_of(client, "bad"))
            lost = await client.call("bad__crash")
            assert lost["result"]["structuredContent"]["error"] == "upstream_lost"
        assert len(pids) == 25
        assert zombies(gateway.process.pid) == []
        await until(lambda: not any(map(alive, pids)))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture
def lasting(tmp_path: Path) -> tuple[Home, str]:
    """Return a home with a domain, and the port that all its gateways have."""
    place = home(tmp_path, f'{SHARED}{OWN}[domains.work]\ninclude = ["all/*"]\n')
    return place, str(free_port())


async def test_sessions_outlive_a_restart_of_the_gateway(lasting: tuple[Home, str]) -> None:
    place, port = lasting
    with gate(place, "--port", port) as gateway:
        person = Client(gateway.url(), mode="legacy")
        client = await OldClient.open(gateway.url(), roots={})
        await pid_of(client, "own")
        async with person:
            await within(person.call_tool("all__echo", {"n": 1}), START)
            assert gateway.stop() == 0
            with gate(place, "--port", port):
                again = await within(person.call_tool("all__echo", {"n": 2}), START)
                assert again.structured_content == {"n": 2}
                assert (await client.structured("own__greeting"))["capabilities"] == {"roots": {}}
                assert (await client.ask("ping"))["result"] == {}
                await client.leave()
                assert (await client.post({"jsonrpc": "2.0", "id": 1, "method": "x"})).status == 404
            with gate(place, "--port", port):
                assert (await client.post({"jsonrpc": "2.0", "id": 1, "method": "x"})).status == 404


async def test_a_session_is_taken_up_by_nobody_else_after_a_restart(
    lasting: tuple[Home, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place, port = lasting
    with gate(place, "--port", port) as gateway:
        client = await OldClient.open(gateway.url("work"))
        id_ = client.headers["mcp-session-id"]
        assert await client.structured("all__echo", {"n": 1}) == {"n": 1}
    other = home(
        tmp_path_factory.mktemp("other"), place.config.read_text("utf-8").split("\n", 2)[2]
    )
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with gate(place, "--port", port):
        for changed in (id_[:-1], id_ + "A", id_[::-1], "x" * 500, ""):
            client.headers["mcp-session-id"] = changed
            assert (await client.post(ping)).status in {400, 404}, changed
        client.headers["mcp-session-id"] = id_
        client.path = "/mcp"
        assert (await client.post(ping)).status == 404
        client.path = "/mcp/work"
        assert (await client.post(ping)).status == 200
    with gate(other, "--port", port):
        assert (await client.post(ping)).status == 404


async def test_a_gateway_that_is_told_to_stop_ends_what_is_open(
    tmp_path: Path, web: FakeHttp
) -> None:
    """A waiting stream of either era, a running call, and one that waits for its client."""
    asking = f'[servers.web]\nurl = "{web.url}"\nera = "handshake"\n{OWN}'
    async with gated(home(tmp_path, asking)) as gateway:
        client = await OldClient.open(gateway.url(), **ABLE)
        pid = await pid_of(client, "own")
        standing = await client.listen()
        _, running_ = await client.begin("own__hang")
        _, asked = await client.begin("web__ask", ASK)
        await asked.head()
        await asked.message()
        new = OldClient(gateway.url())
        parked = await new.peer.ask("tools/call", stateless_ask(), headers={})
        assert parked.json["result"]["resultType"] == "input_required"
        await until(lambda: web.server.running >= 2)
        processes = children(gateway.process.pid)
        gateway.process.send_signal(signal.SIGTERM)
        assert await standing.rest() == []
        assert await asyncio.to_thread(gateway.process.wait, STOP) == 0
        assert "Traceback" not in gateway.words
        stopped = (await (await running_.head()).rest())[-1]
        assert stopped["error"]["data"]["error"] == "upstream_lost"
        assert (await asked.rest())[-1]["result"]["structuredContent"]["code"] == -32601
        assert not any(map(alive, [pid, *processes]))
        await until(lambda: web.server.running == 0, START)


def stateless_ask() -> dict[str, Any]:
    able = {"io.modelcontextprotocol/clientCapabilities": ABLE}
    return {"name": "web__ask", "arguments": ASK, "_meta": able}


@pytest.fixture
def edited(tmp_path: Path) -> Iterator[Gate]:
    with gate(home(tmp_path, f"{SHARED}{OWN}")) as gateway:
        yield gateway


async def test_a_server_whose_settings_changed_leaves_no_old_child(edited: Gate) -> None:
    client = await OldClient.open(edited.url())
    config = edited.home.config
    text = config.read_text(encoding="utf-8")
    old = {await pid_of(client, "all"), await pid_of(client, "own")}
    config.write_text(text.replace("[servers.", "[servers.new-"), encoding="utf-8")
    edited.process.send_signal(signal.SIGHUP)
    await until(lambda: not any(map(alive, old)), START)

    async def found() -> int:
        answer = await client.call("new-all__pid")
        return int(answer["result"]["structuredContent"]["pid"]) if "result" in answer else 0

    async with asyncio.timeout(START):
        while not (new := await found()):
            pass
    assert new not in old
    config.write_text(text.split("[servers.")[0], encoding="utf-8")
    edited.process.send_signal(signal.SIGHUP)
    await until(lambda: children(edited.process.pid) == [], START)


async def test_servers_come_and_go_while_others_are_called(running: Gate, web: FakeHttp) -> None:
    """The calls under way and those that begin meanwhile all succeed, and the list is whole."""
    token = (running.home.state / TOKEN_FILE).read_text(encoding="utf-8").strip()
    admin = AdminClient(url=running.url(), token=token)
    over = asyncio.Event()
    done = 0
    lists: list[set[str]] = []

    async def calling(number: int) -> None:
        nonlocal done
        client = await OldClient.open(running.url())
        rng = random.Random(number)
        while not over.is_set():
            n = rng.random()
            assert await client.structured("all__echo", {"n": n}) == {"n": n}
            done += 1
        await client.leave()

    calls = [asyncio.ensure_future(calling(number)) for number in range(3)]
    for round_ in range(10):
        name = f"extra{round_ % 2}"
        spec = {"url": web.url, "era": "handshake"}
        await asyncio.to_thread(admin.do, "PUT", f"/servers/{name}", spec, If_None_Match="*")
        lists.append(await names(running, name))
        await asyncio.to_thread(admin.do, "DELETE", f"/servers/{name}", None, If_Match="*")
    over.set()
    await within(asyncio.gather(*calls), START)
    assert done >= 30
    assert all(len(found) == 4 for found in lists)
    await until(lambda: len(web.sessions) == 1, START)


async def names(running: Gate, wanted: str) -> set[str]:
    """Return the servers in the list of tools, once it holds those of `wanted`."""
    client = await OldClient.open(running.url())
    found: set[str] = set()
    async with asyncio.timeout(START):
        while wanted not in found:
            found = {name.split("__")[0] for name in await client.names("tools")}
    await client.leave()
    return found
