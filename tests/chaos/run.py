"""One run: a gateway, its servers, many clients, and everything that is done to them.

Never outlasts its time by much, and leaves no process behind.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.checker import PARKED
from tests.chaos.client import Client, Diary, Target
from tests.chaos.disturbance import SIDE, Disturbance
from tests.chaos.fleet import KINDS, Fleet
from tests.chaos.history import History, Row, What
from tests.chaos.leaks import Held, quiet
from tests.chaos.pace import rest
from tests.chaos.pipe import PipeLines
from tests.chaos.wire import Lines
from tests.support.admin import AdminClient
from tests.support.gate import Gate, Home, gated, home
from thoughtgate.app.admin_token import TOKEN_FILE

CLIENTS = 32
PIPED = (35, 37)
"""The clients on pipes; both of the newer era, and none follows anything."""

LAST_KILL = 15.0
"""Seconds before the end in which no worker is killed any more: clients end their sessions."""

CALM = 60.0
"""Seconds in which everything must be as it was, when nothing is done any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked of a run: how long, with which dice, and how much at once."""

    seconds: float = 600.0
    seed: int = 1
    workers: int = 1
    pause: float = 0.15


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a run brought."""

    history: History
    before: Held
    after: Held
    waiting: int
    took: float
    done: dict[str, int]
    struck: int
    lost: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    words: str = ""
    code: int = 0


async def run(wish: Wish) -> Outcome:
    """Run chaos, wait for calm, and return everything that was seen."""
    async with AsyncExitStack() as ending:
        folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="chaos-"))
        place = home(Path(folder), "ready_within = 15\n")
        fleet = Fleet(place, random.Random(f"{wish.seed}/fleet"))
        ending.push_async_callback(fleet.close)
        await fleet.start()
        workers = ("--workers", str(wish.workers)) if wish.workers > 1 else ()
        gate = await ending.enter_async_context(gated(place, *workers))
        fleet.gateway = gate.process.pid
        return await _run(wish, fleet, gate)


async def _run(wish: Wish, fleet: Fleet, gate: Gate) -> Outcome:
    place = fleet.home
    token = (place.state / TOKEN_FILE).read_text(encoding="utf-8").strip()
    admin = AdminClient(url=gate.url(), token=token)
    await _prepare(admin)
    begin = time.monotonic()
    diary = Diary(now=lambda: time.monotonic() - begin)
    pid = gate.process.pid
    port = int(admin.url.split(":")[2].split("/")[0])
    await _call(wish, _clients(wish, "calm", port, diary), min(20.0, wish.seconds / 6))
    before = await quiet(pid, admin, CALM, _waiting(diary))
    dice = random.Random(f"{wish.seed}/disturbance")
    trouble = Disturbance(fleet, admin, dice, diary, diary.now() + wish.seconds - LAST_KILL)
    disturbing = asyncio.create_task(trouble.run())
    try:
        pipes = [_piped(wish, number, place, diary) for number in PIPED]
        await _call(wish, [*_clients(wish, "chaos", port, diary), *pipes], wish.seconds)
    finally:
        disturbing.cancel()
        await asyncio.wait([disturbing])
    if not disturbing.cancelled():
        disturbing.result()
    await trouble.settle()
    lost = await _unreached(admin)
    after = await quiet(pid, admin, CALM, _waiting(diary), before)
    took = diary.now()
    code = await asyncio.to_thread(gate.stop)
    return Outcome(
        history=_history(diary, fleet, place),
        before=before,
        after=after,
        waiting=_waiting(diary),
        took=took,
        done=trouble.done,
        struck=fleet.struck(),
        lost=lost,
        odd=diary.odd,
        words=gate.words,
        code=code,
    )


async def _prepare(admin: AdminClient) -> None:
    """Make the domain of the run, and say which tools may be called again."""
    rules = {"include": ["*"]}
    await asyncio.to_thread(admin.do, "PUT", f"/domains/{SIDE}", rules, If_None_Match="*")
    for kind in KINDS:
        effect = {"effect": "idempotent"}
        path = f"/tools/{kind.name}/echo/effect"
        await asyncio.to_thread(admin.do, "PUT", path, effect)


async def _call(wish: Wish, clients: Sequence[Client], seconds: float) -> None:
    """Have all clients call for some seconds."""
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.run(over, wish.pause))
        await rest(seconds)
        over.set()


def _clients(wish: Wish, name: str, port: int, diary: Diary) -> list[Client]:
    """Return the clients over HTTP of one part of the run."""
    shift = 0 if name == "chaos" else 1000
    return [
        Client(number, Lines(port, kept=number % 4 < 2), diary, _targets(), f"{wish.seed}/{name}")
        for number in range(shift, shift + CLIENTS)
    ]


def _piped(wish: Wish, number: int, place: Home, diary: Diary) -> Client:
    """Return a client with a gateway of its own on a pipe."""
    return Client(number, PipeLines(place), diary, _targets(asking="ask"), f"{wish.seed}/pipe")


def _targets(asking: str = "") -> Sequence[Target]:
    """Return the tools that are called, and how often: a quarter are those of healthy servers.

    All but `asking`, which asks a client on the pipe that cannot tell for which call.
    """
    found = []
    for kind in KINDS:
        share = 8 if kind.calm else 6
        tools = {"read": 3, "write": 3, "echo": 1, kind.asks: 1}
        for tool, weight in tools.items():
            if tool and tool != asking:
                weight *= share
                found.append(Target(server=kind.name, tool=tool, weight=weight, calm=kind.calm))
    return found


async def _unreached(admin: AdminClient) -> list[str]:
    """Return the servers that do not answer again although nothing is done to them any more."""
    port = int(admin.url.split(":")[2].split("/")[0])
    lines = Lines(port, kept=False)
    client = Client(9999, lines, Diary(now=time.monotonic), _targets(), "calm")
    names = {kind.name for kind in KINDS}
    end = time.monotonic() + CALM
    while names and time.monotonic() < end:
        for name in sorted(names):
            if await client.reaches(name):
                names.discard(name)
        await rest(0.5)
    await client.end()
    return sorted(names)


def _waiting(diary: Diary) -> int:
    """Return how many calls may wait for a client that left while it was asked something."""
    return sum(one.what is What.LEFT and one.tool == PARKED for one in diary.events)


def _history(diary: Diary, fleet: Fleet, place: Home) -> History:
    rows = (
        Row(**{name: row.get(name, "") for name in ("server", "tool", "outcome")}, trace=trace)
        for row in place.audit_rows()
        if (trace := row.get("trace_id"))
    )
    return History(
        events=tuple(diary.events),
        ran=tuple(fleet.ran()),
        rows=tuple(rows),
        controls=frozenset(kind.name for kind in KINDS if kind.calm),
        kills=tuple(diary.kills),
    )
