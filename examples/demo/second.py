"""The second act: a question to the data server, which speaks gRPC, and a written finding.

Never trusts the servers: the verdict counts again, and looks at the trace for both protocols.
"""

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from count import differences, reported
from measures import failures_by_service, load_and_failures
from show import Screen

from thoughtgate.telemetry.otlp import SeenSpan
from thoughtgate_client import RunResult, connect

PLAN = Path(__file__).resolve().parent / "finding.toml"
DOMAIN = "data"
INCLUDED = ("data/*", "report/write_report")
TOOLS = 6
TASK = (
    "Find out which service fails most and whether load has to do with it: ask the data in SQL, "
    "study it, draw a chart, and write down the finding."
)
_GRPC_CALLS = 3
"""Query, statistics and chart."""


async def ask(url: str, screen: Screen, seconds: float) -> RunResult:
    """Hand the task to the gateway."""
    async with connect(url) as gate:
        screen.heading("second task, on a gRPC server")
        screen.paragraph(TASK)
        plan = PLAN.read_text(encoding="utf-8")
        run = await gate.reason(TASK, plan=plan, on_step=screen.step, max_seconds=seconds)
        screen.settle()
        return run


def verdict(run: RunResult, measures: Path, spans: Sequence[SeenSpan], screen: Screen) -> bool:
    """Hold the finding against the measurements, and the trace against both protocols."""
    answer = _answer(run)
    counts = failures_by_service(measures)
    finding = Path(str(answer.get("finding", "")))
    found = reported(finding.read_text(encoding="utf-8")) if finding.is_file() else None
    related = answer.get("related") or {}
    screen.line(f"finding   {finding}")
    [(worst, failures)] = counts.most_common(1)
    screen.line(f"          {worst} fails most, {failures} times; load and failures go together")
    checks = [
        (not run.partial and run.stop_reason == "final_answer", "the second run finished"),
        (found is not None and not differences(counts, found), "its finding has the right counts"),
        (
            math.isclose(related.get("r", 0), load_and_failures(measures), abs_tol=1e-9),
            "load and failures are related as the standard library says",
        ),
        (
            _points(answer.get("chart")) == answer.get("rows", 0),
            "its chart has a point for each day",
        ),
        (_both(spans), "one trace holds its calls over gRPC and over HTTP"),
    ]
    for good, text in checks:
        screen.verdict(good, text)
    return all(good for good, _ in checks)


def _answer(run: RunResult) -> dict[str, Any]:
    """Return what the plan answers with; nothing when the run did not get that far."""
    try:
        answer = json.loads(str(run.answer))
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _points(chart: object) -> int | None:
    if not isinstance(chart, str) or not Path(chart).is_file():
        return None
    return len(ET.parse(chart).findall("{http://www.w3.org/2000/svg}circle"))


def _both(spans: Sequence[SeenSpan]) -> bool:
    """Say whether some trace has the calls to the data server, and one to a server over HTTP."""
    clients: dict[str, list[bool]] = {}
    for span in spans:
        if span.kind == "client" and span.attributes.get("mcp.method.name") == "tools/call":
            over_grpc = span.attributes.get("rpc.system.name") == "grpc"
            clients.setdefault(span.trace_id, []).append(over_grpc)
    return any(calls.count(True) == _GRPC_CALLS and False in calls for calls in clients.values())
