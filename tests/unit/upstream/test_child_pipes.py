"""A child that closes one of its pipes and lives on, under the event loop that `serve` runs on."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from tests.support.waiting import until, within
from thoughtgate.core.servers import StdioTransport
from thoughtgate.upstream.child import Child, Patience

RUNNERS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
HELD = "import os, time; os.write(1, b'up\\n'); os.close({fd}); time.sleep(60)"
OPEN = (
    "import os; print(sorted(n for n in map(int, os.listdir('/proc/self/fd')) if n < 3 or n > 9))"
)

Runner = Callable[[Awaitable[str]], str]


async def _child(script: str, lines: list[bytes]) -> Child:
    one = Child(lines.append, cap=1000, patience=Patience(eof=0.0))
    argv = (sys.executable, "-S", "-E", "-c", script)
    await one.start(StdioTransport(argv=argv), os.environ)
    await until(lambda: bool(lines))
    return one


async def _end_of_one_that_closes(fd: int) -> str:
    one = await _child(HELD.format(fd=fd), [])
    try:
        await until(lambda: not one.send(b"{}") or one.ended.done())
        return await within(asyncio.shield(one.ended))
    finally:
        await within(one.stop())


@RUNNERS
def test_a_child_that_closes_its_output_is_over(run: Runner) -> None:
    assert run(_end_of_one_that_closes(1)) == "closed its output"


@RUNNERS
def test_a_child_that_closes_its_input_is_over(run: Runner) -> None:
    assert run(_end_of_one_that_closes(0)) == "closed its input"


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are listed in /proc")
@RUNNERS
def test_a_child_has_its_three_pipes_and_nothing_else_of_ours(run: Runner) -> None:
    async def main() -> str:
        lines: list[bytes] = []
        one = await _child(OPEN, lines)
        await within(one.stop())
        return lines[0].decode()

    assert run(main()) == "[0, 1, 2]"
