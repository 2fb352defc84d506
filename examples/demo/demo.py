"""The main job on this machine: find, classify, count, report and send, through the gateway.

Never uses the network beyond loopback, and ends every process that it started.

    python demo.py [--seed N] [--keep DIR] [--no-color]
"""

import argparse
import asyncio
import json
import logging
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import second
    from count import differences, expected, recounted, reported
    from logbook import save, write_logs
    from measures import write_measures
    from processes import DemoFailed, Processes, environment, free_port, module
    from show import Screen, wants_color

    from thoughtgate.telemetry.otlp import SeenSpan
    from thoughtgate.telemetry.tree import render
    from thoughtgate.testing.otlp import OtlpReceiver
    from thoughtgate_client import Gate, GateError, RunResult, connect
except ImportError as missing:
    sys.exit(f"this Python lacks what the demo needs ({missing}); run `make demo` in the clone")

HERE = Path(__file__).resolve().parent
TASK = (
    "Find the log files of the last three months, read them and classify their errors by type, "
    "count them, write the report with its chart, and send it."
)
DOMAIN = "logs"
START = 30.0
"""Seconds that a process gets to start; a busy machine needs some."""

RUN = 45.0
MOST = 5
"""How many types of errors the result shows."""

INCLUDED = ("logs/*", "report/*", "notify/send_webhook", "files/read_file", "files/list_directory")
TOOLS = 9
ACTS = 2
"""The main job, and the question to the data server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the demo keeps its things."""

    root: Path

    @property
    def logs(self) -> Path:
        """The log files."""
        return self.root / "logs"

    @property
    def manifest(self) -> Path:
        """What the writer of the logs knows."""
        return self.root / "manifest.json"

    @property
    def reports(self) -> Path:
        """Where reports are written."""
        return self.root / "reports"

    @property
    def report(self) -> Path:
        """The report of the run."""
        return self.reports / "report.md"

    @property
    def measures(self) -> Path:
        """Where the measurements of the second act are."""
        return self.root / "measures"

    @property
    def received(self) -> Path:
        """What the webhook received."""
        return self.root / "received"


async def demo(places: Places, seed: int, screen: Screen) -> bool:
    """Run the demo and say whether everything holds."""
    screen.heading(f"three months of logs, seed {seed}")
    manifest = write_logs(places.logs, seed)
    save(manifest, places.manifest)
    measures = write_measures(places.measures, seed)
    screen.line(f"{len(manifest.files)} files in {places.logs}")
    with OtlpReceiver() as receiver, Processes(places.root / "processes") as processes:
        screen.heading("processes")
        url = await _start(processes, places, receiver.url, screen)
        run = await _reason(f"{url}/{DOMAIN}", processes, screen)
        finding = await second.ask(f"{url}/{second.DOMAIN}", screen, RUN)
        # the gateway sends its last spans when it ends
        processes.stop("gateway")
        screen.heading("trace")
        spans = receiver.spans()
        _show_trace(spans, places, screen)
    screen.heading("result")
    good = _verdict(run, places, screen)
    return second.verdict(finding, measures, spans, screen) and good


async def _start(processes: Processes, places: Places, otlp: str, screen: Screen) -> str:
    """Start everything; return the address of the endpoints."""
    servers = {
        "logs": ["--root", str(places.logs)],
        "report": ["--out", str(places.reports)],
        "data": ["--root", str(places.measures), "--out", str(places.reports)],
    }
    screen.line("starting the webhook and the tool servers …")
    processes.start("webhook", [sys.executable, str(HERE / "webhook.py"), str(places.received)], {})
    for name, arguments in servers.items():
        _start_server(processes, name, arguments)
    hook = await processes.address("webhook", START)
    screen.line(f"webhook   {hook}")
    outbox = str(places.root / "outbox.sqlite")
    _start_server(
        processes, "notify", ["--webhook", "team=env:DEMO_HOOK", "--outbox", outbox], hook
    )
    addresses: dict[str, str] = {}
    for name in (*servers, "notify"):
        addresses[name] = await processes.address(name, START)
        screen.line(f"{name:<9} {addresses[name]}")
    screen.line("starting the gateway …")
    port = free_port()
    config = places.root / "thoughtgate.toml"
    config.write_text(_config(port, addresses, places.reports), encoding="utf-8")
    command = [sys.executable, "-c", "from thoughtgate.cli import main; main()", "serve"]
    more = {
        "THOUGHTGATE_CONFIG": str(config),
        "THOUGHTGATE_HOME": str(places.root / "state"),
        "OTEL_EXPORTER_OTLP_ENDPOINT": otlp,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
    }
    processes.start("gateway", command, more)
    url = f"http://127.0.0.1:{port}/mcp"
    await _ready(f"{url}/{DOMAIN}", TOOLS, processes)
    await _ready(f"{url}/{second.DOMAIN}", second.TOOLS, processes)
    screen.line(f"gateway   {url}")
    return url


def _start_server(processes: Processes, name: str, arguments: list[str], hook: str = "") -> None:
    carrier = "--grpc" if name == second.DOMAIN else "--http"
    command = module(f"thoughtgate_servers.{name}", carrier, "127.0.0.1:0", *arguments)
    processes.start(name, command, {"DEMO_HOOK": hook} if hook else {})


