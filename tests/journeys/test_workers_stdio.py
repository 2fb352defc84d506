"""Servers that are child processes, behind several workers: one child, whoever calls it.

Real processes; a client at each worker, one of which does not run the child.
"""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.admin import AdminClient
from tests.support.attacker import refuses
from tests.support.children import alive, children
from tests.support.gate import ROOT, START, STOP, Gate, Home, gated, home, server_table
from tests.support.old_client import OldClient
from tests.support.pinned import beacons, worker_of
from tests.support.waiting import until
from thoughtgate.app.admin_token import TOKEN_FILE
from thoughtgate.core.json import digest
from thoughtgate.core.workers import Crew

pytestmark = pytest.mark.asyncio(loop_scope="module")

FAKE = f"exec {sys.executable} -m thoughtgate.testing.fake_server --era handshake"
OWNER = Crew(count=2).owner("common")
ASK = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}
YES = {"action": "accept", "content": {}}
ONCE = {"row": "each once"}


def place(folder: Path, gateway: str = "") -> Home:
    """Make a home with two servers that write down each of their starts."""
    common, apart = (f"echo $$ >> {folder}/{name}.starts; {FAKE}" for name in ("common", "apart"))
    one = server_table("common", "sh", "-c", f"{common} --offers", cwd=str(ROOT))
    two = server_table("apart", "sh", "-c", apart, cwd=str(ROOT), sharing="session")
    return home(folder, gateway + one + two)


def starts(running: Gate, server: str) -> list[str]:
    """Return the processes that a server has had, in order."""
    return (running.home.folder / f"{server}.starts").read_text(encoding="utf-8").split()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gate]:
    async with gated(place(tmp_path_factory.mktemp("home")), "--workers", "2") as gateway:
        yield gateway


@pytest_asyncio.fixture(loop_scope="module")
async def clients(running: Gate) -> AsyncIterator[list[OldClient]]:
    """Give a client that can be asked at each worker: first where `common` runs."""
    found: dict[int, OldClient] = {}
    while len(found) < 2:
        client = await OldClient.open(running.url(), elicitation={})
        found[worker_of(client)] = client
    yield [found[OWNER], found[1 - OWNER]]
    for client in found.values():
        client.drop()
        await client.leave()


def ended(pid: int) -> bool:
    return not alive(pid)


def processes(running: Gate) -> list[int]:
    """Return the children of all workers."""
    workers = children(running.process.pid)
    return [pid for worker in workers for pid in children(worker)]


async def pids(clients: list[OldClient], server: str = "common") -> list[int]:
    return [(await client.structured(f"{server}__pid"))["pid"] for client in clients]


async def said(client: OldClient) -> str:
    """Return all messages that the child of `common` was sent so far."""
    return json.dumps((await client.structured("common__seen"))["seen"])


async def sent(client: OldClient, words: str, *, times: int = 1) -> None:
    """Return when the child of `common` was sent some words, asking it again and again."""
    async with asyncio.timeout(START):
        while (await said(client)).count(words) < times:
            continue


async def failure(told: Any) -> str:
    """Return the text of a call that failed."""
    answer = (await (await told.head()).rest())[-1]
    assert answer["result"]["isError"], answer
    return str(answer["result"]["content"][0]["text"])


def admin(running: Gate) -> AdminClient:
    token = (running.home.state / TOKEN_FILE).read_text(encoding="utf-8").strip()
    return AdminClient(url=running.url(), token=token)


async def test_one_child_serves_the_clients_of_both_workers(
    running: Gate, clients: list[OldClient]
) -> None:
    own, far = await pids(clients)
    assert own == far
    assert processes(running).count(own) == 1
    listed = [await client.ask("tools/list") for client in clients]
    assert listed[0]["result"] == listed[1]["result"]
    big = await clients[1].call("common__big", {"size": 5 * 1024 * 1024})
    assert len(big["result"]["content"][0]["text"]) == 5 * 1024 * 1024


async def test_progress_and_a_cancellation_pass_between_workers(clients: list[OldClient]) -> None:
    _, told = await clients[1].begin("common__progress", {"count": 3}, progressToken="p")
    *reports, answer = await (await told.head()).rest()
    assert [one["params"]["progress"] for one in reports] == [0, 1, 2]
    assert answer["result"]["content"][0]["text"] == "done"
    id_, _ = await clients[1].begin("common__hang", {"mark": "between"})
    await sent(clients[0], "between")
    await clients[1].tell("notifications/cancelled", requestId=id_)
    await sent(clients[0], "notifications/cancelled")


async def test_each_client_has_a_child_of_its_own_where_that_is_wished_and_is_asked_by_it(
    running: Gate, clients: list[OldClient]
) -> None:
    own = await pids(clients, "apart")
    assert len(set(own)) == 2
    for client in clients:
        _, told = await client.begin("apart__ask", ASK)
        await told.head()
        assert await client.answer(await told.message(), YES) == 202
        answer = (await told.rest())[-1]
        assert answer["result"]["structuredContent"]["result"] == YES
    for client in await beacons(running.url()):
        child = (await client.structured("apart__pid"))["pid"]
        await client.leave()
        await until(partial(ended, child))


