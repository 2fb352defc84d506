"""Readiness of a whole gateway: real servers that answer, rest, hang, or are not there."""

import json
import os
import signal
import sqlite3
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from tests.support.children import children
from tests.support.gate import gate, home, python_server
from tests.support.waiting import until, within
from thoughtgate.app.compose import App, opened
from thoughtgate.app.readiness import Prober
from thoughtgate.config.files import Loaded, parse
from thoughtgate.core.servers import UpstreamState
from thoughtgate.surface.health import Readiness, Unready

FAKE = "thoughtgate.testing.fake_server"
DEAD = '[servers.dead]\nurl = "http://127.0.0.1:9/mcp"\n'
START = 30.0


@dataclass(slots=True)
class Place:
    """A composed gateway and its probe."""

    app: App
    probe: Prober

    async def found(self) -> Readiness:
        return await within(self.probe())

    def state(self, name: str) -> UpstreamState:
        return next(s.state for s in self.app.upstreams.statuses() if s.server == name)


@asynccontextmanager
async def place(folder: Path, config: str, budget: float = 5.0) -> AsyncIterator[Place]:
    """Compose a gateway and begin to discover, as serving does."""
    loaded = Loaded(settings=parse(config, "test", {}), file=None, home=folder)
    async with opened(loaded, {"PATH": os.environ["PATH"]}) as app:
        names = [server.name for server in app.keeper.servers]
        app.keeper.begin_discovery(names, lambda said: None)
        prober = Prober(app.keeper, app.registry, app.upstreams, budget=budget)
        yield Place(app, prober)


async def test_one_dead_server_of_two_leaves_the_gateway_ready(tmp_path: Path) -> None:
    config = python_server("good", FAKE) + DEAD
    async with place(tmp_path, config) as here:
        await until(lambda: here.state("good") is UpstreamState.READY, START)
        await until(lambda: here.state("dead") is UpstreamState.DEGRADED, START)
        assert await here.found() == Readiness(servers=2, answered=1, failed=1)


async def test_without_any_server_that_answers_the_gateway_is_not_ready(tmp_path: Path) -> None:
    async with place(tmp_path, DEAD) as here:
        await until(lambda: here.state("dead") is UpstreamState.DEGRADED, START)
        assert await here.found() == Readiness(servers=1, failed=1, unready=Unready.SERVERS)


async def test_a_gateway_without_servers_is_ready(tmp_path: Path) -> None:
    async with place(tmp_path, DEAD + "enabled = false\n") as here:
        assert await here.found() == Readiness()


async def test_a_server_that_hangs_has_not_answered_and_is_ready_again_when_it_goes_on(
    tmp_path: Path,
) -> None:
    async with place(tmp_path, python_server("good", FAKE), budget=0.3) as here:
        await until(lambda: here.state("good") is UpstreamState.READY, START)
        [child] = children()
        os.kill(child, signal.SIGSTOP)
        try:
            assert await here.found() == Readiness(servers=1, failed=1, unready=Unready.SERVERS)
        finally:
            os.kill(child, signal.SIGCONT)
        here.probe = Prober(here.app.keeper, here.app.registry, here.app.upstreams, budget=5.0)
        assert await here.found() == Readiness(servers=1, answered=1)


async def test_a_server_that_still_starts_is_waited_for(tmp_path: Path) -> None:
    async with place(tmp_path, python_server("deaf", FAKE, "--deaf")) as here:
        await until(lambda: here.state("deaf") is UpstreamState.STARTING, START)
        assert await here.found() == Readiness(servers=1, starting=1, unready=Unready.STARTING)


async def test_a_server_that_rests_counts_and_is_not_started_to_be_asked(tmp_path: Path) -> None:
    config = python_server("lazy", FAKE, idle_timeout=0.1)
    async with place(tmp_path, config) as here:
        await until(lambda: not here.app.keeper.unlisted(), START)
        await until(lambda: here.state("lazy") is UpstreamState.IDLE, START)
        assert await here.found() == Readiness(servers=1, idle=1)
        assert here.state("lazy") is UpstreamState.IDLE
        assert children() == []


async def test_a_registry_that_cannot_be_read_makes_the_gateway_unready(tmp_path: Path) -> None:
    async with place(tmp_path, "") as here:
        with closing(sqlite3.connect(tmp_path / "registry.db")) as other:
            [sql] = other.execute("SELECT sql FROM sqlite_schema WHERE name = 'meta'").fetchone()
            assert sql
            other.execute("ALTER TABLE meta RENAME TO gone")
            other.commit()
            assert await here.found() == Readiness(unready=Unready.REGISTRY)
            other.execute("ALTER TABLE gone RENAME TO meta")
            other.commit()
        assert await here.found() == Readiness()


def test_a_gateway_that_serves_says_that_it_is_ready(tmp_path: Path) -> None:
    place = home(tmp_path, python_server("good", FAKE))
    with gate(place) as running:
        url = running.url().removesuffix("/mcp")
        with urllib.request.urlopen(f"{url}/readyz", timeout=START) as reply:
            told = json.load(reply)
        assert told["status"] == "ready"
        assert (told["servers"], told["answered"]) == (1, 1)
        assert sys.executable not in json.dumps(told)
