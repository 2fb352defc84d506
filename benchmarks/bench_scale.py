"""Whether many upstreams and many tools cost a call or a list anything, and how soon it starts.

    python -m benchmarks.bench_scale [--rounds N] [--calls N] [--quick]

CPU per call: rounds alternate between gateways over 1 upstream, over 50, and over 10,000 tools.
Lists: a gateway that knows 10,000 tools is started again and again; what it is asked first counts
as `first`, and `at once` means that nobody waited for it to come to rest after its start.
"""

import statistics
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
import uvloop

from benchmarks.clients import ERAS, STATELESS, HttpClient, RequestFailed, parameters
from benchmarks.gateway import Running, gateway, receiver, upstream
from benchmarks.load import Load, Measured, Watch, errors, measure, middle
from benchmarks.processes import cpu_seconds
from benchmarks.report import Bar, Report, Row, arguments, failed, finish, positive

TITLE = "Many upstreams, many tools"
SERVERS, EACH = 10, 1000
"""The servers of the 10,000 tools, and how many each has."""
ASKED = 500
"""How many of them are called."""
DOMAINS = {"ten": 10, "thousand": 1000}
LATER = 50
"""How often a list is asked for again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One gateway to call through: its servers and the tools to call by turns."""

    name: str
    servers: Mapping[str, str]
    tools: Sequence[str]
    warmup: int = 20
    more: str = ""


def cases(port: int, many: int) -> list[Case]:
    """Return the gateways to compare; the first is what the others are held against."""

    def at(name: str, of: int) -> str:
        return f"http://127.0.0.1:{of}/{name}/mcp"

    fifty = [f"s{number}" for number in range(50)]
    tools = [f"s0__tool{number}" for number in range(ASKED)]
    return [
        Case(
            name="1 upstream, 10 tools",
            servers={"s0": at("s0", port)},
            tools=[f"s0__tool{number}" for number in range(6)],
        ),
        Case(
            name="50 upstreams, 10 tools each",
            servers={name: at(name, port) for name in fifty},
            tools=[f"{name}__echo" for name in fifty],
            warmup=len(fifty),
        ),
        Case(
            name="10 upstreams, 1,000 tools each",
            servers={name: at(name, many) for name in fifty[:SERVERS]},
            tools=tools,
            more=_domains(),
        ),
    ]


def _domains() -> str:
    ten = ", ".join(f'"s{number}/tool{number}"' for number in range(SERVERS))
    return f'[domains.ten]\ninclude = [{ten}]\n[domains.thousand]\ninclude = ["s3/*"]\n'


def call_rows(given: Namespace, found: Sequence[Case], home: Path, traces: str) -> list[Row]:
    """Call through all gateways by turns; return what a call cost through each."""
    measured: dict[tuple[str, str], list[Measured]] = {}
    with ExitStack() as ending:
        running = {
            case.name: ending.enter_context(
                gateway(home / f"calls{at}", case.servers, traces, more=case.more)
            )
            for at, case in enumerate(found)
        }
        for case in found:
            wait_for_tools(running[case.name], case.tools[-1])
        for _ in range(given.rounds):
            for era in ERAS:
                for case in found:
                    one = _measured(case, era, running[case.name], given.calls)
                    measured.setdefault((case.name, era), []).append(one)
    return [
        {
            "what": name,
            "era": era,
            "gateway_cpu_ms": middle(rounds, "gateway"),
            "p50_ms": middle(rounds, "p50"),
            "rate": middle(rounds, "rate"),
            "errors": errors(rounds),
        }
        for (name, era), rounds in measured.items()
    ]


def _measured(case: Case, era: str, running: Running, calls: int) -> Measured:
    load = Load(url=running.url(), tools=case.tools, era=era, calls=calls, warmup=case.warmup)
    return measure(load, {"gateway": Watch(pid=running.pid, lazy=True)})


def list_rows(given: Namespace, case: Case, home: Path, traces: str) -> list[Row]:
    """Start the gateway again and again and ask for first pages; the first start learns all."""
    began = time.perf_counter()
    with gateway(home, case.servers, traces, more=case.more) as running:
        wait_for_tools(running, f"s{SERVERS - 1}__tool{EACH - 5}")
        learned = time.perf_counter() - began
    rows: list[Row] = [{"what": "first start, until all is listed", "start_s": learned}]
    for domain, size in DOMAINS.items():
        for era in ERAS if not given.quick else (STATELESS,):
            asked = [_asked(case, home, traces, (domain, era), rest) for rest in _rests(given)]
            rows += [
                {
                    "what": f"restart, {size} tools, {'at rest' if rest else 'at once'}",
                    "era": era,
                    "start_s": statistics.median(one["start"] for one in asked[rest::2]),
                    "start_cpu_s": statistics.median(one["start_cpu"] for one in asked[rest::2]),
                    "first_ms": statistics.median(one["first"] for one in asked[rest::2]),
                    "later_ms": statistics.median(one["later"] for one in asked[rest::2]),
                    "worst_ms": max(one["worst"] for one in asked[rest::2]),
                }
                for rest in (False, True)
            ]
    return rows


