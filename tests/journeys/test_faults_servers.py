"""A server that fails in the middle of a call: what its caller hears, and that nobody else notices.

The whole gateway in a process of its own, fault servers behind it, raw clients of both eras before.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.gate import gated, home, python_server
from tests.support.raw_clients import Got, RawPost
from tests.support.raw_json import spell
from tests.support.raw_upstreams import HANDSHAKE, STATELESS
from tests.support.waiting import within
from thoughtgate.testing.fault_log import read_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

FAKE = "thoughtgate.testing.fake_server"
PIPES = ("pipe-old", "pipe-new")
WEBS = ("web-old", "web-new", "events-old", "events-new")
TIMEOUT = 1.5
"""Seconds for one call: more than a busy machine takes, less than a test may."""


@dataclass(frozen=True, kw_only=True)
class Ill:
    """A fault, and what its caller hears: an error, what is known of the outcome, and the cause."""

    fault: dict[str, Any]
    error: str
    cause: str
    outcome: str = "unknown"
    ran: int = 0
    over: tuple[str, ...] = field(default=PIPES + WEBS)


ILL = (
    Ill(fault={"name": "crash"}, error="upstream_lost", cause="exited with code 1", over=PIPES),
    Ill(fault={"name": "crash", "code": -9}, error="upstream_lost", cause="SIGKILL", over=PIPES),
    Ill(fault={"name": "crash"}, error="upstream_lost", cause="broke before", over=WEBS),
    Ill(
        fault={"name": "crash", "when": "during"},
        error="upstream_lost",
        cause="exited with code 1",
        ran=1,
        over=PIPES,
    ),
    Ill(
        fault={"name": "crash", "when": "during"},
        error="upstream_lost",
        cause="in the middle of the answer",
        ran=1,
        over=WEBS,
    ),
    Ill(fault={"name": "status"}, error="upstream_lost", cause="status 503", over=WEBS),
    Ill(fault={"name": "redirect"}, error="upstream_garbled", cause="redirects", over=WEBS),
    Ill(
        fault={"name": "status", "code": 401},
        error="upstream_denied",
        cause="wants a login",
        outcome="not_done",
        over=WEBS,
    ),
)

SILENT = (
    Ill(fault={"name": "hang"}, error="upstream_timeout", cause="no answer within"),
    Ill(fault={"name": "late"}, error="upstream_timeout", cause="no answer within", ran=1),
    Ill(fault={"name": "half_open"}, error="upstream_timeout", cause="no answer", over=WEBS),
)


class Place:
    """A gateway and its servers' logs; for each server a client of each era, and one more."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._numbers = count()
        eras = (HANDSHAKE, STATELESS, STATELESS)
        self._clients = {server: [RawPost(era, port) for era in eras] for server in PIPES + WEBS}

    async def struck(self, server: str, fault: dict[str, Any]) -> tuple[Got, int]:
        """Let a call meet a fault while another server is asked; return what came and ran."""
        *clients, probe = self._clients[server]
        plan = spell({"faults": [{"times": 1, **fault}]})
        set_ = await probe.call(f"{server}__set_faults", plan)
        if "error" in (set_.result.get("structuredContent") or {}):  # a connection it still held
            set_ = await probe.call(f"{server}__set_faults", plan)
        assert set_.result["content"][0]["text"] == "set", set_.result
        n = next(self._numbers)
        calling = asyncio.create_task(clients[n % 2].call(f"{server}__write", spell({"n": n})))
        calm = await probe.call("calm__read", spell({"n": n}))
        assert calm.result["structuredContent"] == {"n": n}
        got = await within(calling)
        rows = read_log(self._folder / server)
        return got, sum(row["what"] == "ran" and row["arguments"].get("n") == n for row in rows)

    async def failed(self, server: str, ill: Ill) -> None:
        """Let a call meet a fault and hold what its caller hears against what it should."""
        got, ran = await self.struck(server, ill.fault)
        shown = got.result["structuredContent"]
        assert (ran, shown["error"], shown["outcome"]) == (ill.ran, ill.error, ill.outcome), shown
        assert server in shown["message"]
        assert ill.cause in shown["message"]
        assert got.result["content"][0]["text"] == shown["message"]

    async def hello(self) -> None:
        for clients in self._clients.values():
            for client in clients:
                await client.hello()

    def close(self) -> None:
        for clients in self._clients.values():
            for client in clients:
                client.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder = tmp_path_factory.mktemp("faults")
    async with AsyncExitStack() as ending:
        tables = [python_server("calm", FAKE)]
        for name, era in (("pipe-old", "handshake"), ("pipe-new", "stateless")):
            options = ("--log", str(folder / name), "--era", era)
            tables.append(python_server(name, FAKE, *options, call_timeout=TIMEOUT))
        for name in WEBS:
            style = ["--events"] if name.startswith("events") else []
            url = await ending.enter_async_context(_Web(folder / name, *style))
            tables.append(_table(name, url))
        gateway = await ending.enter_async_context(gated(home(folder, "".join(tables))))
        place = Place(folder, int(gateway.url().split(":")[2].partition("/")[0]))
        ending.callback(place.close)
        await place.hello()
        yield place


class _Web:
    """A fault server over HTTP in a process of its own; gives its URL."""

    def __init__(self, log: Path, *options: str) -> None:
        self._options = ("--log", str(log), *options)

    async def __aenter__(self) -> str:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", FAKE, "--http", "0", *self._options, stdout=-1
        )
        assert self._process.stdout is not None
        return (await within(self._process.stdout.readline())).decode().split()[-1]

    async def __aexit__(self, *_: object) -> None:
        self._process.kill()
        await within(self._process.communicate())


def _table(name: str, url: str) -> str:
    era = "handshake" if name.endswith("old") else "stateless"
    return f'[servers.{name}]\nurl = "{url}"\nera = "{era}"\ncall_timeout = {TIMEOUT}\n'


@pytest.mark.parametrize("server", [*PIPES, *WEBS])
async def test_a_failing_server_fails_the_call_under_way_and_no_other(
    place: Place, server: str
) -> None:
    for ill in ILL:
        if server in ill.over:
            await place.failed(server, ill)
    got, ran = await place.struck(server, {"name": "stderr"})
    assert (got.result.get("isError", False), ran) == (False, 1)


async def test_servers_that_fall_silent_cost_their_callers_the_time_and_nobody_else(
    place: Place,
) -> None:
    """All at once: while each keeps its own callers waiting, another one answers."""

    async def fall_silent(server: str) -> None:
        for ill in SILENT:
            if server in ill.over:
                await place.failed(server, ill)

    await asyncio.gather(*map(fall_silent, PIPES + WEBS))


@pytest.mark.parametrize("server", [*PIPES, *WEBS])
async def test_what_a_server_may_do_beside_its_answer_costs_no_call(
    place: Place, server: str
) -> None:
    plain = ("dribble", "split", "together", "duplicate", "stray", "empty_events", "storm")
    more = ("noise",) if server in PIPES else ("expire",)
    for name in (*plain, "inherit", *more):
        got, ran = await place.struck(server, {"name": name})
        assert (list(got.result["structuredContent"]), ran) == (["n"], 1), name
    got, ran = await place.struck(server, {"name": "huge", "count": 2 << 20})
    assert (list(got.result["structuredContent"]), ran) == (["n"], 1)