async def test_clients_of_both_workers_hear_that_a_list_has_changed(
    clients: list[OldClient],
) -> None:
    streams = [await client.listen() for client in clients]
    await clients[1].call("common__change")
    for stream in streams:
        assert (await stream.message())["method"] == "notifications/tools/list_changed"
    for client in clients:
        assert "common__extra0" in await client.names("tools")


async def test_a_child_that_is_killed_fails_all_its_calls_with_the_same_words(
    clients: list[OldClient],
) -> None:
    first = (await pids(clients))[0]
    calls = [(await client.begin("common__hang", {"mark": "killed"}))[1] for client in clients]
    await sent(clients[0], "killed", times=2)
    os.kill(first, signal.SIGKILL)
    own, far = [await failure(told) for told in calls]
    assert own == far
    assert "server common" in own
    assert "SIGKILL" in own
    own_pid, far_pid = await pids(clients)
    assert own_pid == far_pid != first


async def test_a_restart_reaches_the_one_child_whichever_worker_is_told(
    running: Gate, clients: list[OldClient]
) -> None:
    last = (await pids(clients))[0]
    for server in ("common", "apart"):  # of which each worker runs one
        before = len(starts(running, server))
        done = await asyncio.to_thread(admin(running).do, "POST", f"/servers/{server}/restart")
        assert done["ok"], done
        assert done["state"] == "ready"
        assert len(starts(running, server)) == before + 1
    own, far = await pids(clients)
    assert own == far == int(starts(running, "common")[-1]) != last


async def test_each_call_is_one_row_and_each_definition_is_kept_once(
    running: Gate, clients: list[OldClient]
) -> None:
    for client in clients:
        for _ in range(3):
            await client.structured("common__echo", ONCE)
        assert await client.structured("common__echo", {"flushed": 1})

    def rows(arguments: Any) -> list[Any]:
        wanted = digest(arguments)
        return [one for one in running.home.audit_rows() if one["arguments_digest"] == wanted]

    await until(lambda: len(rows({"flushed": 1})) == 2)
    assert len(rows(ONCE)) == 6
    assert len({row["result_digest"] for row in rows(ONCE)}) == 1
    with closing(sqlite3.connect(running.home.state / "registry.db", timeout=5)) as registry:
        query = "SELECT server, name, count(*) FROM tools GROUP BY server, name"
        assert {number for _, _, number in registry.execute(query)} == {1}


async def test_a_child_comes_back_with_the_worker_that_runs_it(
    running: Gate, clients: list[OldClient]
) -> None:
    """The other worker says so meanwhile, and sends nothing again."""
    _, far = clients
    first = (await pids([far]))[0]
    _, lost = await far.begin("common__hang", {"mark": "lost"})
    await sent(far, "lost")
    workers = await asyncio.to_thread(admin(running).get, "/status")
    os.kill(workers["workers"][OWNER]["pid"], signal.SIGKILL)
    words = await failure(lost)
    assert "server common: the worker that ran it has ended" in words
    await until(partial(ended, first))
    again = first
    async with asyncio.timeout(START):
        while again == first:  # until the worker is back a call may say that it is not
            answer = (await far.call("common__pid"))["result"]
            again = first if answer.get("isError") else answer["structuredContent"]["pid"]
    assert processes(running).count(again) == 1
    assert "lost" not in await said(far)


async def test_a_signal_lets_calls_end_whose_child_another_worker_runs(tmp_path: Path) -> None:
    async with gated(place(tmp_path, f"grace = {STOP:g}\n"), "--workers", "2") as running:
        client = await OldClient.open(running.url(), elicitation={})
        while worker_of(client) == Crew(count=2).owner("apart"):
            client = await OldClient.open(running.url(), elicitation={})
        _, told = await client.begin("apart__ask", ASK)
        question = await (await told.head()).message()
        every, [child] = processes(running), await pids([client], "apart")
        os.kill(child, signal.SIGSTOP)
        assert await client.answer(question, YES) == 202
        running.process.terminate()
        await until(partial(refuses, running.url()))
        os.kill(child, signal.SIGCONT)
        answer = (await told.rest())[-1]
        assert answer["result"]["structuredContent"]["result"] == YES
        assert await asyncio.to_thread(running.process.wait, STOP) == 0
        assert not any(map(alive, every))


async def test_a_second_signal_ends_calls_between_workers_at_once(tmp_path: Path) -> None:
    async with gated(place(tmp_path, "grace = 3600\n"), "--workers", "2") as running:
        both = await beacons(running.url())
        for client in both:
            await client.begin("common__hang", {"mark": "long"})
        await sent(both[0], "long", times=2)
        every = processes(running)
        running.process.terminate()
        await until(partial(refuses, running.url()))
        running.process.terminate()
        assert await asyncio.to_thread(running.process.wait, STOP) == 0
        assert not any(map(alive, every))
        for client in both:
            client.drop()
