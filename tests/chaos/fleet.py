"""The tool servers of a run: what goes wrong in each, and how each is stopped, killed and started.

Never touches a process that the run did not start: its own children, and those of its gateway.
"""

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.history import Ran, read_ran
from tests.chaos.pace import rest
from tests.support.gate import ROOT, Home
from tests.support.waiting import within
from thoughtgate.testing.fault_log import read_log

FAKE = "thoughtgate.testing.fake_server"
STARTING = 60.0
"""Seconds that a server may take to start on a busy machine."""

_WORKER = b"thoughtgate.cli.worker"

_CALLS = ("read", "write", "echo", "ask", "want_input", "")
_WHENS = ("before", "during", "after")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A tool server of a run; `asks` is its tool that asks its caller, `options` are its own."""

    name: str
    http: bool = False
    options: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    asks: str = "want_input"
    calm: bool = False


KINDS = (
    Kind(name="calm-pipe", calm=True),
    Kind(name="calm-web", http=True, options=("--era", "handshake"), asks="ask", calm=True),
    Kind(name="pipe-new", options=("--era", "stateless")),
    Kind(name="pipe-old", options=("--era", "handshake"), asks=""),
    Kind(
        name="pipe-own",
        options=("--era", "handshake"),
        added=("--sharing", "principal", "--idle-timeout", "10"),
        asks="",
    ),
    Kind(name="web-new", http=True, options=("--era", "stateless")),
    Kind(name="web-events", http=True, options=("--era", "stateless", "--events")),
    Kind(name="web-old", http=True, options=("--era", "handshake", "--events"), asks="ask"),
)
"""Eight servers: two that nothing is done to, and of both kinds and eras."""


@dataclass(slots=True, kw_only=True)
class Web:
    """A server over HTTP, which is a process of the run's own."""

    kind: Kind
    port: int = 0
    url: str = ""
    process: "asyncio.subprocess.Process | None" = None
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class Fleet:
    """All servers of a run; `gateway` is its process, once it runs."""

    home: Home
    random: random.Random
    gateway: int = 0
    webs: dict[str, Web] = field(default_factory=dict)
    starts: int = 0
    kills: int = 0
    stops: int = 0

    @property
    def troubled(self) -> tuple[Kind, ...]:
        """Return the servers that things are done to."""
        return tuple(kind for kind in KINDS if not kind.calm)

    def log(self, name: str) -> Path:
        """Return where a server writes what it ran."""
        return self.home.folder / f"{name}.log"

    def plan(self, name: str) -> Path:
        """Return the file of a server's faults."""
        return self.home.folder / f"{name}.faults"

    async def start(self) -> None:
        """Start the servers over HTTP and register all of them."""
        for kind in KINDS:
            self.put(kind.name, [])
            if kind.http:
                self.webs[kind.name] = Web(kind=kind)
                await self.revive(kind.name)
        for kind in KINDS:
            await asyncio.to_thread(self._register, kind)

    def put(self, name: str, faults: list[dict[str, Any]]) -> None:
        """Let other faults hold at a server from now on."""
        plan = {"faults": faults, "seed": self.random.getrandbits(31)}
        new = self.plan(name).with_suffix(".new")
        new.write_text(json.dumps(plan), encoding="utf-8")
        new.replace(self.plan(name))

    def trouble(self, kind: Kind) -> None:
        """Let random faults hold at a server."""
        chosen = self.random.sample(MENU, self.random.randint(2, 5))
        self.put(kind.name, [self._fault(name) for name in chosen])

    def _fault(self, name: str) -> dict[str, Any]:
        dice = self.random
        fault: dict[str, Any] = {"name": name, "chance": round(dice.uniform(0.02, 0.4), 3)}
        fault["on"] = dice.choice(_CALLS)
        fault |= {key: dice.choice(values) for key, values in DETAILS.get(name, {}).items()}
        return fault

    def pids(self, kind: Kind) -> list[int]:
        """Return the processes of a server; children of the gateway are known by their log."""
        if kind.http:
            process = self.webs[kind.name].process
            return [] if process is None or process.returncode is not None else [process.pid]
        mark = str(self.log(kind.name)).encode()
        return [pid for pid in descendants(self.gateway) if mark in _command(pid)]

    def workers(self) -> list[int]:
        """Return the processes of the gateway's workers, none where it is one process."""
        return [pid for pid in descendants(self.gateway) if _WORKER in _command(pid)]

    async def kill(self, kind: Kind) -> None:
        """Kill a server; one over HTTP is there again after a moment."""
        self.kills += 1
        for pid in self.pids(kind):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if kind.http:
            await rest(self.random.random() * 1.5)
            await self.revive(kind.name)

    async def halt(self, kind: Kind) -> None:
        """Stop a server in its tracks for some seconds."""
        self.stops += 1
        pids = self.pids(kind)
        try:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            await rest(self.random.random() * 4)
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    async def revive(self, name: str) -> None:
        """Start a server over HTTP, where it was before, unless it runs."""
        web = self.webs[name]
        async with web.starting:  # two who come at once would start two, and lose one
            await self._revive(web)

    async def _revive(self, web: Web) -> None:
        if web.process is not None and web.process.returncode is None:
            with suppress(TimeoutError):
                await within(web.process.wait(), 1.0)
            if web.process.returncode is None:
                return
        self.starts += 1
        web.process = await asyncio.create_subprocess_exec(
            *self._argv(web.kind, "--http", str(web.port)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=ROOT,
        )
        assert web.process.stdout is not None
        line = (await within(web.process.stdout.readline(), STARTING)).decode()
        if line:
            web.url = line.split()[-1]
            web.port = int(web.url.split(":")[2].split("/")[0])

    async def keep(self) -> None:
        """Start the servers over HTTP again that a fault has ended."""
        while True:
            await rest(0.5)
            for name, web in self.webs.items():
                if web.process is not None and web.process.returncode is not None:
                    await self.revive(name)

    async def calm(self) -> None:
        """Let nothing go wrong any more, and have every server over HTTP run."""
        for kind in self.troubled:
            self.put(kind.name, [])
            if kind.http:
                await self.revive(kind.name)

    async def close(self) -> None:
        """End the servers over HTTP."""
        for web in self.webs.values():
            if web.process is not None and web.process.returncode is None:
                web.process.kill()
                await within(web.process.wait())

    def ran(self) -> Iterator[Ran]:
        """Return what all servers ran."""
        for kind in KINDS:
            yield from read_ran(kind.name, read_log(self.log(kind.name)))

    def struck(self) -> int:
        """Return how often a fault struck."""
        rows = (row for kind in KINDS for row in read_log(self.log(kind.name)))
        return sum(row["what"] == "struck" for row in rows)

    def _argv(self, kind: Kind, *more: str) -> list[str]:
        files = ("--log", str(self.log(kind.name)), "--faults", str(self.plan(kind.name)))
        return [sys.executable, "-m", FAKE, *kind.options, *files, *more]

    def _register(self, kind: Kind) -> None:
        patience = ("60", "60") if kind.calm else ("3", "10")
        settings = ("--trusted", "--call-timeout", patience[0], "--start-timeout", patience[1])
        if kind.http:
            where = [self.webs[kind.name].url]
        else:
            where = ["--cwd", str(ROOT), "--", *self._argv(kind)]
        done = self.home.invoke("server", "add", kind.name, *settings, *kind.added, *where)
        assert done.exit_code == 0, done.output


MENU = (
    "crash", "exit", "hang", "half_open", "slow", "late", "dribble", "split", "together", "huge",
    "noise", "empty_events", "stderr", "duplicate", "stray", "wrong", "error", "progress", "storm",
    "inherit", "status", "redirect", "expire", "loop", "start", "list",
)  # fmt: skip
"""The faults that a run draws from; `start` and `list` are those of other moments than calls."""

DETAILS: dict[str, dict[str, tuple[Any, ...]]] = {
    "crash": {"when": _WHENS},
    "exit": {"when": _WHENS, "code": (1, 3, -9, -11)},
    "hang": {"when": _WHENS},
    "slow": {"seconds": (0.2, 1.0, 2.5, 4.0)},
    "late": {"seconds": (0.1, 3.5)},
    "huge": {"count": (300_000, 2_000_000)},
    "stderr": {"count": (50_000,)},
    "error": {"code": (-32050,), "text": ("it failed",)},
    "progress": {"count": (5, 50, 0)},
    "storm": {"count": (10, 100)},
    "status": {"code": (500, 503, 429, 404)},
    "loop": {"on": ("tools/list",)},
    "start": {"name": ("exit", "slow"), "on": ("start",), "seconds": (1.0,), "code": (7,)},
    "list": {"name": ("hang", "error", "crash"), "on": ("tools/list",)},
}


def descendants(pid: int) -> list[int]:
    """Return the children of a process, and theirs, zombies included."""
    found: list[int] = []
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return found
    for task in tasks:
        with suppress(OSError):
            for child in (task / "children").read_text(encoding="ascii").split():
                found += [int(child), *descendants(int(child))]
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
