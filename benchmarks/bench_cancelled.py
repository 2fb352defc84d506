"""What cancelled calls of a gRPC server leave behind: memory, tasks, and CPU beside grpcio.

    python -m benchmarks.bench_cancelled [--rounds N] [--calls N] [--quick] [--json]

Calls of a tool that never answers begin together and are given up; after each round the process is
weighed. The same is done on a bare channel of grpcio, by turns: what that costs is the floor.
"""

import asyncio
import gc
import os
import sys
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from grpc import aio

from benchmarks.processes import free_port, process
from benchmarks.report import Bar, Report, Row, arguments, finish, positive
from thoughtgate.core.calls import LOCAL, Call, Notice, Question, Session
from thoughtgate.core.errors import NotAsked
from thoughtgate.core.servers import Era, GrpcTransport, Server
from thoughtgate.core.tools import Tool
from thoughtgate.upstream.http_client import PooledClient
from thoughtgate.upstream.opening import Means
from thoughtgate.upstream.upstreams import Upstreams
from thoughtgate_proto.tools.v1 import tool_server_pb2

TITLE = "Cancelled calls of a gRPC server"
OURS, FLOOR = "gateway's upstream", "bare grpcio channel"
AT_ONCE = 100
GROWTH = 8.0
"""MiB that a process may grow by from the first round to the last."""

PAUSE = 0.05
"""Seconds in which calls reach the server before they are given up."""

SETTLED = 0.5
"""Seconds in which grpcio ends what it has begun, before anything is counted."""

Begin = Callable[[], Awaitable[object]]


class Deaf:
    """A listener that nobody tells anything."""

    async def notify(self, notice: Notice) -> None:
        """Drop it."""

    async def ask(self, question: Question) -> bytes:
        """Refuse."""
        raise NotAsked(message=f"nobody answers {question.method} here")


def run(given: Namespace) -> Report:
    """Cancel calls round after round, and weigh what is left."""
    port = free_port()
    fake = ("-m", "thoughtgate.testing.fake_server", "--grpc", str(port))
    with process([sys.executable, *fake], port):
        rows = asyncio.run(_rounds(f"grpc://127.0.0.1:{port}", given))
    ours = [row for row in rows if row["way"] == OURS]
    grown = ours[-1]["rss_mib"] - ours[0]["rss_mib"]
    tasks = float(ours[-1]["tasks"] - ours[0]["tasks"])
    bars = [
        Bar(name="growth of memory over all rounds", measured=grown, limit=GROWTH, unit="MiB"),
        Bar(name="tasks that are left", measured=tasks, limit=0.0),
    ]
    return Report(name="cancelled", title=TITLE, rows=rows, bars=bars)


async def _rounds(url: str, given: Namespace) -> list[Row]:
    rows: list[Row] = []
    async with AsyncExitStack() as ending:
        ways = {
            OURS: await ending.enter_async_context(_ours(url)),
            FLOOR: await ending.enter_async_context(_floor(url)),
        }
        for begin in ways.values():
            await _cancelled(begin, given.calls)  # what is kept once is kept now
        for number in range(1, given.rounds + 1):
            for way, begin in ways.items():
                before = time.process_time()
                await _cancelled(begin, given.calls)
                spent = time.process_time() - before
                await asyncio.sleep(SETTLED)
                gc.collect()
                rows.append({
                    "way": way,
                    "cancelled": number * given.calls,
                    "rss_mib": _resident(),
                    "tasks": len(asyncio.all_tasks()),
                    "cpu_ms": 1000 * spent / given.calls,
                })
    return rows


async def _cancelled(begin: Begin, count: int) -> None:
    for _ in range(count // AT_ONCE):
        calls = [asyncio.ensure_future(begin()) for _ in range(AT_ONCE)]
        await asyncio.sleep(PAUSE)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)


@asynccontextmanager
async def _ours(url: str) -> AsyncIterator[Begin]:
    client = PooledClient()
    means = Means(client=client, environ=os.environ)
    upstreams = Upstreams(means, on_listing=lambda _: None, on_status=lambda _: None, local={})
    tool = Tool(server="fake", name="hang", definition={}, digest="", input_schema={})

    async def begin() -> object:
        call = Call(
            id="1",
            target=tool,
            arguments={},
            principal=LOCAL,
            session=Session(id="", era=Era.STATELESS, version="", client={}),
            domain="default",
            deadline=asyncio.get_running_loop().time() + 60,
            listener=Deaf(),
            meta={},
        )
        return await upstreams.send(call)

    try:
        await upstreams.apply([Server(name="fake", transport=GrpcTransport(url=url))])
        await upstreams.discover("fake")
        yield begin
    finally:
        await upstreams.aclose()
        await client.aclose()


@asynccontextmanager
async def _floor(url: str) -> AsyncIterator[Begin]:
    async with aio.insecure_channel(url.removeprefix("grpc://")) as channel:
        path = "/thoughtgate.tools.v1.ToolServer/CallTool"
        method: aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(path)
        request = tool_server_pb2.CallToolRequest(name="hang").SerializeToString()

        async def begin() -> object:
            call = method(request, timeout=60)
            try:
                return await call.read()
            finally:
                call.cancel()

        yield begin


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> int:
    """Print what cancelled calls leave behind."""
    parser = arguments(TITLE)
    parser.add_argument("--calls", type=positive, default=2_000, help="calls of each round")
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.calls = 2, 200
    return finish(run(given), given)


if __name__ == "__main__":
    sys.exit(main())
