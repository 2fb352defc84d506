"""A worker that lives and does nothing: it is left out, told of, ended in time, and replaced.

Real processes, stopped by the system; another worker serves meanwhile.
"""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tests.support.admin import AdminClient
from tests.support.children import alive, children
from tests.support.gate import STOP, Gate, gated, home
from tests.support.http_peer import HttpPeer
from tests.support.old_client import OldClient
from tests.support.pinned import worker_of
from thoughtgate.app.admin_token import TOKEN_FILE

TWO = ("--workers", "2")
SOON = "worker_timeout = 5\n"
LATE = "worker_timeout = 6\ngrace = 0\n"


@asynccontextmanager
async def serving(folder: Path, settings: str) -> AsyncIterator[tuple[Gate, list[int]]]:
    """Serve by two workers, whose processes are given in the order of their numbers."""
    async with gated(home(folder, settings), *TWO) as running:
        told = await asyncio.to_thread(admin(running).get, "/status")
        yield running, [one["pid"] for one in told["workers"]]


def admin(running: Gate) -> AdminClient:
    token = (running.home.state / TOKEN_FILE).read_text(encoding="utf-8").strip()
    return AdminClient(url=running.url(), token=token)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGCONT)


async def health(running: Gate) -> tuple[int, Any]:
    got = await HttpPeer(running.url()).send("GET", "/healthz")
    return got.status, json.loads(got.body)


async def test_a_worker_that_hangs_gets_nobody_is_told_of_and_is_replaced(tmp_path: Path) -> None:
    """The first one, which answers for all as long as it can."""
    async with serving(tmp_path, SOON) as (running, pids):
        with stopped(pids[0]):
            await asyncio.to_thread(running.hear, f"worker 0 (process {pids[0]}) does not answer")
            clients = [await OldClient.open(running.url()) for _ in range(4)]
            assert {worker_of(client) for client in clients} == {1}
            asking = asyncio.to_thread(admin(running).get, "/status")
            told, found = await asyncio.gather(asking, health(running))
            assert [one["up"] for one in told["workers"]] == [False, True]
            assert found == (503, {"status": "hung", "workers": [0]})
            await asyncio.to_thread(running.hear, f"{pids[0]}) has ended by signal 9")
        assert not alive(pids[0])
        await asyncio.to_thread(running.hear, ") serves again")
        assert await health(running) == (200, {"status": "ok"})
        assert len(children(running.process.pid)) == 2


async def test_a_worker_that_goes_on_is_one_of_them_again(tmp_path: Path) -> None:
    async with serving(tmp_path, LATE) as (running, pids):
        with stopped(pids[1]):
            await asyncio.to_thread(running.hear, f"worker 1 (process {pids[1]}) does not answer")
        await asyncio.to_thread(running.hear, f"worker 1 (process {pids[1]}) answers again")
        clients = [await OldClient.open(running.url()) for _ in range(2)]
        assert {worker_of(client) for client in clients} == {0, 1}
        os.kill(pids[1], signal.SIGSTOP)
        running.process.terminate()
        assert await asyncio.to_thread(running.process.wait, STOP) == 0
        assert not any(map(alive, pids))
