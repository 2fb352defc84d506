"""Several workers on one port and one registry: nobody can tell them from one.

Real processes; where a request lands is said by the connection that it comes on.
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client

from tests.support.admin import AdminClient
from tests.support.attacker import refuses
from tests.support.children import alive, children
from tests.support.gate import START, STOP, Gate, gated, home, python_server
from tests.support.old_client import OldClient
from tests.support.pinned import PinnedPeer, beacons, strayed, worker_of
from tests.support.waiting import until, within
from thoughtgate.app.admin_token import TOKEN_FILE
from thoughtgate.app.crew.folder import PREFIX
from thoughtgate.testing.fake_http import FakeHttp, fake_http

pytestmark = pytest.mark.asyncio(loop_scope="module")

TWO = ("--workers", "2")
ASK = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}
YES = {"action": "accept", "content": {}}
ABLE: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web() -> AsyncIterator[FakeHttp]:
    async with fake_http() as endpoint:
        yield endpoint


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory, web: FakeHttp) -> AsyncIterator[Gate]:
    settings = server(web)
    async with gated(home(tmp_path_factory.mktemp("home"), settings), *TWO) as gateway:
        yield gateway


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="short-") as folder:
        yield Path(folder)


def server(web: FakeHttp) -> str:
    """Return the lines that configure it."""
    return f'[servers.web]\nurl = "{web.url}"\nera = "handshake"\n'


def hanging(web: FakeHttp) -> int:
    """Return how many calls have come that are never answered."""
    asked = [one["params"] for one in web.server.seen if one.get("method") == "tools/call"]
    return [one["name"] for one in asked].count("hang")


def admin(running: Gate) -> AdminClient:
    token = (running.home.state / TOKEN_FILE).read_text(encoding="utf-8").strip()
    return AdminClient(url=running.url(), token=token)


def folders(place: Path) -> list[Path]:
    """Return the folders of workers' sockets there."""
    return list(place.glob(f"{PREFIX}*"))


def socket_folder(worker: int) -> Path:
    """Return the folder of sockets that a worker's process was told."""
    words = Path(f"/proc/{worker}/cmdline").read_text(encoding="utf-8").split("\0")
    [folder] = [word.partition("=")[2] for word in words if word.startswith("--sockets=")]
    return Path(folder)


def modes(place: Path) -> dict[str, int]:
    return {one.name: one.stat().st_mode & 0o777 for one in place.iterdir()}


async def status(running: Gate) -> Any:
    return await asyncio.to_thread(admin(running).get, "/status")


