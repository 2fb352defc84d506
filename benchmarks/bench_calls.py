"""The table: what a call costs, straight, through the gateway, and through its peers.

    python -m benchmarks.bench_calls [--rounds N] [--minutes N] [--quick] [--json] [--strict]

Every number is the median of rounds in which all rows take turns. Validation both ways, tracing
to a local receiver and audit are on in the gateway. CPU is the dependable figure on a shared
machine: client, gateway and tool server compete for the same cores.
"""

import statistics
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks import peers
from benchmarks.clients import ERAS, HANDSHAKE, STATELESS
from benchmarks.gateway import Stand, gateway, stand
from benchmarks.load import GENERATOR, Load, Measured, Watch, errors, measure, middle
from benchmarks.processes import free_port, own, process
from benchmarks.report import Bar, Report, Row, arguments, finish

TITLE = "A call, straight and through gateways"
DIRECT, OURS, NULL = "direct", "thoughtgate", "null ASGI hop"
BY_DEFAULT, CONNECTED, PROXY = "fastmcp, default", "fastmcp, connected", "mcp-proxy"
SESSIONS = (1, 32)
KINDS = ("default", "fast", "stdio")
"""The SDK's server as it comes, with uvloop, httptools and JSON replies, and as a child."""
NULL_MS = 0.033
"""CPU of the null hop on the machine for which the absolute promises were made."""
NOT_SPOKEN = "does not speak this era"
NO_HTTP = "takes only stdio servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to the tool: what to send where, how much of it, and whose CPU to count.

    `calls` says how many a round, at one session and at 32; `note` why there is nothing to measure.
    """

    name: str
    kind: str
    load: Load
    watched: Mapping[str, Watch] = field(default_factory=dict)
    calls: tuple[int, int] = (800, 1600)
    eras: Sequence[str] = ERAS
    note: str = ""


Cell = tuple[str, str, int]
"""Kind of upstream, era, sessions."""
Found = dict[tuple[Cell, str], list[Measured]]


def ways(ending: ExitStack, home: Path) -> list[Way]:
    """Start everything and return all ways; the stack ends what was started."""
    standing = ending.enter_context(stand(*KINDS))
    running = ending.enter_context(gateway(home / "gate", standing.places, standing.traces))
    found = [_null(ending)]
    for kind in KINDS:
        found += [
            Way(
                name=name,
                kind=kind,
                load=standing.load(kind, through),
                watched=standing.watched(kind, through),
            )
            for name, through in ((DIRECT, None), (OURS, running))
        ]
        found += _peers(ending, kind, standing)
    return found


def _null(ending: ExitStack) -> Way:
    port = free_port()
    pid = ending.enter_context(process(own("null_hop.py", port), port))
    load = Load(url=f"http://127.0.0.1:{port}/", era="", plain=True, expected=b'"text":"hello"')
    watched = {"gateway": Watch(pid=pid)}
    return Way(name=NULL, kind="none", load=load, watched=watched, calls=(3000, 6000))


def _peers(ending: ExitStack, kind: str, standing: Stand) -> Iterator[Way]:
    place = standing.places[kind]
    target = [place] if isinstance(place, str) else place

    def way(name: str, command: Callable[[int], list[str]], calls: tuple[int, int]) -> Way:
        port = free_port()
        pid = ending.enter_context(process(command(port), port))
        load = Load(url=f"http://127.0.0.1:{port}/mcp", era="", warmup=1)
        return Way(
            name=name,
            kind=kind,
            load=load,
            watched={"gateway": Watch(pid=pid), **standing.watched(kind, None)},
            calls=calls,
        )

    yield way(BY_DEFAULT, lambda port: peers.fastmcp("default", port, *target), (40, 64))
    yield way(CONNECTED, lambda port: peers.fastmcp("connected", port, *target), (200, 256))
    if kind == "stdio":
        proxy = way(PROXY, lambda port: peers.mcp_proxy(port, *target), (300, 480))
        yield replace(proxy, eras=[HANDSHAKE], note=NOT_SPOKEN)
    else:
        yield Way(name=PROXY, kind=kind, load=Load(era=""), eras=[], note=NO_HTTP)


def rounds(found: Sequence[Way], given: Namespace) -> Found:
    """Let all ways take turns, round after round; return all that was measured.

    Stops early, after a whole round, when the next one would take longer than was given.
    """
    measured: Found = {}
    began = time.monotonic()
    print(f"rounds of some two minutes each, {given.rounds} at most", file=sys.stderr)
    for number in range(given.rounds):
        for era in ERAS:
            for sessions in SESSIONS:
                for way in found:
                    if era in way.eras:
                        cell = (way.kind, era, sessions)
                        one = measure(_load(way, era, sessions, given.quick), way.watched)
                        measured.setdefault((cell, way.name), []).append(one)
        took = time.monotonic() - began
        print(f"round {number + 1} of {given.rounds}, {took:.0f} s", file=sys.stderr)
        if took * (number + 2) / (number + 1) > given.minutes * 60:
            given.rounds = number + 1
            break
    return measured


def _load(way: Way, era: str, sessions: int, quick: bool) -> Load:
    calls = way.calls[sessions > 1]
    return replace(
        way.load, era=era, sessions=sessions, calls=max(sessions, calls // 4) if quick else calls
    )


def rows(found: Sequence[Way], measured: Found) -> list[Row]:
    """Return the lines of the table; a way that cannot be measured says why."""
    return [
        _row((way.kind, era, sessions), way, measured.get(((way.kind, era, sessions), way.name)))
        for kind in ("none", *KINDS)
        for era in ERAS
        for sessions in SESSIONS
        for way in found
        if way.kind == kind
    ]


def _row(cell: Cell, way: Way, found: Sequence[Measured] | None) -> Row:
    kind, era, sessions = cell
    head = {"upstream": kind, "era": era, "sessions": sessions, "way": way.name}
    if not found:
        return {**head, "note": way.note}

    def cpu(name: str) -> float | None:
        used = [one.cpu[name] for one in found if name in one.cpu]
        return round(statistics.median(used), 4) if any(used) else None

    return {
        **head,
        "calls": sum(one.calls for one in found),
        "errors": errors(found),
        "calls_per_s": round(middle(found, "rate"), 1),
        "p50_ms": middle(found, "p50"),
        "p99_ms": middle(found, "p99"),
        "gateway_cpu_ms": cpu("gateway"),
        "upstream_cpu_ms": cpu("upstream"),
        "receiver_cpu_ms": cpu("receiver"),
        "generator_cpu_ms": cpu(GENERATOR),
        "each": [dict(one.each) for one in found],
    }


def bars(measured: Found) -> list[Bar]:
    """Return the promises; the absolute ones scale with the null hop of the same run."""
    null = _cpu(measured, ("none", STATELESS, 32), NULL)
    scale = (null or NULL_MS) / NULL_MS
    found = []
    for kind in KINDS[:2]:
        for era, limit in ((STATELESS, 0.4), (HANDSHAKE, 0.5)):
            many, one = (kind, era, 32), (kind, era, 1)
            where, ours = f"{kind} server, {era}", _cpu(measured, many, OURS)
            found += [
                Bar(name=f"gateway CPU, {where}", measured=ours, limit=limit * scale, unit="ms"),
                *(
                    Bar(
                        name=f"of the CPU of {peer}, {where}",
                        measured=_ratio(ours, _cpu(measured, many, peer)),
                        limit=1 / part,
                        unit=f"(1/{part})",
                    )
                    for peer, part in ((CONNECTED, 7), (BY_DEFAULT, 70))
                ),
                Bar(
                    name=f"throughput beside direct, {where}",
                    measured=_paired(measured, many, lambda mine, its: mine.rate / its.rate),
                    limit=0.85 if kind == "default" else 0.6,
                    least=True,
                ),
                Bar(
                    name=f"p50 added, one session, {where}",
                    measured=_paired(measured, one, lambda mine, its: mine.p50 - its.p50),
                    limit=0.6 * scale,
                    unit="ms",
                ),
            ]
    return found


def _cpu(measured: Found, cell: Cell, name: str) -> float | None:
    found = measured.get((cell, name))
    return middle(found, "gateway") if found else None


def _ratio(mine: float | None, its: float | None) -> float | None:
    return None if mine is None or not its else mine / its


def _paired(
    measured: Found, cell: Cell, compare: Callable[[Measured, Measured], float]
) -> float | None:
    """Compare within each round, then take the median: a slow minute hits both."""
    ours, straight = measured.get((cell, OURS)), measured.get((cell, DIRECT))
    if not ours or not straight:
        return None
    return statistics.median(map(compare, ours, straight))


def run(given: Namespace) -> Report:
    """Measure all ways and return the table with its promises."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ending:
        found = ways(ending, Path(folder))
        measured = rounds(found, given)
    return Report(
        name="calls",
        title=TITLE,
        rows=rows(found, measured),
        bars=bars(measured),
        errors=errors(*measured.values()),
    )


def main() -> int:
    """Print the table and the promises."""
    parser = arguments(TITLE)
    parser.add_argument("--minutes", type=float, default=14, help="begin no round beyond them")
    given = parser.parse_args()
    if given.quick:
        given.rounds = 1
    return finish(run(given), given)


if __name__ == "__main__":
    sys.exit(main())
