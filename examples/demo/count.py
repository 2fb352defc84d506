"""Counts the errors of the demo's logs without the tool servers, and compares.

Never imports the product: once from the writer's manifest, once by reading the files its own naive
way; both must agree with the table in the report.

    python count.py MANIFEST.json [REPORT.md]
"""

import argparse
import json
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Counts = Counter[str]


def expected(manifest: dict[str, Any], key: str = "type") -> Counts:
    """Return what the writer knows: errors by `key` in files of the last three months."""
    counts: Counts = Counter()
    for file in manifest["files"]:
        if file["age_days"] < manifest["days"]:
            counts.update(error[key] for error in file["errors"][: file["readable"]])
    return counts


def recounted(manifest: dict[str, Any]) -> Counts:
    """Return what reading the files shows, by rules that know how each file is written."""
    logs = Path(manifest["logs"])
    counts: Counts = Counter()
    oldest = time.time() - manifest["days"] * 86_400
    for path in sorted(logs.rglob("*")):
        if path.is_file() and path.stat().st_mtime >= oldest:
            rule = next(rule for part, rule in RULES if part in path.name)
            counts.update(rule(_lines(path)))
    return counts


def reported(markdown: str) -> Counts:
    """Return the counts of the first table of a report."""
    counts: Counts = Counter()
    for line in markdown.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) > 1 and cells[1].isdigit():
            counts[re.sub(r"\\(.)", r"\1", cells[0])] = int(cells[1])
        elif cells and cells[0] == "**Total**":
            break
    return counts


def differences(left: Counts, right: Counts) -> list[str]:
    """Return a sentence per type that the two count differently."""
    return [
        f"{name}: {left[name]} against {right[name]}"
        for name in sorted(left | right)
        if left[name] != right[name]
    ]


def _lines(path: Path) -> list[str]:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = zlib.decompressobj(wbits=31).decompress(data)
    whole = data.rpartition(b"\n")[0]
    return whole.decode(errors="replace").split("\n")


def _syslog_old(lines: list[str]) -> Iterator[str]:
    for line in lines:
        found = re.match(r"\w{3} [ \d]\d [\d:]{8} web-1 (\w+)", line)
        if found and re.search(r"(?i)\b(error|failed)\b|失败", line):
            yield f"syslog error {found[1]}"


def _syslog_new(lines: list[str]) -> Iterator[str]:
    for line in lines:
        priority, _, rest = line[1:].partition(">1 ")
        severity = int(priority) & 7
        if severity < 4:
            level = ["emerg", "alert", "crit", "error"][severity]
            yield f"syslog {level} {rest.split()[2]}"


def _access(lines: list[str]) -> Iterator[str]:
    for line in lines:
        found = re.search(r' HTTP/1\.1" (5\d\d) ', line)
        if found:
            yield f"nginx {found[1]}"


def _error_log(lines: list[str]) -> Iterator[str]:
    for line in lines:
        level = line[line.index("[") + 1 : line.index("]")]
        if level in {"error", "crit", "alert", "emerg"}:
            yield f"nginx {level}"


def _python(lines: list[str]) -> Iterator[str]:
    """A record goes on until the next line that begins with a date."""
    for record in re.split(r"\n(?=\d{4}-\d\d-\d\d )", "\n".join(lines)):
        found = re.match(r"\S+ \S+ (ERROR|CRITICAL) (\S+): ", record)
        if not found:
            continue
        last = record.rpartition("Traceback (most")[2]
        named = re.search(r"^([A-Za-z_][\w.]*)(?::|$)", last, re.MULTILINE)
        tracing = "Traceback (most" in record
        yield named[1] if tracing and named else f"{found[1]} {found[2]}"


def _json(lines: list[str]) -> Iterator[str]:
    for line in lines:
        value = json.loads(line)
        level = value["level"]
        if level in {"error", "critical", 50, 60}:
            logger = value.get("logger") or value.get("name")
            word = "crit" if level in {"critical", 60} else "error"
            yield value.get("error", {}).get("type") or f"json {word} {logger}"


RULES: tuple[tuple[str, Callable[[list[str]], Iterator[str]]], ...] = (
    ("access", _access),
    ("error.log", _error_log),
    ("shop", _python),
    ("jsonl", _json),
    ("db-1", _syslog_new),
    ("", _syslog_old),
)


def main() -> int:
    """Run as a command: 0 when everything agrees."""
    parser = argparse.ArgumentParser(description="Count the demo's errors independently.")
    parser.add_argument("manifest", type=Path)
    parser.add_argument("report", type=Path, nargs="?")
    given = parser.parse_args()
    manifest = json.loads(given.manifest.read_text(encoding="utf-8"))
    truth = expected(manifest)
    wrong = [f"files, {line}" for line in differences(truth, recounted(manifest))]
    if given.report:
        table = reported(given.report.read_text(encoding="utf-8"))
        wrong += [f"report, {line}" for line in differences(truth, table)]
    for name, count in truth.most_common():
        print(f"{count:>6}  {name}")
    print(f"{truth.total():>6}  errors of {len(truth)} types")
    for line in wrong:
        print(f"differs: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
