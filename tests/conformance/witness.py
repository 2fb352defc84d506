"""Whether what a leg called left its traces: an audit row and a SERVER span for each call.

Never counts what the gateway refused by itself against what the server saw.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance.fixture import AUDITED, LONG
from tests.conformance.servers import Front
from thoughtgate.core.errors import CallerError, GateError, UpstreamUnreachable
from thoughtgate.telemetry.otlp import SeenSpan

ROWS: Final = 10000
"""How many rows are asked for; far more than a leg makes."""

METHOD: Final = "method.call"
"""What a row of a method without a name of its own is."""

UNKNOWN: Final = "unknown"
"""How a span calls a method that no server has."""

FOLLOWING: Final = frozenset({"resources/subscribe", "resources/unsubscribe"})
"""What the gateway asks for once for many clients, and takes back by itself when they are gone."""

_NAMED: Final = ("gen_ai.tool.name", "gen_ai.prompt.name", "mcp.resource.uri")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What a leg left, each by `ACTION NAME`: requests at the server, rows, spans.

    `sent` are the rows of calls that went to the server.
    """

    seen: Mapping[str, int]
    rows: Mapping[str, int]
    sent: Mapping[str, int]
    spans: Mapping[str, int]

    @property
    def totals(self) -> tuple[int, int, int]:
        """Return the number of requests at the server, of rows and of spans."""
        return (sum(self.seen.values()), sum(self.rows.values()), sum(self.spans.values()))

    def complaints(self, fits: Callable[[int, int], bool]) -> tuple[str, ...]:
        """Return what does not add up.

        `fits` tells of a number of rows and a number of requests whether they go together: a call
        takes several requests when the gateway asks its client in between, and a client makes
        several calls of one when it is asked itself.
        """
        found = [
            f"{key}: {self.rows[key]} rows and {self.spans.get(key, 0)} spans"
            for key in self.rows
            if self.rows[key] != self.spans.get(key, 0)
        ]
        found += [f"{key}: a span and no row" for key in self.spans if key not in self.rows]
        found += [
            f"{key}: {count} at the server and {self.sent.get(key, 0)} rows"
            for key, count in self.seen.items()
            if not (self.sent.get(key) and fits(self.sent[key], count))
        ]
        return tuple(sorted(found))


def taken(front: Front, seen: Callable[[], Mapping[str, int]]) -> Traces:
    """Stop the gateway, so that it writes what it owes, and return what the leg left.

    `seen` tells what the server was asked for, when the gateway has left it.
    """
    front.running.stop()
    listed = front.running.home.said("audit", "list", "--last", str(ROWS))
    rows = [each["row"] for each in listed]
    unsent = _unsent()
    return Traces(
        seen=dict(_asked(seen())),
        rows=Counter(_row_key(row) for row in rows),
        sent=Counter(_row_key(row) for row in rows if row["outcome"] not in unsent),
        spans=Counter(_span_keys(front.receiver.spans())),
    )


def _row_key(row: Mapping[str, Any]) -> str:
    # a span does not name a method that no server has, or names would be without end
    unknown = row["action"] == METHOD and not row.get("server")
    return f"{row['action']} {UNKNOWN if unknown else row['tool']}"


def _asked(seen: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for key, count in seen.items():
        method, _, name = key.partition(" ")
        if method in FOLLOWING:
            continue
        if method in AUDITED:
            yield f"{AUDITED[method]} {name}", count
        elif method in LONG:
            yield f"{METHOD} {method}", count


def _span_keys(spans: Iterable[SeenSpan]) -> Iterator[str]:
    for span in spans:
        method = str(span.attributes.get("mcp.method.name", ""))
        if span.kind != "server":
            continue
        if method in AUDITED:
            names = (span.attributes.get(name) for name in _NAMED)
            yield f"{AUDITED[method]} {next(filter(None, names), '')}"
        else:
            yield f"{METHOD} {method}"


def _unsent() -> frozenset[str]:
    """Return the outcomes of calls that the gateway refused before anything was sent."""
    return frozenset({*_codes(CallerError), UpstreamUnreachable.code})


def _codes(error: type[GateError]) -> Iterator[str]:
    yield error.code
    for below in error.__subclasses__():
        yield from _codes(below)
