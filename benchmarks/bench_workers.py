"""What a second worker costs a call, and how evenly the two share.

    python -m benchmarks.bench_workers [--rounds N] [--calls N] [--quick]

Rounds alternate between a gateway of one process and one of two workers. The CPU is that of the
whole tree, the parent too; the calls of each worker are what `thoughtgate status` says.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.clients import ERAS
from benchmarks.gateway import Running, Stand, gateway, stand
from benchmarks.load import Measured, errors, measure, middle
from benchmarks.report import Bar, Report, Row, arguments, failed, finish, positive

TITLE = "One worker and two"
LIMIT = 1.15
LEAST, MOST = 0.4, 0.6


def calls_of(running: Running) -> list[int]:
    """Return how many calls each worker has had."""
    url = f"http://127.0.0.1:{running.port}"
    found = subprocess.run(
        [sys.executable, "-m", "thoughtgate", "--server", url, "status", "--json"],
        env={**os.environ, "THOUGHTGATE_HOME": str(running.home / "state")},
        check=True,
        capture_output=True,
    )
    return [worker["calls"] for worker in json.loads(found.stdout)["workers"]]


def run(given: Namespace) -> Report:
    """Measure both gateways over HTTP and stdio, in both eras."""
    with tempfile.TemporaryDirectory() as folder, stand("fast", "stdio") as standing:
        places, traces, home = standing.places, standing.traces, Path(folder)
        with (
            gateway(home / "one", places, traces) as one,
            gateway(home / "two", places, traces, workers=2) as two,
        ):
            rows = [
                row
                for kind in standing.places
                for era in ERAS
                for row in _rows(standing, {1: one, 2: two}, given, (kind, era))
            ]
    return Report(name="workers", title=TITLE, rows=rows, bars=bars(rows), errors=failed(rows))


def _rows(
    standing: Stand, gateways: Mapping[int, Running], given: Namespace, case: tuple[str, str]
) -> list[Row]:
    kind, era = case
    measured: dict[int, list[Measured]] = {count: [] for count in gateways}
    shares: dict[int, list[float]] = {count: [] for count in gateways}
    for _ in range(given.rounds):
        for count, running in gateways.items():
            load = replace(standing.load(kind, running), era=era, calls=given.calls)
            before = calls_of(running)
            measured[count].append(measure(load, standing.watched(kind, running)))
            made = [late - early for early, late in zip(before, calls_of(running), strict=True)]
            shares[count].append(made[0] / sum(made))
    return [_row((kind, era), count, measured[count], shares[count]) for count in gateways]


def _row(
    case: tuple[str, str], count: int, found: Sequence[Measured], shares: Sequence[float]
) -> Row:
    kind, era = case
    return {
        "upstream": kind,
        "era": era,
        "workers": count,
        "gateway_cpu_ms": middle(found, "gateway"),
        "calls_per_s": middle(found, "rate"),
        "p50_ms": middle(found, "p50"),
        "p99_ms": middle(found, "p99"),
        "first_worker_share": statistics.median(shares),
        "errors": errors(found),
        "each": [dict(one.each) for one in found],
    }


def bars(rows: Sequence[Row]) -> list[Bar]:
    """Return the promises; half the calls to a stdio server's child cost a hop more, by design."""
    found = []
    for one, two in zip(rows[::2], rows[1::2], strict=True):
        where = f"{one['upstream']} server, {one['era']}"
        share = two["first_worker_share"]
        if one["upstream"] != "stdio":
            ratio = two["gateway_cpu_ms"] / one["gateway_cpu_ms"]
            found.append(
                Bar(name=f"CPU with two, {where}", measured=ratio, limit=LIMIT, unit="of one")
            )
        found += [
            Bar(name=f"share of one of two, {where}", measured=share, limit=LEAST, least=True),
            Bar(name=f"share of one of two, {where}", measured=share, limit=MOST),
        ]
    return found


def main() -> int:
    """Print what a second worker costs."""
    parser = arguments(TITLE, rounds=3)
    parser.add_argument("--calls", type=positive, default=2000)
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.calls = 1, 640
    return finish(run(given), given)


if __name__ == "__main__":
    sys.exit(main())
