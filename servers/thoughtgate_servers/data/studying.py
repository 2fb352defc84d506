"""Statistics of columns: counts, moments, percentiles, and how columns go together.

Never sees where the values come from.
"""

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations
from typing import Any

from thoughtgate_servers.data.cells import number, plain

_PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
_FREQUENT = 5
_CORRELATED = 12
"""Numeric columns that are held against one another; pairs grow with the square."""


def study(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return what there is to say about a column."""
    present = [value for value in values if value is not None]
    numeric = bool(present) and all(_is_number(value) for value in present)
    finite = sorted(one for value in present if (one := number(value)) is not None)
    found = {
        "name": name,
        "numeric": numeric,
        "count": len(present),
        "nulls": len(values) - len(present),
        "not_finite": len(present) - len(finite) if numeric else 0,
        "distinct": len({repr(value) for value in present}),
        "mean": None,
        "stddev": None,
        "min": None,
        "max": None,
        "percentiles": {},
        "frequent": [],
    }
    if numeric:
        return {**found, **_moments(present, finite)}
    return {**found, **_ends(present), "frequent": _frequent(present)}


def correlations(columns: Sequence[tuple[str, Sequence[Any]]]) -> list[dict[str, Any]]:
    """Return Pearson's r of each pair of numeric columns, strongest first."""
    found = []
    for (a, left), (b, right) in combinations(columns[:_CORRELATED], 2):
        pairs = [
            (x, y)
            for one, other in zip(left, right, strict=True)
            if (x := number(one)) is not None and (y := number(other)) is not None
        ]
        r = _pearson(pairs)
        if r is not None:
            found.append({"a": a, "b": b, "r": r, "rows": len(pairs)})
    return sorted(found, key=lambda one: -abs(one["r"]))


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the ordered values lie, between neighbours."""
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    if ordered[low] == ordered[high]:
        return ordered[low]
    part = place - low
    return ordered[low] * (1 - part) + ordered[high] * part


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _moments(present: Sequence[Any], finite: Sequence[float]) -> dict[str, Any]:
    if not finite:
        return {}
    # the ends come from the values themselves: a decimal stays exact
    exact = [value for value in present if number(value) is not None]
    return {
        "mean": _finite(_mean(finite)),
        "stddev": _finite(_deviation(finite)),
        "min": plain(min(exact)),
        "max": plain(max(exact)),
        "percentiles": {f"p{n}": percentile(finite, n / 100) for n in _PERCENTILES},
    }


def _mean(values: Sequence[float]) -> float | None:
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return None


def _deviation(values: Sequence[float]) -> float | None:
    mean = _mean(values)
    if mean is None or len(values) < 2:
        return None
    try:
        return math.sqrt(math.fsum((one - mean) ** 2 for one in values) / (len(values) - 1))
    except OverflowError:
        return None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _ends(present: Sequence[Any]) -> dict[str, Any]:
    try:
        return {"min": plain(min(present)), "max": plain(max(present))} if present else {}
    except TypeError:
        # values of several kinds, or of one that has no order
        return {}


def _frequent(present: Sequence[Any]) -> list[dict[str, Any]]:
    first = {repr(value): value for value in reversed(present)}
    counted = Counter(repr(value) for value in present).most_common(_FREQUENT)
    return [{"value": plain(first[key]), "count": count} for key, count in counted]


def _pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < 2:
        return None
    try:
        left = _centred([x for x, _ in pairs])
        right = _centred([y for _, y in pairs])
        below = math.sqrt(math.fsum(x * x for x in left)) * math.sqrt(
            math.fsum(y * y for y in right)
        )
        r = math.fsum(x * y for x, y in zip(left, right, strict=True)) / below
    except (OverflowError, ZeroDivisionError):
        return None
    return max(-1.0, min(1.0, r)) if math.isfinite(r) else None


def _centred(values: Sequence[float]) -> list[float]:
    mean = math.fsum(values) / len(values)
    return [one - mean for one in values]
