"""What happened in a run: what clients did and heard, what servers ran, what was audited.

Never judges anything; `checker` does.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

BEFORE, AFTER = 1.0, 20.0
"""Seconds before and after the kill of a worker in which calls may be lost, and their rows."""


def struck(kills: Iterable[float], begin: float, end: float) -> bool:
    """Tell whether something that took place meanwhile may have met the end of a worker."""
    return any(begin < kill + AFTER and end > kill - BEFORE for kill in kills)


class What(StrEnum):
    """What a client did, or heard, in one round of a call."""

    INVOKE = "invoke"
    CANCEL = "cancel"
    """It has asked for the round to be cancelled."""
    CANCELLED = "cancelled"
    """The gateway has taken that."""
    REPLY = "reply"
    ASKED = "asked"
    """The reply asks for input: another round with the same token follows."""
    ERROR = "error"
    ENDED = "ended"
    """The reply ended without an answer."""
    LEFT = "left"
    """The client hung up."""
    BROKEN = "broken"
    """The gateway hung up, or answered with what is no reply."""


LAST = frozenset({What.REPLY, What.ASKED, What.ERROR, What.ENDED, What.LEFT, What.BROKEN})
"""What ends a round; of these each has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that a client did or heard; `at` is seconds since the begin.

    `token` is in the arguments of the call and in no other's, `trace` is the round's own. `code`,
    `text` and `outcome` are those of an error, `tokens` all that were found in what came.
    """

    at: float
    what: What
    token: str
    trace: str
    client: str = ""
    server: str = ""
    tool: str = ""
    code: str = ""
    text: str = ""
    outcome: str = ""
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One row of a server's own log: a call `came`, or `ran`, for a token."""

    server: str
    what: str
    tool: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One audit row of a call."""

    trace: str
    server: str
    tool: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that is known of a run.

    `controls` are the servers that nothing was done to, `kills` the times when a worker was killed.
    """

    events: tuple[Event, ...]
    ran: tuple[Ran, ...] = ()
    rows: tuple[Row, ...] = ()
    controls: frozenset[str] = frozenset()
    kills: tuple[float, ...] = ()

    def lines(self, token: str) -> list[str]:
        """Return all that is known of one token, in the order of time where there is one."""
        events = sorted((e for e in self.events if e.token == token), key=lambda one: one.at)
        traces = {event.trace for event in events}
        return [
            *(_line(event) for event in events),
            *(f"{one.server} {one.what} {one.tool}" for one in self.ran if one.token == token),
            *(f"audit {row.trace[:8]} {row.outcome}" for row in self.rows if row.trace in traces),
        ]


def read_ran(server: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[Ran]:
    """Return what of a server's log belongs to calls with a token."""
    for row in rows:
        token = row.get("arguments", {}).get("token") if row["what"] in {"came", "ran"} else None
        if token:
            yield Ran(server=server, what=row["what"], tool=row["tool"], token=str(token))


def write(history: History, path: Path) -> None:
    """Write the events of a history, one JSON line each."""
    with path.open("w", encoding="utf-8") as lines:
        for event in history.events:
            lines.write(json.dumps(asdict(event)) + "\n")


def _line(event: Event) -> str:
    said = " ".join(part for part in (event.code, event.text[:160]) if part)
    where = f"{event.client} → {event.server}/{event.tool}"
    return f"{event.at:9.3f} {event.what.value:9} {where} {event.trace[:8]} {said}".rstrip()
