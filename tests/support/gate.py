"""A gateway of one's own: its home, its command line, and real processes that serve.

Never leaves a process behind, ends only what it started, and waits for nothing without a bound.
"""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from click.testing import CliRunner, Result
from mcp import StdioServerParameters

from tests.support.waiting import within
from thoughtgate.cli.root import cli

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
START = 30.0
"""Seconds that a gateway with its servers may take to start on a busy machine."""

STOP = 15.0
"""Seconds that a gateway may take to end what runs and to write what it owes."""

_OURS = ("THOUGHTGATE_", "OTEL_", "NO_COLOR")


class Unready(AssertionError):
    """A gateway did not do in time what it must; shows what it wrote."""

    def __init__(self, awaited: str, words: str) -> None:
        super().__init__(f"waited in vain for {awaited!r}; the gateway wrote:\n{words}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A user's place: the state folder, the configuration file, and the variables of the shell."""

    folder: Path
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        """Return the state folder."""
        return self.folder / "state"

    @property
    def config(self) -> Path:
        """Return the configuration file; an empty one is made by `home`."""
        return self.folder / "thoughtgate.toml"

    @property
    def variables(self) -> dict[str, str]:
        """Return what is set in the shell for this home."""
        return {
            "THOUGHTGATE_HOME": str(self.state),
            "THOUGHTGATE_CONFIG": str(self.config),
            "PYTHONWARNINGS": "error",
            **self.extra,
        }

    @property
    def environment(self) -> dict[str, str]:
        """Return the whole environment: this process's without our own variables, and ours."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        return {**kept, **self.variables}

    def invoke(self, *arguments: object, given: str | None = None) -> Result:
        """Run a command in this process."""
        cleared: dict[str, str | None] = {k: None for k in os.environ if k.startswith(_OURS)}
        runner = CliRunner(env={**cleared, **self.variables})
        return runner.invoke(cli, [str(part) for part in arguments], input=given)

    def said(self, *arguments: object) -> Any:
        """Run a command with `--json` in this process and return what it printed."""
        done = self.invoke(*arguments, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def run(self, *arguments: object, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own."""
        return subprocess.run(
            command(*arguments),
            input=given,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=START,
            check=False,
        )

    def pipe(self, *options: str) -> StdioServerParameters:
        """Return how a client starts this gateway on its standard input and output."""
        program, *rest = command("serve", "--stdio", *options)
        return StdioServerParameters(command=program, args=rest, env=self.environment)

    def audit_rows(self) -> list[dict[str, Any]]:
        """Return the audit rows of calls, in the order of their chains."""
        with closing(sqlite3.connect(self.state / "registry.db", timeout=5)) as connection:
            rows = connection.execute("SELECT body FROM audit ORDER BY chain, seq").fetchall()
        bodies = [json.loads(body) for (body,) in rows]
        return [body for body in bodies if body["action"] == "tool.call"]


def command(*arguments: object) -> list[str]:
    """Return the command line as a process of its own."""
    return [sys.executable, "-m", "thoughtgate", *map(str, arguments)]


def home(folder: Path, text: str = "", **extra: str) -> Home:
    """Make a home with a configuration file in a folder, patient with servers that start."""
    made = Home(folder=folder, extra=extra)
    made.config.write_text(f"[gateway]\nlist_wait = {START}\n{text}", encoding="utf-8")
    return made


def server_table(name: str, *argv: object, **settings: object) -> str:
    """Return the lines that configure a server which is a child process."""
    lines = {"command": [str(part) for part in argv], **settings}
    return f"[servers.{name}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in lines.items())


def python_server(name: str, module: str, *options: str, **settings: object) -> str:
    """Return the lines that configure a Python module of this checkout as a server."""
    where = {"cwd": str(ROOT), **settings}
    return server_table(name, sys.executable, "-m", module, *options, **where)


class Gate:
    """A gateway that serves HTTP; what it writes on stderr is kept."""

    def __init__(self, process: subprocess.Popen[str], home: Home) -> None:
        self.home = home
        self.process = process
        self._lines: list[str] = []
        self._heard = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, name="gate-stderr")
        self._reader.start()

    @property
    def words(self) -> str:
        """Return everything that the gateway wrote on stderr so far."""
        with self._heard:
            return "".join(self._lines)

    def url(self, domain: str = "") -> str:
        """Return the endpoint of a domain, the default one when not given."""
        announced = self.hear("listening on ").split()[-1]
        return f"{announced}/{domain}" if domain else announced

    def hear(self, text: str, seconds: float = START) -> str:
        """Return the first line with `text` as soon as the gateway has written it."""

        def line() -> str | None:
            return next((one for one in self._lines if text in one), None)

        with self._heard:
            self._heard.wait_for(lambda: line() or self._ended, seconds)
            found = line()
        if found is None:
            raise Unready(text, self.words)
        return found

    def stop(self) -> int:
        """End the gateway as an operator does, and return its exit code."""
        self.process.terminate()
        try:
            code = self.process.wait(STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(STOP)
            raise Unready("exit", self.words) from None
        finally:
            self._reader.join(STOP)
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                with self._heard:
                    self._lines.append(line)
                    self._heard.notify_all()
        with self._heard:
            self._ended = True
            self._heard.notify_all()


@contextmanager
def gate(home: Home, *options: str) -> Iterator[Gate]:
    """Serve a home over HTTP on a port of its own; ready when the block begins."""
    with starting(home, *options) as running:
        running.url()
        yield running


@contextmanager
def starting(home: Home, *options: str, through: Sequence[str] = ()) -> Iterator[Gate]:
    """Begin to serve a home, by a command of its own if need be; the block begins at once."""
    process = subprocess.Popen(
        [*through, *command("serve", "--port", "0", *options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=home.environment,
    )
    running = Gate(process, home)
    try:
        yield running
    finally:
        if process.poll() is None:
            running.stop()


@asynccontextmanager
async def gated(home: Home, *options: str, through: Sequence[str] = ()) -> AsyncIterator[Gate]:
    """Serve a home while this event loop goes on, as servers that run in it need."""
    with starting(home, *options, through=through) as running:
        try:
            await asyncio.to_thread(running.url)
            yield running
        finally:
            if running.process.poll() is None:
                await asyncio.to_thread(running.stop)


@asynccontextmanager
async def held(context: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Keep a context open in a task of its own, as one that begins and ends in one task needs.

    A fixture's two halves run in two tasks.
    """
    ready: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def keep() -> None:
        async with context as value:
            ready.set_result(value)
            await over.wait()

    task = asyncio.create_task(keep())
    first: set[asyncio.Future[Any]] = {task, ready}
    await asyncio.wait(first, timeout=START, return_when=asyncio.FIRST_COMPLETED)
    if not ready.done():
        task.cancel()
        await within(task, STOP)
    try:
        yield ready.result()
    finally:
        over.set()
        await within(task, STOP)
