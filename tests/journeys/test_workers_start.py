"""Several workers: what they say when they cannot start, and what outlives them."""

import asyncio
import socket
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.children import children
from tests.support.gate import STOP, gate, gated, home, server_table, starting
from tests.support.http_peer import HttpPeer, request
from tests.support.pinned import beacons
from tests.support.waiting import until
from thoughtgate.core.workers import Crew
from thoughtgate.testing.fake_http import fake_http

TWO = ("--workers", "2")
PING = request("ping", {})

MUTE = server_table("own", sys.executable, "-c", "import sys; sys.stdin.read()")
"""A server that never says anything; the second of two workers runs it."""


def test_a_worker_that_cannot_start_says_why_once(tmp_path: Path) -> None:
    place = home(tmp_path)
    place.state.mkdir()
    (place.state / "registry.db").write_bytes(b"no database" * 1000)
    done = place.run("serve", "--port", "0", *TWO)
    assert done.returncode == 4
    assert done.stderr.count("error: ") == 1
    assert not place.run("status", "--json").stdout.count("pid")


def test_one_client_on_a_pipe_has_one_worker(tmp_path: Path) -> None:
    done = home(tmp_path).invoke("serve", "--stdio", *TWO)
    assert done.exit_code == 2
    assert "--workers is for HTTP" in done.output


def test_sessions_outlive_another_number_of_workers(tmp_path: Path) -> None:
    place = home(tmp_path)
    tokens: list[Any] = []
    for number in (1, 2):
        with gate(place, "--workers", str(number)) as running:
            for headers in tokens:
                got = asyncio.run(HttpPeer(running.url()).post(PING, headers))
                assert got.status == 200, got
            tokens.extend(asyncio.run(HttpPeer(running.url()).hello()) for _ in range(3))


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_gateway_that_is_told_to_stop_before_it_serves_ends_well(
    tmp_path: Path, workers: int
) -> None:
    with starting(home(tmp_path, MUTE), "--workers", str(workers)) as running:
        await until(lambda: children(running.process.pid), STOP)
        assert await asyncio.to_thread(running.stop) == 0
        assert running.words == "told to stop before anything was served\n"


async def test_who_still_asks_a_server_at_the_end_says_nothing_of_it(tmp_path: Path) -> None:
    """The worker that runs the server ends first: the other has a call to wait for."""
    assert Crew(index=1, count=2).owns("own")
    async with fake_http() as web:
        place = home(tmp_path)
        servers = f'{MUTE}[servers.web]\nurl = "{web.url}"\nera = "handshake"\n'
        settings = f"[gateway]\nlist_wait = 0.01\ngrace = 1\n{servers}"
        place.config.write_text(settings, encoding="utf-8")
        async with gated(place, *TWO) as running:
            first, second = await beacons(running.url())
            async with asyncio.timeout(STOP):
                while "web__hang" not in await first.names("tools"):
                    await asyncio.to_thread(running.hear, "listening on ")
            await first.begin("web__hang")
            await until(lambda: any(one.get("method") == "tools/call" for one in web.server.seen))
            assert await asyncio.to_thread(running.stop) == 0
            assert "own:" not in running.words
            for client in (first, second):
                client.drop()


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_port_that_another_gateway_takes_at_the_same_instant_is_told_of(
    tmp_path: Path, workers: int
) -> None:
    """Both may bind it; the system decides only when they listen."""
    place = home(tmp_path)
    place.config.write_text(f"[gateway]\nlist_wait = 1\n{MUTE}", encoding="utf-8")
    with closing(socket.socket()) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        port = str(other.getsockname()[1])
        with starting(place, "--port", port, "--workers", str(workers)) as running:
            await until(lambda: children(running.process.pid), STOP)
            other.listen()
            assert await asyncio.to_thread(running.process.wait, STOP) == 2
            assert f"error: cannot listen on 127.0.0.1:{port}: address already in use" in (
                await asyncio.to_thread(running.hear, "error: ")
            )
            assert "Traceback" not in running.words
