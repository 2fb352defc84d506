"""What a benchmark found: its rows, its bars, the machine; printed, and kept as JSON.

Never judges by itself what is missing: a bar without a number is missed.
"""

import json
import os
import platform
import re
import subprocess
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.processes import end_on_signal

OUT = Path(__file__).resolve().parent / "out"
PEERS = Path(__file__).resolve().parent / "peers"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A promise in numbers: what was measured may be at most, or must be at least, `limit`."""

    name: str
    measured: float | None
    limit: float
    unit: str = ""
    least: bool = False

    @property
    def passed(self) -> bool:
        """Whether it holds."""
        if self.measured is None:
            return False
        return self.measured >= self.limit if self.least else self.measured <= self.limit

    def __str__(self) -> str:
        """Return one line for the terminal."""
        sign = "≥" if self.least else "≤"
        found = "nothing" if self.measured is None else f"{self.measured:.3f}"
        verdict = "PASS" if self.passed else "FAIL"
        return f"{verdict}  {self.name}: {found} {sign} {self.limit:.3f} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that one benchmark says."""

    name: str
    title: str
    rows: Sequence[Row]
    bars: Sequence[Bar]
    errors: int = 0


def failed(rows: Sequence[Row]) -> int:
    """Return how many calls failed in all rows."""
    return sum(row["errors"] for row in rows)


def arguments(title: str, *, rounds: int = 5) -> ArgumentParser:
    """Return a parser with what every benchmark takes; from here on SIGTERM ends it cleanly."""
    end_on_signal()
    parser = ArgumentParser(description=title)
    parser.add_argument("--rounds", type=positive, default=rounds, help="interleaved rounds")
    parser.add_argument("--quick", action="store_true", help="one small round, to try it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed too")
    return parser


def positive(text: str) -> int:
    """Return a number of what there must be one of at least; argparse says what it wants."""
    number = int(text)
    if number < 1:
        message = f"{text} is less than 1"
        raise ArgumentTypeError(message)
    return number


def document(report: Report, given: Namespace) -> dict[str, Any]:
    """Return a report as what is written: with the bars judged, and the machine."""
    return {
        "benchmark": report.name,
        "title": report.title,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": given.quick,
        "rounds": given.rounds,
        "machine": machine(),
        "rows": list(report.rows),
        "bars": [{**asdict(bar), "passed": bar.passed} for bar in report.bars],
        "errors": report.errors,
    }


def finish(report: Report, given: Namespace) -> int:
    """Write and print a report; 1 when a call failed, or a bar is missed and that counts."""
    OUT.mkdir(exist_ok=True)
    text = json.dumps(document(report, given), indent=1)
    name = f"{report.name}-quick" if given.quick else report.name
    file = OUT / f"{name}.json"
    file.write_text(text + "\n", encoding="utf-8")
    print(text if given.json else "\n".join([*table(report.rows), "", *map(str, report.bars)]))
    print(f"written to {file.relative_to(OUT.parent.parent)}", file=sys.stderr)
    if given.quick and not all(bar.passed for bar in report.bars):
        print("a quick round shows that it works; its numbers say little", file=sys.stderr)
    if report.errors:
        print(f"{report.errors} calls failed", file=sys.stderr)
    missed = given.strict and not all(bar.passed for bar in report.bars)
    return 1 if report.errors or missed else 0


def table(rows: Sequence[Row]) -> list[str]:
    """Return rows as lines of a terminal; a column that a row lacks stays empty there."""
    columns = [name for name in dict.fromkeys(key for row in rows for key in row) if name != "each"]
    cells = [columns, *([_cell(row.get(name)) for name in columns] for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(columns))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.1f}"


def machine() -> dict[str, str]:
    """Return what the numbers depend on."""
    found = re.search(r"^model name\s*: (.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+)", _read("/proc/meminfo"), re.MULTILINE)
    return {
        "cpu": found[1].strip() if found else platform.processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{int(memory[1]) // 2**20} GiB" if memory else "",
        "commit": _commit(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("thoughtgate", "mcp", "uvicorn", "uvloop")},
        **peer_versions(),
    }


def peer_versions() -> dict[str, str]:
    """Return the version of each peer, as its lock file says."""
    found = {}
    for lock in sorted(PEERS.glob("*.txt")):
        pins = dict(
            line.partition(";")[0].strip().split("==")
            for line in lock.read_text(encoding="utf-8").splitlines()
        )
        found[lock.stem] = f"{pins[lock.stem]} (SDK {pins['mcp']})"
    return found


def _commit() -> str:
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=10"],
        cwd=OUT.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.strip()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
