"""What validation, tracing and audit cost a call, each and together.

    python -m benchmarks.bench_observing [--rounds N] [--calls N] [--quick] [--json]

The same load goes through gateways that differ in these only, by turns. Tracing is off where no
endpoint is set; the others cannot be switched off, so `bare_gateway.py` takes their stages out.
"""

import statistics
import sys
import tempfile
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.clients import ERAS
from benchmarks.gateway import Stand, gateway, stand
from benchmarks.load import Load, Measured, Watch, errors, measure, middle
from benchmarks.processes import free_port, own, process
from benchmarks.report import Bar, Report, Row, arguments, finish, positive
from benchmarks.ways import NULL, NULL_MS

TITLE = "What validation, tracing and audit cost"
KIND = "fast"
ALL, NONE = "all on", "all off"
WITHOUT: Mapping[str, Sequence[str]] = {
    ALL: (),
    "no validation": ("validation",),
    "no tracing": ("tracing",),
    "no audit": ("audit",),
    NONE: ("validation", "tracing", "audit"),
}
SESSIONS = (32, 1)
LIMIT = 0.25
"""Milliseconds of CPU a call for the three together, on the machine of `NULL_MS`."""

Cell = tuple[str, int]
Found = dict[tuple[Cell, str], list[Measured]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A load, its era and sessions to be set, and whose CPU counts."""

    name: str
    load: Load
    watched: Mapping[str, Watch]


def ways(ending: ExitStack, home: Path) -> list[Way]:
    """Start everything and return all ways; the stack ends what was started."""
    standing = ending.enter_context(stand(KIND))
    return [_null(ending), *(_way(ending, home, standing, name) for name in WITHOUT)]


def _null(ending: ExitStack) -> Way:
    port = free_port()
    pid = ending.enter_context(process(own("null_hop.py", port), port))
    load = Load(url=f"http://127.0.0.1:{port}/", era="", plain=True, expected=b'"text":"hello"')
    return Way(name=NULL, load=load, watched={"gateway": Watch(pid=pid)})


def _way(ending: ExitStack, home: Path, standing: Stand, name: str) -> Way:
    without = WITHOUT[name]
    running = ending.enter_context(
        gateway(
            home / name.replace(" ", "-"),
            standing.places,
            "" if "tracing" in without else standing.traces,
            program=own("bare_gateway.py", ",".join(one for one in without if one != "tracing")),
        )
    )
    watched = {"gateway": Watch(pid=running.pid, lazy=True)}
    return Way(name=name, load=standing.load(KIND, running), watched=watched)


def rounds(found: Sequence[Way], given: Namespace) -> Found:
    """Let all ways take turns, round after round; return all that was measured."""
    measured: Found = {}
    for number in range(given.rounds):
        for era in ERAS:
            for sessions in SESSIONS:
                for way in found:
                    load = replace(way.load, era=era, sessions=sessions, calls=given.calls)
                    one = measure(load, way.watched)
                    measured.setdefault(((era, sessions), way.name), []).append(one)
        print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
    return measured


def rows(measured: Found) -> list[Row]:
    """Return the lines of the table: each way, and what it costs less than all together."""
    return [
        {
            "era": cell[0],
            "sessions": cell[1],
            "way": name,
            "calls": sum(one.calls for one in found),
            "errors": errors(found),
            "gateway_cpu_ms": middle(found, "gateway"),
            "less_than_all_ms": None if name in {NULL, ALL} else saved(measured, cell, name),
            "p50_ms": middle(found, "p50"),
            "p99_ms": middle(found, "p99"),
            "each": [dict(one.each) for one in found],
        }
        for (cell, name), found in measured.items()
    ]


def saved(measured: Found, cell: Cell, name: str) -> float:
    """Return the CPU a call that a way saves: within each round, then the median of them."""
    pairs = zip(measured[cell, ALL], measured[cell, name], strict=True)
    return round(
        statistics.median(full.cpu["gateway"] - bare.cpu["gateway"] for full, bare in pairs), 4
    )


def bars(measured: Found) -> list[Bar]:
    """Return the promise, for each era and number of sessions."""
    null = [
        one.cpu["gateway"]
        for ((_, sessions), name), found in measured.items()
        if name == NULL and sessions == max(SESSIONS)
        for one in found
    ]
    scale = statistics.median(null) / NULL_MS
    return [
        Bar(
            name=f"validation, tracing and audit together, {era}, {sessions} sessions",
            measured=saved(measured, (era, sessions), NONE),
            limit=LIMIT * scale,
            unit="ms",
        )
        for era in ERAS
        for sessions in SESSIONS
    ]


def run(given: Namespace) -> Report:
    """Measure all ways and return what the three cost."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ending:
        measured = rounds(ways(ending, Path(folder)), given)
    return Report(
        name="observing",
        title=TITLE,
        rows=rows(measured),
        bars=bars(measured),
        errors=errors(*measured.values()),
    )


def main() -> int:
    """Print what the three cost."""
    parser = arguments(TITLE)
    parser.add_argument("--calls", type=positive, default=2000)
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.calls = 1, 400
    return finish(run(given), given)


if __name__ == "__main__":
    sys.exit(main())
