"""The fault server as processes: what each fault looks like to whoever calls, and what had run."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.upstreams import Rig, fake_stdio, http_server, rig
from tests.support.waiting import GUARD, within
from thoughtgate.core.errors import (
    GateError,
    UpstreamGarbled,
    UpstreamLost,
    UpstreamReplied,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from thoughtgate.core.servers import Era
from thoughtgate.testing.fault_log import read_log

FAKE = (sys.executable, "-m", "thoughtgate.testing.fake_server")
WAYS = pytest.mark.parametrize("way", ["stdio", "json", "events"])
ERAS = pytest.mark.parametrize("era", list(Era))

WELL: tuple[dict[str, Any], ...] = (
    {"name": "slow", "seconds": 0.05},
    {"name": "slow", "when": "after", "seconds": 0.05},
    {"name": "dribble"},
    {"name": "split"},
    {"name": "together"},
    {"name": "huge"},
    {"name": "empty_events"},
    {"name": "stderr"},
    {"name": "duplicate"},
    {"name": "stray"},
    {"name": "storm"},
    {"name": "inherit"},
    {"name": "progress", "count": 3},
    {"name": "crash", "when": "after"},
    {"name": "nothing"},
    {"name": "goaway", "code": 11},
)
"""Faults that a caller does not see; the last ones mean nothing but over gRPC."""

ILL: tuple[tuple[dict[str, Any], int, type[GateError]], ...] = (
    ({"name": "hang"}, 0, UpstreamTimeout),
    ({"name": "hang", "when": "after"}, 1, UpstreamTimeout),
    ({"name": "late"}, 1, UpstreamTimeout),
    ({"name": "progress"}, 0, UpstreamTimeout),
    ({"name": "error", "code": -32001, "text": "no"}, 0, UpstreamReplied),
    ({"name": "broken", "text": "surrogate"}, 0, UpstreamGarbled),
    ({"name": "crash"}, 0, UpstreamLost),
    ({"name": "crash", "when": "during"}, 1, UpstreamLost),
)
"""Faults that end a call, whether its tool had run, and how the call ends."""

ILL_OVER_HTTP: tuple[tuple[dict[str, Any], int, type[GateError]], ...] = (
    ({"name": "half_open"}, 0, UpstreamTimeout),
    ({"name": "status", "code": 503}, 0, UpstreamLost),
    ({"name": "redirect"}, 0, UpstreamGarbled),
)


@dataclass(frozen=True)
class Peer:
    """A fault server behind upstreams, and its log."""

    rig: Rig
    log: Path
    names: Iterator[int]

    async def struck(self, fault: dict[str, Any], patience: float) -> tuple[int, GateError | None]:
        """Let one call meet a fault; return how often it ran, and how it failed if it did."""
        n, failed = next(self.names), None
        plan = {"faults": [{"times": 1, **fault}]}
        await until_served(self.rig, plan)
        try:
            result = await within(self.rig.send("write", {"n": n}, timeout=patience))
            assert json.loads(result.raw)["structuredContent"] == {"n": n}
        except GateError as error:
            failed = error
        return self.ran(n), failed

    def ran(self, n: int) -> int:
        rows = (row for row in read_log(self.log) if row["what"] == "ran")
        return sum(row["arguments"].get("n") == n for row in rows)


async def until_served(made: Rig, plan: dict[str, Any]) -> None:
    """Set a plan; the first call after a crash may meet what is left of the old connection."""
    try:
        await within(made.send("set_faults", plan))
    except (UpstreamLost, UpstreamUnreachable):
        await within(made.send("set_faults", plan))


@asynccontextmanager
async def peer(way: str, era: Era, log: Path) -> AsyncIterator[Peer]:
    if way == "stdio":
        async with rig(fake_stdio("--log", str(log), era=era)) as made:
            yield Peer(made, log, count())
    else:
        options = ["--log", str(log), *(["--events"] if way == "events" else [])]
        async with served(*options) as url, rig(http_server(url, era=era)) as made:
            yield Peer(made, log, count())


@asynccontextmanager
async def served(*options: str) -> AsyncIterator[str]:
    """Run the server over HTTP as a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *FAKE, "--http", "0", *options, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield (await within(process.stdout.readline())).decode().split()[-1]
    finally:
        if process.returncode is None:
            process.kill()
        await within(process.communicate())


@ERAS
@WAYS
async def test_faults_that_a_gateway_must_bear_cost_no_call(
    way: str, era: Era, tmp_path: Path
) -> None:
    async with peer(way, era, tmp_path / "log") as made:
        seen = [(fault, await made.struck(fault, 5.0)) for fault in WELL]
    assert [one for one in seen if one[1] != (1, None)] == []
    struck = [row["fault"] for row in read_log(made.log) if row["what"] == "struck"]
    assert struck == [fault["name"] for fault in WELL]


@ERAS
@WAYS
async def test_faults_that_end_a_call_end_that_call_and_say_which_server(
    way: str, era: Era, tmp_path: Path
) -> None:
    faults = ILL if way == "stdio" else (*ILL, *ILL_OVER_HTTP)
    async with peer(way, era, tmp_path / "log") as made:
        for fault, ran, kind in faults:
            times, failed = await made.struck(fault, 0.15 if kind is UpstreamTimeout else 5.0)
            assert (fault, times, type(failed)) == (fault, ran, kind)
            named = failed is not None and ("peer" in failed.message or kind is UpstreamReplied)
            assert named, failed
        times, failed = await made.struck({"name": "slow"}, 5.0)
        assert (times, failed) == (1, None)


async def test_noise_is_skipped_over_stdio(tmp_path: Path) -> None:
    async with peer("stdio", Era.HANDSHAKE, tmp_path / "log") as made:
        assert await made.struck({"name": "noise"}, 5.0) == (1, None)
        assert made.rig.upstreams.counts("peer").noise > 3


async def test_a_session_that_expires_is_opened_again(tmp_path: Path) -> None:
    async with peer("json", Era.HANDSHAKE, tmp_path / "log") as made:
        assert await made.struck({"name": "expire"}, 5.0) == (1, None)


async def test_a_list_that_loops_is_read_once(tmp_path: Path) -> None:
    plan = '[{"name": "loop", "on": "tools/list"}]'
    async with rig(fake_stdio("--faults", plan)) as made:
        await made.call("echo")
        assert "write" in made.names()
        [warning] = made.listings[-1].warnings
        assert "cursor" in warning


async def test_a_start_may_fail_as_often_as_planned(tmp_path: Path) -> None:
    plan = json.dumps({"seed": 2, "faults": [{"name": "exit", "on": "start", "chance": 0.5}]})
    log = tmp_path / "log"
    async with rig(fake_stdio("--log", str(log), "--faults", plan)) as made:
        async with asyncio.timeout(GUARD):
            while not made.listings:
                with suppress(UpstreamUnreachable):
                    await made.call("echo")
    words = [row["what"] for row in read_log(log)]
    assert words.count("started") == words.count("struck") + 1


async def test_a_server_without_streams_answers_405(tmp_path: Path) -> None:
    async with served("--no-streams") as url, rig(http_server(url, era=Era.HANDSHAKE)) as made:
        assert await made.call("echo", {"n": 1}) == {"n": 1}
