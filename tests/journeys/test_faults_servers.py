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
QUICK = {"call_timeout": 0.5}


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
    Ill(fault={"name": "hang"}, error="upstream_timeout", cause="no answer within"),
    Ill(fault={"name": "late"}, error="upstream_timeout", cause="no answer within", ran=1),
    Ill(fault={"name": "half_open"}, error="upstream_timeout", cause="no answer", over=WEBS),
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


class Place:
    """A gateway, its servers' logs, and a client of each era."""

    def __init__(self, folder: Path, port: int) -> None:
        self.clients = (RawPost(HANDSHAKE, port), RawPost(STATELESS, port))
        self.probe = RawPost(STATELESS, port)
        self._folder = folder
        self._numbers = count()

    def client(self, number: int) -> RawPost:
        return self.clients[number % 2]

    async def struck(self, server: str, fault: dict[str, Any], client: RawPost) -> tuple[Got, int]:
        """Let a call meet a fault while another server is asked; return what came and ran."""
        plan = spell({"faults": [{"times": 1, **fault}]})
        set_ = await self.probe.call(f"{server}__set_faults", plan)
        if "error" in (set_.result.get("structuredContent") or {}):  # a connection it still held
            set_ = await self.probe.call(f"{server}__set_faults", plan)
        assert set_.result["content"][0]["text"] == "set", set_.result
        n = next(self._numbers)
        calling = asyncio.create_task(client.call(f"{server}__write", spell({"n": n})))
        calm = await self.probe.call("calm__read", spell({"n": n}))
        assert calm.result["structuredContent"] == {"n": n}
        got = await within(calling)
        rows = read_log(self._folder / server.partition("-")[0])
        return got, sum(row["what"] == "ran" and row["arguments"].get("n") == n for row in rows)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder = tmp_path_factory.mktemp("faults")
    async with AsyncExitStack() as ending:
        web = await ending.enter_async_context(_Web(folder / "web"))
        events = await ending.enter_async_context(_Web(folder / "events", "--events"))
        log = ("--log", str(folder / "pipe"))
        tables = [
            python_server("calm", FAKE),
            python_server("pipe-old", FAKE, *log, "--era", "handshake", **QUICK),
            python_server("pipe-new", FAKE, *log, "--era", "stateless", **QUICK),
            *(_table(name, web if name.startswith("web") else events) for name in WEBS),
        ]
        made = home(folder, "".join(tables))
        gateway = await ending.enter_async_context(gated(made))
        place = Place(folder, int(gateway.url().split(":")[2].partition("/")[0]))
        for client in (*place.clients, place.probe):
            ending.callback(client.close)
            await client.hello()
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
    return f'[servers.{name}]\nurl = "{url}"\nera = "{era}"\ncall_timeout = 0.5\n'


@pytest.mark.parametrize("server", [*PIPES, *WEBS])
async def test_a_failing_server_fails_the_call_under_way_and_no_other(
    place: Place, server: str
) -> None:
    for number, ill in enumerate(one for one in ILL if server in one.over):
        got, ran = await place.struck(server, ill.fault, place.client(number))
        shown = got.result["structuredContent"]
        assert (ran, shown["error"], shown["outcome"]) == (ill.ran, ill.error, ill.outcome), shown
        assert server in shown["message"]
        assert ill.cause in shown["message"]
        assert got.result["content"][0]["text"] == shown["message"]
    got, ran = await place.struck(server, {"name": "stderr"}, place.client(0))
    assert (got.result.get("isError", False), ran) == (False, 1)


@pytest.mark.parametrize("server", [*PIPES, *WEBS])
async def test_what_a_server_may_do_beside_its_answer_costs_no_call(
    place: Place, server: str
) -> None:
    noisy = ["noise"] if server in PIPES else ["expire"]
    names = [
        "dribble",
        "split",
        "together",
        "duplicate",
        "stray",
        "empty_events",
        "storm",
        "inherit",
    ]
    for number, name in enumerate([*names, "huge", *noisy]):
        got, ran = await place.struck(server, {"name": name}, place.client(number))
        assert (list(got.result["structuredContent"]), ran) == (["n"], 1), name
