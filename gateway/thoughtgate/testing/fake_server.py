"""The fake server as a process of its own: over stdio, over HTTP with `--http`, or over gRPC.

Never use it for anything but tests: it misbehaves as it is told.

Run `python -m thoughtgate.testing.fake_server --help` for what can be asked of it at the start;
each of its tools is one behaviour, and `--faults` says what goes wrong with any of them.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import stat
import sys
from importlib import import_module
from typing import Any, Final

from thoughtgate.core.servers import Era
from thoughtgate.testing.fake_host import FakeServer
from thoughtgate.testing.fake_http import Manners, fake_http
from thoughtgate.testing.fake_turn import Script, Turn
from thoughtgate.testing.fault_log import FaultLog
from thoughtgate.testing.fault_strikes import leave
from thoughtgate.testing.faults import START, BadPlan, Faults
from thoughtgate.wire.messages import Request

__all__ = ["FakeServer", "main", "serve_stdio"]

_OPTIONS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("--era", {"choices": [era.value for era in Era], "help": "speak this era only"}),
    ("--faults", {"default": "", "help": "a plan of faults: JSON, or a file that may change"}),
    ("--log", {"default": "", "help": "append what came, ran and went wrong to this file"}),
    ("--http", {"type": int, "help": "serve HTTP on this port of loopback (0: any)"}),
    ("--grpc", {"type": int, "help": "serve gRPC on this port of loopback (0: any)"}),
    ("--events", {"action": "store_true", "help": "answer in streams where JSON would do"}),
    ("--no-streams", {"action": "store_true", "help": "offer no GET streams (405)"}),
    ("--older", {"action": "store_true", "help": "speak the older HTTP+SSE"}),
    (
        "--pages",
        {"type": int, "default": 0, "help": "list so many tools on a page (0: all on one)"},
    ),
    ("--loop", {"action": "store_true", "help": "with --pages: name the same next page for ever"}),
    ("--deaf", {"action": "store_true", "help": "answer nothing"}),
    ("--silent-probe", {"action": "store_true", "help": "do not answer server/discover"}),
    ("--endless-list", {"action": "store_true", "help": "list tools without end"}),
    ("--only-initialize", {"action": "store_true", "help": "end at any other first request"}),
    ("--journal", {"default": "", "help": "write the tools' names here when called"}),
    ("--exit", {"type": int, "help": "exit at once with this code"}),
    ("--banner", {"default": "", "help": "write this to standard output first"}),
    ("--stderr", {"default": "", "help": "write this to standard error first"}),
    ("--offers", {"action": "store_true", "help": "offer prompts and resources too"}),
    ("--ignore-eof", {"action": "store_true", "help": "live on without input"}),
    ("--ignore-term", {"action": "store_true", "help": "live on after SIGTERM"}),
)


def main() -> None:
    """Read what is asked of the server and serve."""
    parser = argparse.ArgumentParser(description="a tool server that misbehaves on request")
    for name, settings in _OPTIONS:
        parser.add_argument(name, **settings)
    asked = parser.parse_args()
    sys.stderr.write(asked.stderr)
    sys.stdout.write(asked.banner)
    sys.stdout.flush()
    if asked.exit is not None:
        sys.exit(asked.exit)
    if asked.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        asyncio.run(_serve(asked))
    except BadPlan as error:
        parser.error(f"--faults: {error}")
    except OSError as error:
        if asked.http is None and asked.grpc is None:
            raise
        where = f"--http {asked.http}" if asked.grpc is None else f"--grpc {asked.grpc}"
        parser.error(f"{where}: {os.strerror(error.errno or 0)}")


async def _serve(asked: argparse.Namespace) -> None:
    log = FaultLog(asked.log)
    server = FakeServer(_script(asked), Faults(asked.faults, log.start), log)
    out = _Stdout()
    starting = Request(id=0, method=START, params={})
    await server.strike(Turn(server=server, request=starting, era=Era.HANDSHAKE, out=out), _begin)
    if asked.grpc is not None:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # standard error is for what was asked
        # imported only now: a fake over stdio starts many times, and needs none of it
        await import_module("thoughtgate.testing.grpc_host").serve_grpc(server, asked.grpc)
    elif asked.http is None:
        await serve_stdio(server, out)
    else:
        manners = Manners(events=asked.events, streams=not asked.no_streams, legacy=asked.older)
        async with fake_http(server, manners, asked.http) as endpoint:
            sys.stdout.write(f"listening on {endpoint.url}\n")
            sys.stdout.flush()
            await asyncio.get_running_loop().create_future()
    if asked.ignore_eof:
        await asyncio.get_running_loop().create_future()


def _script(asked: argparse.Namespace) -> Script:
    return Script(
        eras=frozenset([Era(asked.era)] if asked.era else Era),
        pages=asked.pages,
        loop=asked.loop,
        deaf=asked.deaf,
        silent_probe=asked.silent_probe,
        endless=asked.endless_list,
        only_initialize=asked.only_initialize,
        journal=asked.journal,
        offers=asked.offers,
    )


async def _begin(turn: Turn) -> None:
    """Start as one does, which takes nothing."""


class _Stdout:
    """This process's standard output as `Out`."""

    lasting = True
    session = ""

    def __init__(self) -> None:
        self._writing = asyncio.Lock()

    async def send(self, data: bytes) -> None:
        await self.raw(self.framed(data))

    def framed(self, data: bytes) -> bytes:
        return data + b"\n" if data else b""

    async def raw(self, *parts: bytes) -> None:
        async with self._writing:
            for part in parts:
                sys.stdout.buffer.write(part)
                sys.stdout.buffer.flush()
                await asyncio.sleep(0)

    async def event(self, event: bytes) -> None:
        await self.raw(b"\n")

    async def refuse(self, status: int, location: str = "") -> bool:
        return False

    async def end(self, code: int | None = None) -> bool:
        return False

    async def freeze(self) -> None:
        while True:
            signal.pause()  # holds up the whole process, as a stuck one would be

    def cut(self, code: int) -> None:
        leave(code)


async def _read_stdin(reader: asyncio.StreamReader) -> None:
    """Have a reader read it as it comes, or at once where that cannot be waited for."""
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or sys.stdin.isatty():
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    else:  # a file, or nothing at all: `/dev/null`
        reader.feed_data(await asyncio.to_thread(sys.stdin.buffer.read))
        reader.feed_eof()


async def serve_stdio(server: FakeServer, out: _Stdout) -> None:
    """Serve this process's standard input until it ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=64 << 20)
    await _read_stdin(reader)
    running: set[asyncio.Task[Any]] = set()
    while line := await reader.readline():
        task = loop.create_task(server.take(line, out))
        running.add(task)
        task.add_done_callback(running.discard)
    for task in running:
        task.cancel()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
