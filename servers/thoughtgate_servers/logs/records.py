"""One log record as the formats hand it over: when, how bad, which type, what it says.

Never reads a file; severities are the eight of syslog, most severe first.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

SEVERITIES = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug")

_RANKS = {
    **{name: rank for rank, name in enumerate(SEVERITIES)},
    "emerg": 0, "panic": 0, "crit": 2, "fatal": 2, "severe": 3, "err": 3, "exception": 3,
    "warn": 4, "success": 6, "information": 6, "trace": 7, "verbose": 7,
}  # fmt: skip

MAX_TYPE = 120
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record that starts on a line.

    `kind` names the format; `rank` is an index into `SEVERITIES`; `when` is the time as written,
    parsed by `clock` only when somebody asks; `open` says that following lines (a traceback, more
    of the message) may belong to it.
    """

    kind: str
    rank: int
    type: str
    message: str
    when: str
    clock: Callable[[str], datetime | None]
    open: bool = False


def rank(name: str) -> int | None:
    """Return the severity of a level's name in any of the usual spellings, None if unknown."""
    return _RANKS.get(name.lower())


def clean(text: str, limit: int) -> str:
    """Return `text` without control characters (they could forge lines), at most `limit` long."""
    return _CONTROL.sub(" ", text[: limit * 2]).strip()[:limit]


def iso_clock(text: str) -> datetime | None:
    """Parse an ISO 8601 time in any spelling that logs use."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def instant(when: datetime) -> float:
    """Return the order of a time among others: times without an offset count as UTC."""
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
