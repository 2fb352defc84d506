"""What the legs found, as one table and as JSON.

Never measures anything; the peers' figures stand here as they were measured once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tests.conformance.legs import COLUMNS, Report

PEERS: Final[Mapping[str, tuple[str, ...]]] = {
    "fastmcp 4.1.6, create_proxy": ("27/32", "26/30", "28/33", "33/37", "35/40"),
    "the same, its host and origin protection on": ("28/32", "27/30", "-", "34/37", "-"),
    "mcp-proxy 0.13.0, stdio server": ("25/32", "23/30", "26/33", "-", "5/40"),
    "mcp-proxy 0.13.0 twice, HTTP server": ("25/32", "23/30", "26/33", "-", "-"),
    "ContextForge 1.0.7.post20260921": ("20/32", "18/30", "21/33", "0/37", "0/40"),
}
"""What other gateways reached before the SDK's own everything server, in the order of the heads.

Measured on 2026-11-30; that server has no tasks, so nothing of that extension was counted.
"""

_WIDTH: Final = 44
_TOLD: Final = 240


def table(reports: Sequence[Report]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield _line(*heads())
    for name, cells in rows(reports):
        yield _line(name, cells)
    yield ""
    for report in clients(reports):
        yield f"{report.key + ', through ' + report.front:<{_WIDTH}}  {report.figure}"


def findings(reports: Iterable[Report]) -> Iterator[str]:
    """Yield a line for each scenario that failed, and for calls that left no trace.

    Of a leg that is not required only what is scored is told.
    """
    for report in reports:
        place = f"{report.key}, {report.front}{'' if report.required else ' (not required)'}"
        for scenario in (*report.scored, *(report.others if report.required else ())):
            if scenario.failures:
                first, *more = scenario.failures
                rest = f" (and {len(more)} more)" if more else ""
                yield f"{place}: {scenario.name}: {first[:_TOLD]}{rest}"
        for words in report.complaints:
            yield f"{place}: rows and spans: {words}"


def as_json(reports: Iterable[Report]) -> list[dict[str, Any]]:
    """Return the reports for programs."""
    return [
        {
            "leg": report.key,
            "front": report.front,
            "scored": report.figure,
            "with_unscored": report.wider,
            "requests": report.traces[0],
            "audit_rows": report.traces[1],
            "spans": report.traces[2],
            "complaints": list(report.complaints),
            "scenarios": [
                {
                    "name": each.name,
                    "passed": each.passed,
                    "failures": list(each.failures),
                    "warnings": list(each.warnings),
                }
                for each in (*report.scored, *report.others)
            ],
        }
        for report in reports
    ]


def heads() -> tuple[str, list[str]]:
    """Return the head of the first column, and those of the figures."""
    of = [[column.title, f"{column.title} all"] for column in COLUMNS]
    return "in front of the server", [of[0][0], *of[1], *of[2]]


def rows(reports: Sequence[Report]) -> Iterator[tuple[str, list[str]]]:
    """Yield each front with its figures, the peers' last."""
    keys = [column.key for column in COLUMNS]
    for front in dict.fromkeys(report.front for report in reports if report.key in keys):
        of = {report.key: report for report in reports if report.front == front}
        found = [(of[key].figure, of[key].wider) if key in of else ("-", "-") for key in keys]
        yield front, [found[0][0], *found[1], *found[2]]
    for name, figures in PEERS.items():
        yield name, list(figures)


def clients(reports: Iterable[Report]) -> list[Report]:
    """Return the reports of client scenarios."""
    return [report for report in reports if report.key.startswith("client ")]


def _line(name: str, cells: Iterable[str]) -> str:
    return f"{name:<{_WIDTH}}  " + "  ".join(f"{cell:>14}" for cell in cells)
