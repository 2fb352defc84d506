"""What a gateway holds: per idle session of the handshake era, after they end, and over many calls.

    python -m benchmarks.bench_memory [--sessions N] [--calls N] [--quick]

Each session makes a call, drops the connection that it made it on, and holds its GET stream.
"""

import asyncio
import statistics
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import uvloop

from benchmarks.clients import ERAS, HANDSHAKE, HttpClient, parameters
from benchmarks.gateway import Running, gateway, receiver, upstream
from benchmarks.load import Load, measure
from benchmarks.processes import Memory, memory, raise_file_limit
from benchmarks.report import Bar, Report, Row, arguments, finish, positive

TITLE = "Memory of the gateway process"
TOOL = "echo__echo"
AT_ONCE = 50
"""Sessions that open or end side by side."""
WARM = 200
"""Sessions and calls that come and go before the first look."""
RESTED = 2.5
"""Seconds after which what is done in the background is done."""
LEAK = 10.0
"""kB per 1,000 calls: less than the smallest object that could be left behind by each call."""


async def waves(running: Running, count: int) -> list[Row]:
    """Let `count` sessions come and go, twice; return what the gateway held at each look."""
    await _open_and_end(running, WARM)
    rows = [_look(running, "start", 0)]
    for wave in ("first", "second"):
        clients = await _opened(running, count)
        await asyncio.sleep(RESTED)
        rows.append(_look(running, f"{wave} wave open", count))
        await _ended(clients)
        await asyncio.sleep(RESTED)
        rows.append(_look(running, f"{wave} wave ended", 0))
    return rows


async def _open_and_end(running: Running, count: int) -> None:
    await _ended(await _opened(running, count))
    await asyncio.sleep(RESTED)


async def _opened(running: Running, count: int) -> list[HttpClient]:
    clients = [HttpClient(running.url(), HANDSHAKE) for _ in range(count)]
    params = parameters(HANDSHAKE, name=TOOL, arguments={"text": "hello"})
    places = asyncio.Semaphore(AT_ONCE)

    async def settle(client: HttpClient) -> None:
        async with places:
            await client.open()
            await client.request("tools/call", params, TOOL)
            await client.listen()
            client.hang_up()

    await asyncio.gather(*map(settle, clients))
    return clients


async def _ended(clients: Sequence[HttpClient]) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def end(client: HttpClient) -> None:
        async with places:
            await client.end()

    await asyncio.gather(*map(end, clients))


def calls(running: Running, count: int, steps: int) -> tuple[list[Row], int]:
    """Make `count` calls of both eras by turns; return what the gateway held after each step."""
    rows, errors = [_look(running, "before the calls", 0, 0)], 0
    for step in range(1, steps + 1):
        load = Load(
            url=running.url(), tools=[TOOL], era=ERAS[step % 2], calls=count // steps, warmup=0
        )
        errors += measure(load, {}).errors
        rows.append(_look(running, "calls", 0, step * (count // steps)))
    return rows, errors


def _look(running: Running, moment: str, sessions: int, made: int | None = None) -> Row:
    held: Memory = memory(running.pid)
    return {
        "moment": moment,
        "sessions": sessions,
        "calls": made,
        "rss_kb": held.rss,
        "pss_kb": held.pss,
    }


def bars(held: Sequence[Row], series: Sequence[Row]) -> list[Bar]:
    """Return the promises about memory."""
    start, opened, ended, again, ended_again = (row["rss_kb"] for row in held)
    count = held[1]["sessions"]
    late = series[len(series) // 2 :]
    return [
        Bar(
            name="resident memory per idle session",
            measured=(opened - start) / count,
            limit=20.0,
            unit="kB",
        ),
        Bar(
            name="per idle session of a second wave",
            measured=(again - ended) / count,
            limit=20.0,
            unit="kB",
        ),
        Bar(
            name="back to the start after they end",
            measured=ended / start,
            limit=1.05,
            unit="of the start",
        ),
        Bar(
            name="left behind by each session of the second wave",
            measured=(ended_again - ended) / count,
            limit=1.0,
            unit="kB",
        ),
        Bar(
            name="growth over the second half of the calls",
            measured=slope([(row["calls"], row["rss_kb"]) for row in late]),
            limit=LEAK,
            unit="kB per 1,000 calls",
        ),
    ]


def slope(points: Sequence[tuple[int, int]]) -> float:
    """Return the growth per 1,000: the median over all pairs, which bears an odd look."""
    return 1000 * statistics.median(
        (late - early) / (x - before)
        for at, (before, early) in enumerate(points)
        for x, late in points[at + 1 :]
    )


def run(given: Namespace) -> Report:
    """Measure sessions in one gateway and calls in a second one."""
    raise_file_limit()
    with (
        tempfile.TemporaryDirectory() as folder,
        upstream("fast") as (_, port),
        receiver() as (_, traces),
    ):
        servers = {"echo": f"http://127.0.0.1:{port}/mcp"}
        with gateway(Path(folder) / "sessions", servers, traces) as running:
            held = uvloop.run(waves(running, given.sessions))
        with gateway(Path(folder) / "calls", servers, traces) as running:
            measure(Load(url=running.url(), tools=[TOOL], era=HANDSHAKE, calls=WARM), {})
            series, errors = calls(running, given.calls, given.steps)
    return Report(
        name="memory",
        title=TITLE,
        rows=[*held, *series],
        bars=bars(held, series),
        errors=errors,
    )


def main() -> int:
    """Print what is held and when."""
    parser = arguments(TITLE, rounds=1)
    parser.add_argument("--sessions", type=positive, default=2000)
    parser.add_argument("--calls", type=positive, default=100_000)
    parser.add_argument("--steps", type=positive, default=20)
    given = parser.parse_args()
    if given.quick:
        given.sessions, given.calls = 300, 10_000
    return finish(run(given), given)


if __name__ == "__main__":
    sys.exit(main())