async def test_a_session_is_served_on_connections_to_any_worker(running: Gate) -> None:
    """Its stream, calls, questions and end; in one of the two workers, and from the other."""
    both = await beacons(running.url())
    for at in (0, 1):
        client = await OldClient.open(running.url(), elicitation={})
        while worker_of(client) != at:
            client = await OldClient.open(running.url(), elicitation={})
        stray = strayed(client, both[1 - at])
        standing = await stray.listen()
        assert await stray.structured("web__remember", {"number": at}) == {}
        id_, asking = await stray.begin("web__ask", ASK)
        await asking.head()
        question = await asking.message()
        assert question["method"] == "elicitation/create"
        assert await client.answer(question, YES) == 202
        [answer] = await asking.rest()
        assert (answer["id"], answer["result"]["structuredContent"]["result"]) == (id_, YES)
        id_, asking = await client.begin("web__ask", ASK)
        await asking.head()
        assert await stray.answer(await asking.message(), YES) == 202
        assert (await asking.rest())[0]["id"] == id_
        await stray.leave()
        assert await standing.message() is None
        assert (await client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 404


async def test_a_retry_finds_the_call_that_another_worker_has_parked(running: Gate) -> None:
    both = await beacons(running.url())
    for at in (0, 1):
        first, second = (PinnedPeer(running.url(), both[one]) for one in (at, 1 - at))
        params: dict[str, Any] = {"name": "web__ask", "arguments": ASK, "_meta": ABLE}
        asked = (await first.ask("tools/call", params)).json["result"]
        assert asked["resultType"] == "input_required"
        [key] = asked["inputRequests"]
        retry = {"inputResponses": {key: YES}, "requestState": asked["requestState"]}
        done = (await second.ask("tools/call", {**params, **retry})).json["result"]
        assert done["structuredContent"]["result"] == YES
        again = (await first.ask("tools/call", {**params, **retry})).json
        assert "was answered already" in again["error"]["message"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_forty_clients_are_all_answered_and_shared_out(running: Gate, mode: str) -> None:
    before = {one["index"]: one["calls"] for one in (await status(running))["workers"]}

    async def visit(number: int) -> None:
        async with Client(running.url(), mode=mode) as client:
            for _ in range(3):
                done = await client.call_tool("web__echo", {"value": number})
                assert not done.is_error

    for start in range(0, 40, 10):
        await within(asyncio.gather(*(visit(start + number) for number in range(10))), START)
    after = (await status(running))["workers"]
    taken = {one["index"]: one["calls"] - before[one["index"]] for one in after}
    assert sum(taken.values()) == 120
    assert 48 <= taken[0] <= 72, taken


async def test_a_forged_mark_leads_to_another_worker_and_to_no_session(running: Gate) -> None:
    both = await beacons(running.url())
    for at, client in enumerate(both):
        mark, _, sealed = client.headers["mcp-session-id"].partition(".")
        assert mark == str(at)
        forged = ["", f"{1 - at}.", f"{at + 2}.", f"{at}.{at}.", f"0{at}.", "9999999999."]
        for one in forged:
            liar = OldClient(running.url())
            liar.headers = {**client.headers, "mcp-session-id": one + sealed}
            got = await liar.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert got.status == 404, (one, got)
        assert await client.structured("web__remember", {"number": at}) == {}
        await client.leave()


async def test_nobody_else_can_reach_a_worker_s_sockets(running: Gate) -> None:
    folder = socket_folder(children(running.process.pid)[0])
    kinds = ("worker", "servers")
    assert modes(folder) == {f"{kind}-{at}.sock": 0o600 for kind in kinds for at in (0, 1)}
    assert modes(folder.parent)[folder.name] == 0o700


async def test_the_status_tells_of_every_worker(running: Gate) -> None:
    both = await beacons(running.url())
    told = await status(running)
    assert told["pid"] == running.process.pid
    assert {one["pid"] for one in told["workers"]} == set(children(running.process.pid))
    assert all(one["up"] and one["sessions"] for one in told["workers"])
    assert told["sessions"] == sum(one["sessions"] for one in told["workers"])
    [listed] = await asyncio.to_thread(running.home.said, "status")
    assert (listed["pid"], listed["workers"]) == (running.process.pid, 2)
    for client in both:
        await client.leave()


async def test_a_change_and_a_reload_reach_every_worker(running: Gate) -> None:
    both = await beacons(running.url())
    peers = [PinnedPeer(running.url(), client) for client in both]
    text = running.home.config.read_text(encoding="utf-8")

    async def found(domain: str) -> list[int]:
        return [(await one.ask("tools/list", {}, path=f"/mcp/{domain}")).status for one in peers]

    assert await found("first") == [404, 404]
    await asyncio.to_thread(admin(running).do, "PUT", "/domains/zero", {}, If_None_Match="*")
    assert await found("zero") == [200, 200]
    running.home.config.write_text(f"{text}[domains.first]\n", encoding="utf-8")
    done = await asyncio.to_thread(admin(running).do, "POST", "/reload")
    assert done["domains"] == ["first"]
    assert await found("first") == [200, 200]
    running.home.config.write_text(f"{text}[domains.second]\n", encoding="utf-8")
    running.process.send_signal(signal.SIGHUP)
    await asyncio.to_thread(running.hear, "the configuration was read again")
    async with asyncio.timeout(START):
        while await found("second") != [200, 200]:
            await asyncio.to_thread(running.hear, "listening on")


async def test_a_check_of_a_server_reaches_every_worker(running: Gate, web: FakeHttp) -> None:
    def listed() -> int:
        return [one.get("method") for one in web.server.seen].count("tools/list")

    before = listed()
    checked = await asyncio.to_thread(admin(running).do, "POST", "/servers/web/check")
    assert checked["ok"]
    assert listed() == before + 2


async def test_a_check_of_a_server_that_is_gone_is_told_once_and_no_worker_failed(
    running: Gate,
) -> None:
    async with fake_http() as gone:
        body = {"url": gone.url}
        await asyncio.to_thread(admin(running).do, "PUT", "/servers/gone", body, If_None_Match="*")
    checked = await asyncio.to_thread(admin(running).do, "POST", "/servers/gone/check")
    assert not checked["ok"]
    assert "and has not" not in running.words
    await asyncio.to_thread(admin(running).do, "DELETE", "/servers/gone", If_Match="*")


async def test_a_worker_that_is_killed_comes_back_with_its_sessions(
    running: Gate, web: FakeHttp
) -> None:
    """The others go on meanwhile; a call in flight is lost, and nobody sends it again."""
    both = await beacons(running.url())
    told = await status(running)
    pid = told["workers"][1]["pid"]
    _, lost = await both[1].begin("web__hang")
    await until(lambda: hanging(web))
    os.kill(pid, signal.SIGKILL)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await lost.head()
    both[1].drop()
    assert await both[0].structured("web__remember", {"number": 1}) == {}
    stray = strayed(both[1], both[0])
    assert await stray.structured("web__remember", {"number": 2}) == {}
    await asyncio.to_thread(running.hear, f"worker 1 (process {pid}) has ended by signal 9")
    after = await status(running)
    assert after["workers"][1]["up"]
    assert after["workers"][1]["pid"] != pid


async def test_workers_end_when_their_parent_is_lost(tmp_path: Path, short: Path) -> None:
    own = python_server("own", "thoughtgate.testing.fake_server", sharing="shared")
    async with gated(home(tmp_path, own, XDG_RUNTIME_DIR=str(short)), *TWO) as running:
        assert len(folders(short)) == 1
        pids = children(running.process.pid)
        every = [*pids, *(child for pid in pids for child in children(pid))]
        assert len(every) > 2
        client = await OldClient.open(running.url())
        await client.listen()
        running.process.kill()
        await until(lambda: not any(map(alive, every)), STOP)
        assert not folders(short)
        client.drop()


async def test_a_signal_lets_calls_end_and_closes_streams(tmp_path: Path, short: Path) -> None:
    """While it drains the gateway is still there for those who have something to finish."""
    async with fake_http() as web:
        settings = f"drain_delay = 3\n{server(web)}"
        async with gated(home(tmp_path, settings, XDG_RUNTIME_DIR=str(short)), *TWO) as running:
            clients = [await OldClient.open(running.url(), elicitation={}) for _ in range(2)]
            assert {worker_of(client) for client in clients} == {0, 1}
            streams = [await client.listen() for client in clients]
            calls = [(await client.begin("web__ask", ASK))[1] for client in clients]
            questions = [await (await told.head()).message() for told in calls]
            pids = children(running.process.pid)
            running.process.terminate()
            for client, question, told in zip(clients, questions, calls, strict=True):
                assert await client.answer(question, YES) == 202
                assert [message["id"] for message in await told.rest()] == [1]
            for stream in streams:
                assert await stream.message() is None
            assert await asyncio.to_thread(running.process.wait, STOP) == 0
            assert not any(map(alive, pids))
            assert not folders(short)


async def test_a_second_signal_ends_all_at_once(tmp_path: Path, web: FakeHttp) -> None:
    async with gated(home(tmp_path, f"grace = 3600\n{server(web)}"), *TWO) as running:
        clients = await beacons(running.url())
        before = hanging(web)
        for client in clients:
            await client.begin("web__hang")
        await until(lambda: hanging(web) == before + 2)
        running.process.terminate()
        await until(lambda: refuses(running.url()))
        assert running.process.poll() is None
        running.process.terminate()
        assert await asyncio.to_thread(running.process.wait, STOP) == 0
        for client in clients:
            client.drop()