def _config(port: int, addresses: dict[str, str], reports: Path) -> str:
    """Return the gateway's configuration; JSON strings and arrays are valid TOML."""
    files = module("thoughtgate_servers.files", "--root", str(reports), "--read-only")
    lines = ["[gateway]", f"port = {port}", "capture = true"]
    for name, address in addresses.items():
        lines += [f"[servers.{name}]", f"url = {json.dumps(address)}", "trusted = true"]
    lines += [
        "[servers.files]",
        f"command = {json.dumps(files)}",
        f"env = {{ PYTHONPATH = {json.dumps(environment()['PYTHONPATH'])} }}",
        "trusted = true",
    ]
    for domain, included in ((DOMAIN, INCLUDED), (second.DOMAIN, second.INCLUDED)):
        lines += [f"[domains.{domain}]", f"include = {json.dumps(included)}", 'engine = "react"']
    return "\n".join(lines) + "\n"


async def _ready(url: str, tools: int, processes: Processes) -> None:
    """Wait until the gateway shows the tools of all servers."""
    deadline = time.monotonic() + START
    reason = "nothing was tried"
    while time.monotonic() < deadline:
        processes.check("gateway")
        try:
            async with connect(url, start_seconds=START) as gate:
                names = [tool.name for tool in await gate.tools()]
        except GateError as failure:
            reason = failure.message
        else:
            if sum("__" in name for name in names) >= tools and "reason" in names:
                return
            reason = f"it shows only {', '.join(names)}"
        await asyncio.sleep(0.2)
    raise DemoFailed(message=f"the gateway was not ready within {START:g} s: {reason}")


async def _reason(url: str, processes: Processes, screen: Screen) -> RunResult:
    plan = (HERE / "plan.toml").read_text(encoding="utf-8")
    async with connect(url) as gate:
        screen.heading("task")
        screen.paragraph(TASK)
        run = await _run(gate, plan, screen)
    processes.check("gateway")
    return run


async def _run(gate: Gate, plan: str, screen: Screen) -> RunResult:
    run = await gate.reason(TASK, plan=plan, on_step=screen.step, max_seconds=RUN)
    screen.settle()
    return run


def _show_trace(spans: tuple[SeenSpan, ...], places: Places, screen: Screen) -> None:
    """Show the traces of the two runs, the largest that came."""
    largest = Counter(span.trace_id for span in spans).most_common(ACTS)
    if not largest:
        screen.line("no spans came")
        return
    file = places.root / "trace.txt"
    with file.open("w", encoding="utf-8") as lines:
        for trace, _ in largest:
            members = [span for span in spans if span.trace_id == trace]
            lines.write(render(members, whole=True))
            print(render(members, color=screen.color, width=screen.width), end="")
    size = sum(number for _, number in largest)
    screen.line(f"each of the {size} spans has a line in {file.name}")


def _verdict(run: RunResult, places: Places, screen: Screen) -> bool:
    """Hold the run's outcome against what the writer of the logs knows."""
    manifest = json.loads(places.manifest.read_text(encoding="utf-8"))
    truth, found = expected(manifest), _table(places.report)
    messages = [json.loads(f.read_text("utf-8")) for f in sorted(places.received.glob("*.json"))]
    sent: Counter[str] = Counter()
    for message in messages:
        sent.update({row["key"]: row["count"] for row in message["body"].get("by_type", ())})
    screen.line(f"{found.total()} errors of {len(found)} types; the most frequent:")
    screen.bars(found.most_common(MOST))
    screen.line(f"run       {run.status}, {run.stop_reason}")
    screen.line(f"webhook   {len(messages)} message received, {sent.total()} errors in it")
    screen.line("checked against what the writer of the logs noted, by other code:")
    checks = [
        (not run.partial and run.stop_reason == "final_answer", "the run finished"),
        (places.report.is_file(), "the report was written"),
        (_agrees(truth, recounted(manifest), screen), f"the logs hold {truth.total()} errors"),
        (_agrees(truth, found, screen), "the report has the same count for each type"),
        (len(messages) == 1, "the webhook was sent once"),
        (_agrees(truth, sent, screen), "its message has the same count for each type"),
        (_keyed(messages), "its message has an idempotency key"),
    ]
    for good, text in checks:
        screen.verdict(good, text)
    return all(good for good, _ in checks)


def _table(report: Path) -> Counter[str]:
    return reported(report.read_text(encoding="utf-8")) if report.is_file() else Counter()


def _agrees(truth: Counter[str], other: Counter[str], screen: Screen) -> bool:
    wrong = differences(truth, other)
    for line in wrong[:10]:
        screen.line(f"differs: {line}")
    return not wrong


def _keyed(messages: list[dict[str, Any]]) -> bool:
    return all(message["headers"].get("idempotency-key") for message in messages)


def main() -> int:
    """Run as a command: 0 when everything holds, 1 when not, 130 when interrupted."""
    parser = argparse.ArgumentParser(description="The gateway's main job, on this machine.")
    parser.add_argument("--seed", type=int, default=20260728, help="of the log files")
    parser.add_argument("--keep", type=Path, help="an empty folder to work in")
    parser.add_argument("--no-color", action="store_true")
    given = parser.parse_args()
    root = given.keep or Path(tempfile.mkdtemp(prefix="thoughtgate-demo-"))
    if root.exists() and any(root.iterdir()):
        parser.error(f"--keep {root}: the folder is not empty")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
    # interrupted in the middle of a message, the SDK would log a traceback of no use to anybody
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    places = Places(root=root.resolve())
    screen = Screen(color=wants_color(given.no_color), live=sys.stdout.isatty())
    try:
        good = asyncio.run(demo(places, given.seed, screen))
    except (DemoFailed, GateError) as failure:
        screen.verdict(False, str(failure))
        screen.line(f"what the processes said is in {root / 'processes'}")
        return 1
    except KeyboardInterrupt:
        screen.line("interrupted; everything that was started has ended")
        return 130
    screen.line(f"kept in   {places.root}")
    if places.report.is_file():
        screen.line("report, its charts beside it:")
        print(places.report)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
