"""From an answer to a chart: which columns are drawn, and what cannot be.

Never reads more rows than a picture can hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thoughtgate_servers.data import plots
from thoughtgate_servers.data.cells import number, plain
from thoughtgate_servers.data.engines import meant
from thoughtgate_servers.data.plots import Series
from thoughtgate_servers.data.schemas import MAX_SERIES
from thoughtgate_servers.table import ToolFailed

_MOST = {"bar": 120, "line": 5_000, "scatter": 5_000, "histogram": 200_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A chart, and how much of the answer is in it."""

    svg: str
    points: int
    left_out: int


def drawn(asked: Mapping[str, Any], columns: Mapping[str, Sequence[Any]], rows: int) -> Drawn:
    """Return the chart that is asked for.

    Raises:
        ToolFailed: A column is not there, or holds nothing that can be drawn.
    """
    kind, names = asked["kind"], list(columns)
    most = _MOST[kind]
    x = _known(asked["x"], names) if "x" in asked else names[0]
    if kind == "histogram":
        return _histogram(asked, x, columns[x][:most], rows)
    ys = [_known(name, names) for name in asked.get("y", ())] or _numeric(columns, x)
    if not ys:
        raise ToolFailed(message="no numeric column to draw; known are " + ", ".join(names))
    series = [Series(name=y, values=[number(v) for v in columns[y][:most]]) for y in ys]
    points = sum(value is not None for one in series for value in one.values)
    if not points:
        raise ToolFailed(message="no numbers to draw in " + ", ".join(ys))
    title = asked.get("title") or f"{', '.join(ys)} by {x}"
    if kind == "scatter":
        across = Series(name=x, values=[number(value) for value in columns[x][:most]])
        if all(value is None for value in across.values):
            raise ToolFailed(message=f"a scatter chart needs numbers in {x}, too")
        svg = plots.points(title, across, series)
        points = sum(
            a is not None and b is not None
            for one in series
            for a, b in zip(across.values, one.values, strict=True)
        )
    else:
        labels = ["" if value is None else str(plain(value)) for value in columns[x][:most]]
        svg = (plots.bars if kind == "bar" else plots.lines)(title, labels, series)
    return Drawn(svg=svg, points=points, left_out=rows * len(ys) - points)


def _histogram(asked: Mapping[str, Any], x: str, values: Sequence[Any], rows: int) -> Drawn:
    finite = [one for value in values if (one := number(value)) is not None]
    if not finite:
        raise ToolFailed(message=f"no numbers to draw in {x}")
    title = asked.get("title") or f"Distribution of {x}"
    svg = plots.histogram(title, x, finite, asked.get("bins", 20))
    return Drawn(svg=svg, points=len(finite), left_out=rows - len(finite))


def _known(name: str, names: Sequence[str]) -> str:
    if name not in names:
        raise ToolFailed(message=f"no such column: {name[:100]}{meant(name, names)}")
    return name


def _numeric(columns: Mapping[str, Sequence[Any]], x: str) -> list[str]:
    return [
        name
        for name, values in columns.items()
        if name != x and any(number(value) is not None for value in values)
    ][:MAX_SERIES]
