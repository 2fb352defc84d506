"""How fast large results pass: a MiB of text, and a MiB in the structured part, which is checked.

    python -m benchmarks.bench_results [--rounds N] [--calls N] [--quick]

Rounds alternate between straight calls and calls through the gateway. Every byte is looked at.
"""

import sys
from argparse import Namespace
from dataclasses import replace

from benchmarks.clients import ERAS
from benchmarks.gateway import Running, Stand, before
from benchmarks.load import Load, Watch, errors, measure, middle, times
from benchmarks.report import Bar, Report, Row, arguments, failed, finish, positive

TITLE = "Results of one MiB"
MIB = 2**20
PIECE = 4 * "0123456789abcdef"
TOOLS = {"big": "text", "wide": "structured"}
SESSIONS = {"stdio": 1}
"""Sessions at once; eight where nothing is said. Straight, a pipe's server has one client."""

SHARE = 0.6


def run(given: Namespace) -> Report:
    """Measure every kind of upstream in both eras."""
    with before("default", "fast", "stdio") as (standing, running):
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
    return Report(name="results", title=TITLE, rows=rows, bars=bars, errors=failed(rows))


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
        "direct_per_s": middle(direct, "rate"),
        "gateway_per_s": middle(ours, "rate"),
        "share": times(ours, direct, "rate"),
        "direct_p50_ms": middle(direct, "p50"),
        "gateway_p50_ms": middle(ours, "p50"),
        "gateway_cpu_ms": middle(ours, "gateway"),
        "errors": errors(direct, ours),
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
