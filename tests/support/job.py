"""The main job's place: its logs, its tool servers as real processes, and a gateway over them.

Never leaves a process behind, and ends only what it started.
"""

import asyncio
import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from logbook import write_logs
from processes import Processes

from tests.support.gate import Gate, gate, home, server_table
from tests.support.tool_servers import START, command
from thoughtgate.core.json import JsonObject
from thoughtgate.testing.openai_server import Compute, OpenAIServer

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
PLAN = (DEMO / "plan.toml").read_text(encoding="utf-8")
TASK = "Find the logs of the last three months, count their errors by type, report and send to team"
DOMAIN = "logs"
SMALL = frozenset({
    "nginx/access.log",
    "nginx/access.log.1",
    "nginx/access.log.5.gz",
    "nginx/access-torn.log.gz",
    "nginx/error.log",
    "nginx/error.log.2.gz",
    "app/支付/billing.jsonl",
    "app/支付/billing.jsonl.3.gz",
})
"""Few enough files and types for a model to read what is found; one file is too old, one torn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folders of the job."""

    root: Path

    @property
    def logs(self) -> Path:
        """The log files."""
        return self.root / "logs"

    @property
    def reports(self) -> Path:
        """Where reports are written."""
        return self.root / "reports"

    @property
    def report(self) -> str:
        """The report as it was written."""
        return (self.reports / "report.md").read_text(encoding="utf-8")

    @property
    def received(self) -> Path:
        """Where the demo's webhook receiver keeps what it gets."""
        return self.root / "received"

    def renew(self, seed: int, only: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Write other logs, `only` some of them, drop old reports; return what was written."""
        for folder in (self.logs, self.reports):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        manifest: dict[str, Any] = json.loads(json.dumps(asdict(write_logs(self.logs, seed))))
        if only:
            for file in manifest["files"]:
                if file["path"] not in only:
                    (self.logs / file["path"]).unlink()
            manifest["files"] = [file for file in manifest["files"] if file["path"] in only]
            assert len(manifest["files"]) == len(only)
        return manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The job's tool servers, as the lines that configure them."""

    place: Place
    tables: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The job's place with a gateway that serves."""

    place: Place
    gate: Gate

    @property
    def url(self) -> str:
        """The endpoint of the job's domain."""
        return self.gate.url(DOMAIN)


@contextmanager
def servers(root: Path, hook: str, *, children: bool = False) -> Iterator[Servers]:
    """Start the tool servers, which send to `hook`.

    `files` is a child of the gateway; with `children` all of them are.
    """
    place = Place(root=root)
    for folder in (place.logs, place.reports):
        folder.mkdir()
    arguments = {
        "logs": ["--root", str(place.logs)],
        "report": ["--out", str(place.reports)],
        "notify": ["--webhook", f"team={hook}", "--outbox", str(root / "outbox.sqlite")],
        "files": ["--root", str(place.reports), "--read-only"],
    }
    far = [] if children else ["logs", "report", "notify"]
    with Processes(root / "processes") as processes:
        for name in far:
            processes.start(name, [*command(name, "--http", "127.0.0.1:0"), *arguments[name]], {})
        tables = [_remote(name, announced(processes, name)) for name in far]
        tables += [
            server_table(name, *command(name, *arguments[name]), trusted=True)
            for name in arguments
            if name not in far
        ]
        yield Servers(place=place, tables="".join(tables))


@contextmanager
def job(
    servers: Servers, name: str, more: str = "", *include: str, **variables: str
) -> Iterator[Job]:
    """Serve the job's domain; `more` is more configuration, `include` more tools of the domain."""
    folder = servers.place.root / name
    folder.mkdir()
    text = servers.tables + more + _domain(include)
    with gate(home(folder, text, **variables)) as serving:
        yield Job(place=servers.place, gate=serving)


def announced(processes: Processes, name: str) -> str:
    """Return the address that a process says it listens on."""
    return asyncio.run(processes.address(name, START))


def _remote(name: str, address: str) -> str:
    return f"[servers.{name}]\nurl = {json.dumps(address)}\ntrusted = true\n"


def _domain(include: Iterable[str]) -> str:
    shown = ("logs/*", "report/*", "notify/send_webhook", "files/read_file", *include)
    return f'[domains.{DOMAIN}]\ninclude = {json.dumps(shown)}\nengine = "react"\n'


def model_table(url: str, *, native: bool) -> str:
    """Return the lines that configure the model behind `url`."""
    shown = json.dumps(native)
    return f'[models.clerk]\nurl = "{url}"\nmodel = "clerk"\nnative_tools = {shown}\n'


class ModelThread:
    """A model server in a thread of its own; `compute` may be another function for each test.

    What `compute` raises is kept in `faults`, since nobody sees it in that thread.
    """

    def __init__(self) -> None:
        self.compute: Compute = _speechless
        self.faults: list[str] = []
        self.url = ""
        self._ready = threading.Event()
        self._end: Callable[[], object] = _nothing
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="model")

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        assert self._ready.wait(START)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._end()
        self._thread.join()

    async def _serve(self) -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        self._end = partial(loop.call_soon_threadsafe, over.set)
        async with OpenAIServer(self._computed) as server:
            self.url = server.url
            self._ready.set()
            await over.wait()

    def _computed(self, request: JsonObject) -> str | JsonObject:
        try:
            return self.compute(request)
        except (AssertionError, LookupError, ValueError) as fault:
            self.faults.append(repr(fault))
            return "the model server has a fault"


def _speechless(_: JsonObject) -> str:
    return ""


def _nothing() -> None:
    """Do nothing: there is nothing to end yet."""


def sent(bodies: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Return the counts in the messages that were sent."""
    counts: Counter[str] = Counter()
    for body in bodies:
        counts.update({row["key"]: row["count"] for row in body["by_type"]})
    return counts


def child_of(parent: int, words: str) -> int:
    """Return the process id of the child of `parent` whose command line holds `words`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
            except OSError:
                continue  # it ended while we looked
            if int(stat.rpartition(")")[2].split()[1]) == parent and words.encode() in line:
                found.append(int(entry.name))
    assert len(found) == 1, found
    return found[0]
