"""The load generator: closed loop, so many sessions, each with its next call after the last reply.

Never counts a call whose reply is not what was asked for: every content is looked at.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvloop

from benchmarks.clients import Client, HttpClient, Pipe, RequestFailed, parameters
from benchmarks.processes import cpu_seconds, parts, tree

GENERATOR = "generator"
LINGER = 1.1
"""Seconds, a little more than an exporter waits for company."""
BREATH, CALM = 0.25, 0.003
"""Who uses less CPU than that in one breath, in seconds, is at rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What to send: `calls` in all over `sessions`, after `warmup` each, to the tools by turns.

    `expected` is what a good result holds. `command` instead of `url` starts a child; `client`
    instead of both makes one client that all sessions share.
    """

    url: str = ""
    command: Sequence[str] = ()
    client: Callable[[], Client] | None = None
    tools: Sequence[str] = ("echo",)
    arguments: Mapping[str, Any] = field(default_factory=lambda: {"text": "hello"})
    expected: bytes = b'"text":"hello"'
    era: str
    sessions: int = 32
    calls: int = 2000
    warmup: int = 20
    plain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came of it: times in milliseconds, CPU in milliseconds a call by process.

    `each` has the CPU of every process of a tree apart.
    """

    calls: int
    errors: int
    first_error: str
    rate: float
    p50: float
    p99: float
    cpu: Mapping[str, float]
    each: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A process whose CPU is wanted; `lazy` ones do some of their work after the reply."""

    pid: int
    lazy: bool = False


def measure(load: Load, watched: Mapping[str, Watch]) -> Measured:
    """Run the load once and return what it took.

    Tool servers that a watched gateway started are counted as `upstream`, apart from it.
    """
    return uvloop.run(measured(load, watched))


async def measured(load: Load, watched: Mapping[str, Watch]) -> Measured:
    """Do so on a loop where something else may run beside it."""
    clients = sessions_of(load)
    try:
        for client in clients:
            await client.open()
        await _everybody(load, clients, load.warmup)
        found = {name: parts(watch.pid) for name, watch in watched.items()}
        pids = {name: own for name, (own, _) in found.items()}
        pids["upstream"] = pids.get("upstream", []) + [
            pid for _, servers in found.values() for pid in servers
        ]
        pids["upstream"] += [clients[0].pid] if isinstance(clients[0], Pipe) else []
        await _settle(watched)
        before = {name: _cpu(of) for name, of in pids.items()}
        mine = time.process_time()
        began = time.perf_counter()
        rows = await _everybody(load, clients, max(1, load.calls // load.sessions))
        took = time.perf_counter() - began
        mine = time.process_time() - mine
        await _settle(watched)
        used = {name: _differences(before[name], _cpu(of)) for name, of in pids.items()}
    finally:
        for client in clients:
            await client.end()
    return _measured(rows, took, {**used, GENERATOR: [mine]})


def middle(found: Sequence[Measured], what: str) -> float:
    """Return the median over rounds of a number, or of the CPU of the process of that name."""
    return statistics.median(_number(one, what) for one in found)


def times(found: Sequence[Measured], others: Sequence[Measured], what: str) -> float:
    """Return how many times as much is found: compared in each round, then the median of that."""
    pairs = zip(found, others, strict=True)
    return statistics.median(_number(one, what) / _number(other, what) for one, other in pairs)


def errors(*found: Sequence[Measured]) -> int:
    """Return how many calls failed in all rounds."""
    return sum(one.errors for row in found for one in row)


def _number(one: Measured, what: str) -> float:
    number: float = one.cpu[what] if what in one.cpu else getattr(one, what)
    return number


def sessions_of(load: Load) -> Sequence[Client]:
    """Return the sessions of a load, not yet open; those of a child share its pipe."""
    if load.client is not None:
        return [load.client()] * load.sessions
    if load.command:
        return [Pipe(load.command, load.era)] * load.sessions
    return [HttpClient(load.url, load.era, load.plain) for _ in range(load.sessions)]


def _measured(
    rows: Sequence[Sequence[tuple[float, str]]], took: float, used: Mapping[str, Sequence[float]]
) -> Measured:
    times = sorted(seconds for row in rows for seconds, _ in row)
    wrong = [error for row in rows for _, error in row if error]
    count = len(times)
    each = {name: [round(one * 1e3 / count, 4) for one in of] for name, of in used.items()}
    return Measured(
        calls=count,
        errors=len(wrong),
        first_error=wrong[0] if wrong else "",
        rate=round(count / took, 1),
        p50=round(times[count // 2] * 1e3, 3),
        p99=round(times[min(count - 1, int(count * 0.99))] * 1e3, 3),
        cpu={name: round(sum(of), 4) for name, of in each.items()},
        each=each,
    )


async def _everybody(
    load: Load, clients: Sequence[Client], count: int
) -> list[list[tuple[float, str]]]:
    apart = max(1, len(load.tools) // len(clients))
    return await asyncio.gather(
        *(_calls(load, client, at * apart, count) for at, client in enumerate(clients))
    )


async def _calls(load: Load, client: Client, first: int, count: int) -> list[tuple[float, str]]:
    asked = [
        (tool, parameters(load.era, name=tool, arguments=load.arguments)) for tool in load.tools
    ]
    found = []
    for at in range(first, first + count):
        tool, params = asked[at % len(asked)]
        began = time.perf_counter()
        error = await _call(load, client, tool, params)
        found.append((time.perf_counter() - began, error))
    return found


async def _call(load: Load, client: Client, tool: str, params: bytes) -> str:
    try:
        result = await client.request("tools/call", params, tool)
    except RequestFailed as failed:
        return str(failed)
    good = load.expected in result and b'"isError":true' not in result
    return "" if good else repr(result[:300])


async def _settle(watched: Mapping[str, Watch]) -> None:
    """Wait until those who work after the reply have done so."""
    lazy = [watch.pid for watch in watched.values() if watch.lazy]
    pids = [pid for one in lazy for pid in tree(one)]
    await asyncio.sleep(LINGER if pids else 0)
    for _ in range(8 if pids else 0):
        before = sum(_cpu(pids))
        await asyncio.sleep(BREATH)
        if sum(_cpu(pids)) - before < CALM:
            return


def _cpu(pids: Sequence[int]) -> list[float]:
    return [cpu_seconds(pid) for pid in pids]


def _differences(before: Sequence[float], after: Sequence[float]) -> list[float]:
    return [max(0.0, late - early) for early, late in zip(before, after, strict=True)]