def _rests(given: Namespace) -> list[bool]:
    return [False, True] * max(1, given.rounds // 2)


def _asked(
    case: Case, home: Path, traces: str, ask: tuple[str, str], rest: bool
) -> Mapping[str, float]:
    domain, era = ask
    began = time.perf_counter()
    with gateway(home, case.servers, traces, more=case.more) as running:
        listening, used = time.perf_counter() - began, cpu_seconds(running.pid)
        if rest:
            _come_to_rest(running)
        times = uvloop.run(_first_pages(running.url(domain), era, min(DOMAINS[domain], 100)))
    return {
        "start": listening,
        "start_cpu": used,
        "first": times[0] * 1e3,
        "later": statistics.median(times[1:]) * 1e3,
        "worst": max(times[1:]) * 1e3,
    }


async def _first_pages(url: str, era: str, size: int) -> list[float]:
    client, times = HttpClient(url, era), []
    for at in range(1 + LATER):
        began = time.perf_counter()
        if at == 0:  # the greeting belongs to what the first page takes
            await client.open()
        page = await client.request("tools/list", parameters(era))
        times.append(time.perf_counter() - began)
        assert len(msgspec.json.decode(page)["tools"]) == size, "the page is not full"
    await client.end()
    return times


def _come_to_rest(running: Running) -> None:
    calm, before = 0, cpu_seconds(running.pid)
    while calm < 5:
        time.sleep(0.1)
        now = cpu_seconds(running.pid)
        calm = calm + 1 if now - before < 0.005 else 0
        before = now


def wait_for_tools(running: Running, last: str) -> None:
    """Return once the list of all tools has this one.

    Raises:
        TimeoutError: It never came.
    """
    deadline = time.monotonic() + 120
    while not uvloop.run(_listed(running.url(), last)):
        if time.monotonic() > deadline:
            raise TimeoutError(last)
        time.sleep(0.1)


async def _listed(url: str, last: str) -> bool:
    client = HttpClient(url, STATELESS)
    await client.open()
    cursor: dict[str, str] = {}
    try:
        while True:
            page = msgspec.json.decode(
                await client.request("tools/list", parameters(STATELESS, **cursor))
            )
            if any(tool["name"] == last for tool in page["tools"]):
                return True
            if "nextCursor" not in page:
                return False
            cursor = {"cursor": page["nextCursor"]}
    except RequestFailed:  # the list changed meanwhile
        return False
    finally:
        await client.end()


def bars(calls: Sequence[Row], lists: Sequence[Row]) -> list[Bar]:
    """Return the promises about scale."""
    found = []
    for era in ERAS:
        few, *others = (row for row in calls if row["era"] == era)
        found += [
            Bar(
                name=f"CPU a call, {row['what']}, {era}",
                measured=row["gateway_cpu_ms"] / few["gateway_cpu_ms"],
                limit=1.2,
                unit="of one upstream with 10 tools",
            )
            for row in others
        ]
    for row in lists[1:]:
        name = f"{row['what']}, {row['era']}"
        found.append(Bar(name=f"later pages, {name}", measured=row["later_ms"], limit=5, unit="ms"))
        if row["what"].endswith("at rest"):
            first = row["first_ms"]
            found.append(Bar(name=f"first page, {name}", measured=first, limit=5, unit="ms"))
        elif row["era"] == STATELESS:
            start = row["start_s"] + row["first_ms"] / 1e3
            found.append(Bar(name=f"start to page, {name}", measured=start, limit=3, unit="s"))
    return found


def run(given: Namespace) -> Report:
    """Measure calls, then lists."""
    with (
        tempfile.TemporaryDirectory() as folder,
        upstream("fast", 10) as (_, port),
        upstream("fast", EACH) as (_, many),
        receiver() as (_, traces),
    ):
        found = cases(port, many)
        calls = call_rows(given, found, Path(folder), traces)
        lists = list_rows(given, found[-1], Path(folder) / "lists", traces)
    return Report(
        name="scale",
        title=TITLE,
        rows=[*calls, *lists],
        bars=bars(calls, lists),
        errors=failed(calls),
    )


def main() -> int:
    """Print what many upstreams and tools cost."""
    parser = arguments(TITLE, rounds=3)
    parser.add_argument("--calls", type=positive, default=2000)
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.calls = 1, 500
    return finish(run(given), given)


if __name__ == "__main__":
    sys.exit(main())
