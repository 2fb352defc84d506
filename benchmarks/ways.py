"""Ways to a tool, which take turns round after round, and the lines of a table made of them.

Never knows what stands behind a way: it has a load, and processes whose CPU counts.
"""

import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from benchmarks.clients import ERAS, STATELESS
from benchmarks.load import GENERATOR, Load, Measured, Watch, errors, measure, middle
from benchmarks.processes import free_port, own, process
from benchmarks.report import Row

DIRECT, OURS, NULL = "direct", "thoughtgate", "null ASGI hop"
SESSIONS = (1, 32)
NULL_MS = 0.033
"""CPU of the null hop on the machine for which the absolute promises were made."""


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


def null(ending: ExitStack, *, eras: Sequence[str] = ERAS) -> Way:
    """Start the null hop and return the way to it."""
    port = free_port()
    pid = ending.enter_context(process(own("null_hop.py", port), port))
    load = Load(url=f"http://127.0.0.1:{port}/", era="", plain=True, expected=b'"text":"hello"')
    watched = {"gateway": Watch(pid=pid)}
    return Way(name=NULL, kind="none", load=load, watched=watched, calls=(3000, 6000), eras=eras)


def rounds(found: Sequence[Way], given: Namespace) -> Found:
    """Let all ways take turns, round after round; return all that was measured.

    Stops early, after a whole round, when the next one would take longer than was given.
    """
    measured: Found = {}
    began = time.monotonic()
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
        _row((kind, era, sessions), way, measured.get(((kind, era, sessions), way.name)))
        for kind in dict.fromkeys(way.kind for way in found)
        for era in ERAS
        for sessions in SESSIONS
        for way in found
        if way.kind == kind and (era in way.eras or way.note)
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


def scale(measured: Found) -> float:
    """Return how much slower this machine is now than the one of the absolute promises."""
    return (gateway_cpu(measured, ("none", STATELESS, 32), NULL) or NULL_MS) / NULL_MS


def gateway_cpu(measured: Found, cell: Cell, name: str) -> float | None:
    """Return the CPU of a call in the gateway; None where nothing was measured."""
    found = measured.get((cell, name))
    return middle(found, "gateway") if found else None


def paired(
    found: Sequence[Measured] | None,
    other: Sequence[Measured] | None,
    compare: Callable[[Measured, Measured], float],
) -> float | None:
    """Compare within each round, then take the median: a slow minute hits both."""
    if not found or not other:
        return None
    return statistics.median(map(compare, found, other))
