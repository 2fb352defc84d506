"""Charts as SVG text: bars, lines, points and histograms on two axes, nothing random.

Never holds markup from its input: every text is escaped and stripped of control characters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from thoughtgate_servers.report.chart import fitted, plain

_WIDTH, _HEIGHT = 820, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 24, 64, 60
_COLOURS = ("#2f6f9f", "#c2571a", "#3f7d3f", "#8a4f9e", "#a3801c", "#b03a5b")
_GREY, _RULE, _INK = "#59636e", "#d1d9e0", "#1f2328"
_FONT = "system-ui, 'Noto Sans', 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif"
_LABELS = 10
"""Labels along the bottom that do not run into one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Named values, one for each place along the bottom; None leaves a gap."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From values to places on the picture; `ticks` are round."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a value."""
        # halved: the distance of the two largest doubles is no double
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return round(self.start + share * (self.end - self.start), 2)

    def ticks(self) -> list[float]:
        """Return some round values between the ends."""
        step = _step(self.low, self.high)
        first = math.ceil(self.low / step)
        last = math.floor(self.high / step)
        return [number * step for number in range(first, min(last, first + 12) + 1)]


def bars(title: str, labels: Sequence[str], series: Sequence[Series]) -> str:
    """Return a bar for each value, grouped by label; they stand on zero."""
    up = _vertical(series, with_zero=True)
    parts = _frame(title, series, up)
    room = (_WIDTH - _LEFT - _RIGHT) / max(len(labels), 1)
    width = max(room * 0.8 / max(len(series), 1), 0.5)
    floor = up.at(0)
    for number, one in enumerate(series):
        for place, value in enumerate(one.values):
            if value is not None:
                x = _LEFT + place * room + room * 0.1 + number * width
                top = up.at(value)
                said = f"{labels[place]}: {_shown(value)}"
                parts.append(
                    f'<rect x="{x:.2f}" y="{min(top, floor)}" width="{width:.2f}" '
                    f'height="{abs(floor - top):.2f}" fill="{_colour(number)}">'
                    f"<title>{_text(said)}</title></rect>"
                )
    places = [_LEFT + (place + 0.5) * room for place in range(len(labels))]
    return _closed(parts, _named(labels, places))


def lines(title: str, labels: Sequence[str], series: Sequence[Series]) -> str:
    """Return a line for each series over places that are equally far apart."""
    up = _vertical(series, with_zero=False)
    across = Scale(low=0, high=max(len(labels) - 1, 1), start=_LEFT, end=_WIDTH - _RIGHT)
    parts = _frame(title, series, up)
    for number, one in enumerate(series):
        path, pen = "", "M"
        for place, value in enumerate(one.values):
            if value is None:
                pen = "M"
                continue
            path += f"{pen}{across.at(place)} {up.at(value)}"
            # a point that stands alone is drawn by a line of no length
            path += "h0" if pen == "M" else ""
            pen = "L"
        if path:
            parts.append(
                f'<path d="{path}" fill="none" stroke="{_colour(number)}" stroke-width="2" '
                'stroke-linecap="round" stroke-linejoin="round"/>'
            )
    return _closed(parts, _named(labels, [across.at(place) for place in range(len(labels))]))


def points(title: str, across_by: Series, series: Sequence[Series]) -> str:
    """Return a point for each pair of values."""
    up = _vertical(series, with_zero=False)
    low, high = _ends([across_by])
    across = Scale(low=low, high=high, start=_LEFT, end=_WIDTH - _RIGHT)
    parts = _frame(title, series, up)
    for number, one in enumerate(series):
        for x, y in zip(across_by.values, one.values, strict=True):
            if x is not None and y is not None:
                parts.append(
                    f'<circle cx="{across.at(x)}" cy="{up.at(y)}" r="3" fill-opacity="0.7" '
                    f'fill="{_colour(number)}"/>'
                )
    ticks = across.ticks()
    foot = _named([_shown(tick) for tick in ticks], [across.at(tick) for tick in ticks])
    return _closed(parts, [*foot, _under(across_by.name)])


def histogram(title: str, name: str, values: Sequence[float], bins: int) -> str:
    """Return how many values lie in each of `bins` equal parts."""
    low, high = _ends([Series(name=name, values=values)])
    across = Scale(low=low, high=high, start=_LEFT, end=_WIDTH - _RIGHT)
    counts = [0] * bins
    for value in values:
        share = (value / 2 - low / 2) / (high / 2 - low / 2)
        counts[min(int(share * bins), bins - 1)] += 1
    tall = Series(name="values", values=[float(count) for count in counts])
    up = _vertical([tall], with_zero=True)
    parts = _frame(title, [], up)
    room = (_WIDTH - _LEFT - _RIGHT) / bins
    floor = up.at(0)
    for place, count in enumerate(counts):
        top = up.at(count)
        parts.append(
            f'<rect x="{_LEFT + place * room:.2f}" y="{top}" width="{max(room - 1, 0.5):.2f}" '
            f'height="{floor - top:.2f}" fill="{_colour(0)}"><title>{count}</title></rect>'
        )
    ticks = across.ticks()
    foot = _named([_shown(tick) for tick in ticks], [across.at(tick) for tick in ticks])
    return _closed(parts, [*foot, _under(name)])


def _vertical(series: Sequence[Series], *, with_zero: bool) -> Scale:
    low, high = _ends(series)
    if with_zero:
        low, high = min(low, 0), max(high, 0)
        low, high = (low, high) if low < high else (0, 1)
    return Scale(low=low, high=high, start=_HEIGHT - _BOTTOM, end=_TOP)


def _ends(series: Sequence[Series]) -> tuple[float, float]:
    """Return the smallest and the largest value, always apart."""
    values = [value for one in series for value in one.values if value is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low < high:
        return low, high
    apart = max(abs(low) * 0.1, 1.0)
    return max(low - apart, -1.7e308), min(high + apart, 1.7e308)


def _step(low: float, high: float) -> float:
    raw = (high / 2 - low / 2) / 2.5
    power = 10.0 ** math.floor(math.log10(raw)) if raw > 1e-300 else 1e-300
    return next((power * part for part in (1, 2, 5, 10) if power * part >= raw), raw)


def _frame(title: str, series: Sequence[Series], up: Scale) -> list[str]:
    frame = f'width="{_WIDTH}" height="{_HEIGHT}"'
    shown = escape(fitted(plain(title), 80))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {frame} viewBox="0 0 {_WIDTH} {_HEIGHT}"',
        f'     role="img" font-family="{_FONT}" font-size="13">',
        f"<title>{_text(title)}</title>",
        f'<rect {frame} fill="#ffffff"/>',
        f'<text x="16" y="30" font-size="18" font-weight="600" fill="{_INK}">{shown}</text>',
    ]
    for tick in up.ticks():
        y = up.at(tick)
        parts.append(
            f'<path d="M{_LEFT} {y}H{_WIDTH - _RIGHT}" stroke="{_RULE}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.2f}" text-anchor="end" fill="{_GREY}">'
            f"{_shown(tick)}</text>"
        )
    for number, one in enumerate(series):
        x = _LEFT + number * 120
        parts.append(
            f'<rect x="{x}" y="42" width="10" height="10" fill="{_colour(number)}"/>'
            f'<text x="{x + 14}" y="52" fill="{_INK}">{escape(fitted(plain(one.name), 13))}</text>'
        )
    return parts


def _named(labels: Sequence[str], places: Sequence[float]) -> list[str]:
    apart = max(math.ceil(len(labels) / _LABELS), 1)
    return [
        f'<text x="{places[number]:.2f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle" '
        f'fill="{_GREY}">{escape(fitted(plain(labels[number]), 12))}</text>'
        for number in range(0, len(labels), apart)
    ]


def _under(name: str) -> str:
    return (
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 14}" text-anchor="middle" '
        f'fill="{_INK}">{escape(fitted(plain(name), 60))}</text>'
    )


def _closed(parts: Sequence[str], foot: Sequence[str]) -> str:
    return "\n".join([*parts, *foot, "</svg>"]) + "\n"


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _shown(value: float) -> str:
    return f"{value:.6g}"


def _text(text: str) -> str:
    return escape(plain(text))
