"""The report as Markdown: headings, text, tables and links to the charts.

Never lets a value become markup: cells and headings are escaped.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thoughtgate_servers.report.chart import plain

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~])")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table; `chart` is the file name of its chart, empty for none."""

    heading: str
    rows: Sequence[Row]
    text: str = ""
    chart: str = ""


def document(title: str, summary: str, sections: Sequence[Section]) -> str:
    """Return the whole report."""
    parts = [f"# {inline(title)}"]
    if summary:
        parts.append(paragraph(summary))
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
            cells += [inline(row.get("first_seen") or ""), inline(row.get("last_seen") or "")]
        lines.append(_line(cells))
    lines.append(_line(["**Total**", f"**{total}**", ""] + (["", ""] if dated else [])))
    return "\n".join(lines)


def inline(text: str) -> str:
    """Return `text` on one line with its markup escaped."""
    return _MARKUP.sub(r"\\\1", plain(text))


def paragraph(text: str) -> str:
    """Return `text` with its paragraphs kept and its markup escaped."""
    blocks = re.split(r"\n\s*\n", text.replace("\r\n", "\n"))
    return "\n\n".join(inline(block.replace("\n", " ")) for block in blocks if block.strip())


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
