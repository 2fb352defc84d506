"""Times as callers write them and as results show them.

Never guesses a zone: a time without an offset is UTC.
"""

import time
from datetime import UTC, datetime

from thoughtgate_servers.table import ToolFailed

DAY = 86_400.0
_FIRST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def bound(text: str | None, name: str) -> float | None:
    """Return the epoch seconds of an ISO 8601 date or time.

    Raises:
        ToolFailed: It is neither.
    """
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ToolFailed(
            message=f"{name} must be an ISO 8601 date or time, such as 2026-05-01T08:00:00Z"
        ) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def days_ago(days: float) -> float:
    """Return the epoch seconds `days` before now."""
    return time.time() - days * DAY


def moment(seconds: float) -> datetime:
    """Return epoch seconds as a time in UTC; beyond the years 1 to 9999 the nearest there is."""
    return datetime.fromtimestamp(min(max(seconds, _FIRST), _LAST), UTC)


def shown(seconds: float) -> str:
    """Return epoch seconds as an ISO 8601 time in UTC."""
    return moment(seconds).isoformat(timespec="seconds").replace("+00:00", "Z")


def size(count: int) -> str:
    """Return a number of bytes for people."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError
