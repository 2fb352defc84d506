"""The report as Markdown: headings, text, tables and links to the charts.

Never lets a value become markup: cells and headings are escaped.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thoughtgate_servers.report.chart import plain

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,]\d+)?(Z|[+-]\d\d:?\d\d)?")
_UNREADABLE = 20
"""How many files that were not read whole are named."""

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~])")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table; `chart` is the file name of its chart, empty for none."""

    heading: str
    rows: Sequence[Row]
    text: str = ""
    chart: str = ""


def document(title: str, summary: str, sections: Sequence[Section], *, read: str = "") -> str:
    """Return the whole report; `read` says what the counts rest on, as `basis` words it."""
    parts = [f"# {inline(title)}"]
    if summary:
        parts.append(paragraph(summary))
    if read:
        parts.append(read)
    for section in sections:
        if section.heading:
            parts.append(f"## {inline(section.heading)}")
        if section.text:
            parts.append(paragraph(section.text))
        if section.chart:
            alternative = inline(section.heading or title)
            parts.append(f"![{alternative}]({section.chart})")
        parts.append(table(section.rows))
    return "\n\n".join(parts) + "\n"


def table(rows: Sequence[Row]) -> str:
    """Return rows of counts as a table, with only the columns that some row fills."""
    if not rows:
        return "(no rows)"
    total = sum(row["count"] for row in rows)
    dated = any(row.get("first_seen") or row.get("last_seen") for row in rows)
    head = ["What", "Count", "Share"] + (["First seen", "Last seen"] if dated else [])
    lines = [_line(head), "|---|---:|---:|" + ("---|---|" if dated else "")]
    for row in rows:
        share = row.get("share", row["count"] / total if total else 0)
        cells = [inline(row["key"]), str(row["count"]), f"{share:.1%}"]
        if dated:
            cells += [inline(moment(row.get(name) or "")) for name in ("first_seen", "last_seen")]
        lines.append(_line(cells))
    lines.append(_line(["**Total**", f"**{total}**", ""] + (["", ""] if dated else [])))
    return "\n".join(lines)


def basis(files: Sequence[Row], rows: Sequence[Row]) -> str:
    """Return what the counts rest on: what was read, the time it covers, what is missing."""
    lines = sum(file["lines"] for file in files)
    parts = [f"Read: {len(files)} files, {lines} lines."]
    odd = sum(file.get("unrecognised_lines", 0) for file in files)
    if odd:
        parts.append(f"{odd} lines are of no known format.")
    first = min((row["first_seen"][:19] for row in rows if row.get("first_seen")), default="")
    last = max((row["last_seen"][:19] for row in rows if row.get("last_seen")), default="")
    if first and last:
        parts.append(f"First error {inline(moment(first))}, last {inline(moment(last))}.")
    broken = [file for file in files if file.get("problem")]
    parts.append("Not read to the end:" if broken else "Each was read to its end.")
    items = [f"- {inline(file['path'])}: {inline(file['problem'])}" for file in broken]
    more = len(items) - _UNREADABLE
    shown = items[:_UNREADABLE] + ([f"- … and {more} more"] if more > 0 else [])
    return " ".join(parts) + ("\n\n" + "\n".join(shown) if shown else "")


def moment(text: str) -> str:
    """Return a time of ISO 8601 to the second; any other text as it is."""
    found = _TIME.fullmatch(text)
    if not found:
        return text
    offset = found[3] or ""
    return f"{found[1]} {found[2]}{'Z' if offset in {'+00:00', '+0000'} else offset}"


def inline(text: str) -> str:
    """Return `text` on one line with its markup escaped."""
    return _MARKUP.sub(r"\\\1", plain(text))


def paragraph(text: str) -> str:
    """Return `text` with its paragraphs kept and its markup escaped."""
    blocks = re.split(r"\n\s*\n", text.replace("\r\n", "\n"))
    return "\n\n".join(inline(block.replace("\n", " ")) for block in blocks if block.strip())


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
