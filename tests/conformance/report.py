"""What the legs found, as one table and as JSON.

Never measures anything; the peers' figures stand here as they were measured once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tests.conformance.legs import COLUMNS, NEW, OLD, STABLE, Report

PEERS: Final[Mapping[str, Mapping[str, str]]] = {
    "fastmcp 4.1.6, create_proxy": {STABLE.key: "27/32", OLD.key: "26/30", NEW.key: "33/37"},
    "fastmcp 4.1.6, host and origin protection on": {
        STABLE.key: "28/32",
        OLD.key: "27/30",
        NEW.key: "34/37",
    },
    "mcp-proxy 0.13.0, stdio server": {STABLE.key: "25/32", OLD.key: "23/30"},
    "mcp-proxy 0.13.0 twice, HTTP server": {STABLE.key: "25/32", OLD.key: "23/30"},
    "ContextForge 1.0.7.post20260921, names and login mapped": {
        STABLE.key: "20/32",
        OLD.key: "18/30",
        NEW.key: "0/37",
    },
}
"""Scored scenarios of other gateways before the SDK's own everything server, 2026-11-30."""

_WIDTH: Final = 56
_TOLD: Final = 240


def table(reports: Sequence[Report]) -> Iterator[str]:
    """Yield the lines of the table."""
    heads = [column.title for column in COLUMNS]
    yield _line("in front of the server", heads)
    for name, cells in rows(reports):
        yield _line(name, cells)
    yield ""
    for report in clients(reports):
        yield f"{report.key + ', through ' + report.front:<{_WIDTH}}  {report.figure}"


def findings(reports: Iterable[Report]) -> Iterator[str]:
    """Yield a line for each scenario that failed, and for calls that left no trace."""
    for report in reports:
        place = f"{report.key}, {report.front}"
        for scenario in report.scored:
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


def rows(reports: Sequence[Report]) -> Iterator[tuple[str, list[str]]]:
    """Yield each front with its figures, the peers' last."""
    keys = [column.key for column in COLUMNS]
    fronts = dict.fromkeys(report.front for report in reports if report.key in keys)
    for front in fronts:
        of = {report.key: report.figure for report in reports if report.front == front}
        yield front, [of.get(key, "-") for key in keys]
    for name, figures in PEERS.items():
        yield name, [figures.get(key, "-") for key in keys]


def clients(reports: Iterable[Report]) -> list[Report]:
    """Return the reports of client scenarios."""
    return [report for report in reports if report.key.startswith("client ")]


def _line(name: str, cells: Iterable[str]) -> str:
    return f"{name:<{_WIDTH}}  " + "  ".join(f"{cell:>20}" for cell in cells)
