"""Puts what benchmarks found into the page about performance, so that no number is typed by hand.

Never measures anything, and leaves alone what no file was given for.

    python -m benchmarks.table benchmarks/out/*.json
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "performance.md"
HIDDEN = {"each", "calls"}
"""Columns that would only fill the page."""


def main(files: Sequence[str]) -> int:
    """Render each file into its place; 1 when the page has no place for one."""
    text = PAGE.read_text(encoding="utf-8")
    for file in files:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
        if found["quick"]:
            print(f"{file}: a quick run is for trying, it is left out", file=sys.stderr)
            continue
        begin, end = (f"<!-- {word} {found['benchmark']} -->" for word in ("begin", "end"))
        before, began, rest = text.partition(begin)
        _, ended, after = rest.partition(end)
        if not (began and ended):
            print(f"{PAGE.name} has no place for {found['benchmark']}", file=sys.stderr)
            return 1
        text = f"{before}{begin}\n\n{rendered(found)}\n\n{end}{after}"
    PAGE.write_text(text, encoding="utf-8")
    return 0


def rendered(found: Mapping[str, Any]) -> str:
    """Return a run as Markdown: when and where, the rows, the promises."""
    kept = sum(bar["passed"] for bar in found["bars"])
    facts = ", ".join(f"{name} {value}" for name, value in found["machine"].items() if value)
    failed = f" **{found['errors']} calls failed.**" if found["errors"] else ""
    return "\n".join([
        f"Run of {found['when']}, {found['rounds']} rounds: {facts}.{failed}",
        "",
        *_rows(found["rows"]),
        "",
        f"{kept} of {len(found['bars'])} promises kept:",
        "",
        "| promise | measured | promised | kept |",
        "|---|---|---|---|",
        *map(_bar, found["bars"]),
    ])


def _rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    columns = list(dict.fromkeys(name for row in rows for name in row if name not in HIDDEN))
    if not any(row.get("errors") for row in rows):
        columns = [name for name in columns if name != "errors"]
    lines = [[name.replace("_", " ") for name in columns], ["---"] * len(columns)]
    lines += [[_cell(row.get(name)) for name in columns] for row in rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _bar(bar: Mapping[str, Any]) -> str:
    sign = "≥" if bar["least"] else "≤"
    verdict = "yes" if bar["passed"] else "**no**"
    unit = f" {bar['unit']}" if bar["unit"] else ""
    measured, limit = _cell(bar["measured"]), _cell(bar["limit"])
    return f"| {bar['name']} | {measured} | {sign} {limit}{unit} | {verdict} |"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 3
    return f"{value:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
