"""The table: what a call costs, straight, through the gateway, and through its peers.

    python -m benchmarks.bench_calls [--rounds N] [--minutes N] [--quick] [--json] [--strict]

Every number is the median of rounds in which all rows take turns. Validation both ways, tracing
to a local receiver and audit are on in the gateway. CPU is the dependable figure on a shared
machine: client, gateway and tool server compete for the same cores.
"""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from benchmarks import grpc_ways, peers
from benchmarks.clients import HANDSHAKE, STATELESS
from benchmarks.gateway import Stand, gateway, stand
from benchmarks.load import Load, Measured, Watch, errors
from benchmarks.processes import free_port, process
from benchmarks.report import Bar, Report, arguments, finish
from benchmarks.ways import (
    DIRECT,
    OURS,
    Cell,
    Found,
    Way,
    gateway_cpu,
    null,
    paired,
    rounds,
    rows,
    scale,
)

TITLE = "A call, straight and through gateways"
BY_DEFAULT, CONNECTED, PROXY = "fastmcp, default", "fastmcp, connected", "mcp-proxy"
KINDS = ("default", "fast", "stdio")
"""The SDK's server as it comes, with uvloop, httptools and JSON replies, and as a child."""
NOT_SPOKEN = "does not speak this era"
NO_HTTP = "takes only stdio servers"


def ways(ending: ExitStack, home: Path) -> list[Way]:
    """Start everything and return all ways; the stack ends what was started."""
    standing = ending.enter_context(stand(*KINDS))
    running = ending.enter_context(gateway(home / "gate", standing.places, standing.traces))
    found = [null(ending)]
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
    return found + grpc_ways.ways(ending, home / "grpc", standing.receiver, standing.traces)


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


def bars(measured: Found) -> list[Bar]:
    """Return the promises; the absolute ones scale with the null hop of the same run."""
    slower = scale(measured)
    found = []
    for kind in KINDS[:2]:
        for era, limit in ((STATELESS, 0.4), (HANDSHAKE, 0.5)):
            many, one = (kind, era, 32), (kind, era, 1)
            where, ours = f"{kind} server, {era}", gateway_cpu(measured, many, OURS)
            found += [
                Bar(name=f"gateway CPU, {where}", measured=ours, limit=limit * slower, unit="ms"),
                *(
                    Bar(
                        name=f"of the CPU of {peer}, {where}",
                        measured=_ratio(ours, gateway_cpu(measured, many, peer)),
                        limit=1 / part,
                        unit=f"(1/{part})",
                    )
                    for peer, part in ((CONNECTED, 7), (BY_DEFAULT, 70))
                ),
                Bar(
                    name=f"throughput beside direct, {where}",
                    measured=_beside(measured, many, lambda mine, its: mine.rate / its.rate),
                    limit=0.85 if kind == "default" else 0.6,
                    least=True,
                ),
                Bar(
                    name=f"p50 added, one session, {where}",
                    measured=_beside(measured, one, lambda mine, its: mine.p50 - its.p50),
                    limit=0.6 * slower,
                    unit="ms",
                ),
            ]
    return found + grpc_ways.bars(measured)


def _beside(
    measured: Found, cell: Cell, compare: Callable[[Measured, Measured], float]
) -> float | None:
    return paired(measured.get((cell, OURS)), measured.get((cell, DIRECT)), compare)


def _ratio(mine: float | None, its: float | None) -> float | None:
    return None if mine is None or not its else mine / its


def run(given: Namespace) -> Report:
    """Measure all ways and return the table with its promises."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ending:
        found = ways(ending, Path(folder))
        print(f"rounds of some two minutes each, {given.rounds} at most", file=sys.stderr)
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
    parser.add_argument("--minutes", type=float, default=13, help="begin no round beyond them")
    given = parser.parse_args()
    if given.quick:
        given.rounds = 1
    return finish(run(given), given)


if __name__ == "__main__":
    sys.exit(main())
