"""How fast large results pass: a MiB of text, and a MiB in the structured part, which is checked.

    python -m benchmarks.bench_results [--rounds N] [--calls N] [--quick]

Rounds alternate between straight calls and calls through the gateway. Every byte is looked at.
"""

import statistics
import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from benchmarks.clients import ERAS
from benchmarks.gateway import Running, Stand, gateway, stand
from benchmarks.load import Load, Watch, measure
from benchmarks.report import Bar, Report, Row, arguments, finish, positive

TITLE = "Results of one MiB"
MIB = 2**20
PIECE = 4 * "0123456789abcdef"
TOOLS = {"big": "text", "wide": "structured"}
SESSIONS = {"stdio": 1}
"""Sessions at once; eight where nothing is said. Straight, a pipe's server has one client."""

SHARE = 0.6


def run(given: Namespace) -> Report:
    """Measure every kind of upstream in both eras."""
    with tempfile.TemporaryDirectory() as folder, stand("default", "fast", "stdio") as standing:
        home = Path(folder) / "gate"
        with gateway(home, standing.places, standing.traces) as running:
            rows = [
                _row(standing, running, given, (kind, era, tool))
                for kind in standing.places
                for era in ERAS
                for tool in TOOLS
            ]
    bars = [
        Bar(
            name=f"rate beside direct, {row['upstream']}, {row['era']}, {row['result']}",
            measured=row["share"],
            limit=SHARE,
            least=True,
        )
        for row in rows
    ]
    errors = sum(row["errors"] for row in rows)
    return Report(name="results", title=TITLE, rows=rows, bars=bars, errors=errors)


def _row(standing: Stand, running: Running, given: Namespace, case: tuple[str, str, str]) -> Row:
    kind, era, tool = case
    asked = Load(
        url="",
        arguments={"text": PIECE},
        expected=b'"%s"' % (PIECE * (MIB // len(PIECE))).encode(),
        era=era,
        sessions=SESSIONS.get(kind, 8),
        calls=given.calls,
        warmup=2,
    )
    straight, through = standing.load(kind, None), standing.load(kind, running)
    direct, ours = [], []
    for _ in range(given.rounds):
        load = replace(asked, url=straight.url, command=straight.command, tools=[tool])
        direct.append(measure(load, {}))
        load = replace(asked, url=through.url, tools=[f"{kind}__{tool}"])
        ours.append(measure(load, {"gateway": Watch(pid=running.pid)}))
    return {
        "upstream": kind,
        "era": era,
        "result": TOOLS[tool],
        "sessions": asked.sessions,
        "direct_per_s": statistics.median(one.rate for one in direct),
        "gateway_per_s": statistics.median(one.rate for one in ours),
        "share": statistics.median(
            mine.rate / its.rate for mine, its in zip(ours, direct, strict=True)
        ),
        "direct_p50_ms": statistics.median(one.p50 for one in direct),
        "gateway_p50_ms": statistics.median(one.p50 for one in ours),
        "gateway_cpu_ms": statistics.median(one.cpu["gateway"] for one in ours),
        "errors": sum(one.errors for one in (*direct, *ours)),
    }


def main() -> int:
    """Print how fast large results pass."""
    parser = arguments(TITLE, rounds=3)
    parser.add_argument("--calls", type=positive, default=64)
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.calls = 1, 16
    return finish(run(given), given)


if __name__ == "__main__":
    sys.exit(main())
