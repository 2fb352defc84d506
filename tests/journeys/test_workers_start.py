"""Several workers: what they say when they cannot start, and what outlives them."""

import asyncio
from pathlib import Path
from typing import Any

from tests.support.gate import gate, home
from tests.support.http_peer import HttpPeer, request

TWO = ("--workers", "2")
PING = request("ping", {})


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
