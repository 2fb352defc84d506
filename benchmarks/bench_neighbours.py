"""Whether slow calls on one tool server slow down a session that calls another one.

    python -m benchmarks.bench_neighbours [--rounds N] [--calls N] [--quick]

One session calls `echo` on one server, alone and with 32 others that wait for a slow tool on
another server, by turns.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import uvloop

from benchmarks.clients import ERAS, Client, parameters
from benchmarks.gateway import Running, Stand, before
from benchmarks.load import Load, Measured, errors, measured, middle, sessions_of, times
from benchmarks.report import Bar, Report, Row, arguments, failed, finish, positive

TITLE = "Slow calls next door"
SLOW = 32
"""Calls that are always under way on the slow server."""
PAIRS = (("default", "fast"), ("stdio", "fast"), ("fast", "stdio"))
"""The slow server and the one that is probed."""
LIMIT = 1.2


@asynccontextmanager
async def slow_calls(load: Load) -> AsyncIterator[None]:
    """Keep calls of a slow tool under way, from other sessions, until the block ends."""
    clients = sessions_of(load)
    params = parameters(load.era, name=load.tools[0], arguments=load.arguments)
    over = asyncio.Event()

    async def keep_calling(client: Client) -> None:
        await client.open()
        while not over.is_set():
            await client.request("tools/call", params, load.tools[0])
        await client.end()

    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(keep_calling(client))
        try:
            yield
        finally:
            over.set()


async def probed(probe: Load, beside: Load | None) -> Measured:
    """Measure the probe, alone or beside slow calls."""
    if beside is None:
        return await measured(probe, {})
    async with slow_calls(beside):
        return await measured(probe, {})


def run(given: Namespace) -> Report:
    """Measure every pair of servers in both eras."""
    with before("default", "fast", "stdio") as (standing, running):
        rows = [
            _row(standing, running, given, (slow, fast, era))
            for slow, fast in PAIRS
            for era in ERAS
        ]
    bars = [
        Bar(
            name=f"p50 of {row['probe']} beside slow {row['slow']}, {row['era']}",
            measured=row["times"],
            limit=LIMIT,
            unit="of p50 alone",
        )
        for row in rows
    ]
    return Report(name="neighbours", title=TITLE, rows=rows, bars=bars, errors=failed(rows))


def _row(standing: Stand, running: Running, given: Namespace, case: tuple[str, str, str]) -> Row:
    slow, fast, era = case
    probe = replace(standing.load(fast, running), era=era, sessions=1, calls=given.calls)
    beside = replace(standing.load(slow, running), era=era, sessions=SLOW, tools=[f"{slow}__slow"])
    alone, among = [], []
    for _ in range(given.rounds):
        alone.append(uvloop.run(probed(probe, None)))
        among.append(uvloop.run(probed(probe, beside)))
    return {
        "slow": slow,
        "probe": fast,
        "era": era,
        "alone_p50_ms": middle(alone, "p50"),
        "beside_p50_ms": middle(among, "p50"),
        "times": times(among, alone, "p50"),
        "alone_p99_ms": middle(alone, "p99"),
        "beside_p99_ms": middle(among, "p99"),
        "errors": errors(alone, among),
    }


def main() -> int:
    """Print what slow neighbours cost."""
    parser = arguments(TITLE)
    parser.add_argument("--calls", type=positive, default=1000)
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.calls = 1, 300
    return finish(run(given), given)


if __name__ == "__main__":
    sys.exit(main())
