"""Bar charts as SVG text: one bar per row, labels in any script, nothing random.

Never holds markup from its input: labels are escaped and stripped of control characters.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from xml.sax.saxutils import escape

_LABEL, _BAR, _VALUE, _ROW, _TOP, _FOOT = 300, 420, 100, 26, 56, 16
_WIDTH = _LABEL + _BAR + _VALUE
_FONT = "system-ui, 'Noto Sans', 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif"
_SIZE = 13
_LABEL_COLUMNS = 40
_PLOT, _LEFT, _RIGHT, _AXIS, _APART = 220, 56, 16, 34, 80
_FEW, _MOST_DAYS = 40, 800
# not allowed in XML 1.0, or able to turn the direction of what follows
_ODD = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One row: its label and how many."""

    label: str
    count: int


def bar_chart(title: str, bars: Sequence[Bar], *, left_out: int = 0) -> str:
    """Return the chart; the longest bar fills the width.

    An empty chart says so, and so does one from which rows were left out.
    """
    parts = _opening(title, _TOP + max(len(bars) + bool(left_out), 1) * _ROW + _FOOT)
    longest = max((bar.count for bar in bars), default=0)
    for number, bar in enumerate(bars):
        parts.append(_bar(bar, _TOP + number * _ROW, longest))
    if not bars:
        parts.append(f'<text x="16" y="{_TOP + 18}" fill="#59636e">nothing to show</text>')
    if left_out:
        foot = _TOP + len(bars) * _ROW + 17
        parts.append(f'<text x="{_LABEL}" y="{foot}" fill="#59636e">… and {left_out} more</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def days_of(bars: Sequence[Bar]) -> list[date]:
    """Return the days that the labels say, when they are too many for rows; else nothing."""
    if len(bars) <= _FEW:
        return []
    try:
        days = [date.fromisoformat(bar.label) for bar in bars]
    except ValueError:
        return []
    return days if (max(days) - min(days)).days < _MOST_DAYS else []


def day_chart(title: str, bars: Sequence[Bar], days: Sequence[date]) -> str:
    """Return a chart with one column per day, along a line of time that has days without, too."""
    first, last = min(days), max(days)
    step = (_WIDTH - _LEFT - _RIGHT) / ((last - first).days + 1)
    highest = max(bar.count for bar in bars)
    floor = _TOP + _PLOT
    parts = _opening(title, floor + _AXIS)
    for y, count in ((_TOP, highest), (floor, 0)):
        parts.append(
            f'<path d="M{_LEFT} {y}H{_WIDTH - _RIGHT}" stroke="#d1d9e0"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end" fill="#59636e">{count}</text>'
        )
    labelled = -_APART
    for bar, day in sorted(zip(bars, days, strict=True), key=lambda pair: pair[1]):
        x = round(_LEFT + (day - first).days * step)
        height = max(round(bar.count * _PLOT / highest), 1) if highest else 1
        parts.append(
            f"<g><title>{day}: {bar.count}</title>"
            f'<rect x="{x}" y="{floor - height}" width="{max(round(step) - 1, 1)}" '
            f'height="{height}" fill="#2f6f9f"/></g>'
        )
        if x - labelled >= _APART and x <= _WIDTH - _APART:
            parts.append(f'<text x="{x}" y="{floor + 20}" fill="#59636e">{day}</text>')
            labelled = x + _APART
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _opening(title: str, height: int) -> list[str]:
    shown = plain(title)
    frame = f'width="{_WIDTH}" height="{height}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {frame} viewBox="0 0 {_WIDTH} {height}"',
        f'     role="img" font-family="{_FONT}" font-size="{_SIZE}">',
        f"<title>{escape(shown)}</title>",
        f'<rect {frame} fill="#ffffff"/>',
        '<text x="16" y="32" font-size="18" font-weight="600" fill="#1f2328">',
        f"{escape(fitted(shown, 80))}</text>",
    ]


def plain(text: str) -> str:
    """Return `text` on one line, without characters that could disturb a document."""
    return _ODD.sub(" ", text).strip()


def fitted(text: str, columns: int) -> str:
    """Return `text` cut to `columns` columns of a fixed grid; wide characters take two."""
    used = 0
    kept: list[str] = []
    for character in text:
        used += 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
        if used > columns:
            return "".join(kept[:-1]) + "…"
        kept.append(character)
    return text


def _bar(bar: Bar, top: int, longest: int) -> str:
    label = plain(bar.label)
    width = round(bar.count * _BAR / longest) if longest else 0
    middle = top + 17
    return (
        f"<g><title>{escape(label)}: {bar.count}</title>"
        f'<text x="{_LABEL - 8}" y="{middle}" text-anchor="end" fill="#1f2328">'
        f"{escape(fitted(label, _LABEL_COLUMNS))}</text>"
        f'<rect x="{_LABEL}" y="{top + 3}" width="{max(width, 1)}" height="{_ROW - 6}" '
        'rx="2" fill="#2f6f9f"/>'
        f'<text x="{_LABEL + max(width, 1) + 6}" y="{middle}" fill="#59636e">{bar.count}</text></g>'
    )
