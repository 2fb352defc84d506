"""The checker: a history in, the promises that it breaks out.

Never looks at anything but the history; what it cannot see there it does not judge.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.history import LAST, Event, History, Row, What, struck

SLACK = 2.0
"""Seconds after a cancellation was taken in which a reply may still be on its way."""

UNDONE = frozenset({"not_sent", "not_done"})
"""What an error says of the outcome of a call that was not carried out."""

OUTCOMES = frozenset({*UNDONE, "unknown"})

SERVERS = frozenset({
    "upstream_unreachable", "upstream_lost", "upstream_timeout", "upstream_garbled",
    "upstream_denied", "upstream_refused", "upstream_failed", "invalid_result",
})  # fmt: skip
"""The codes of errors that a run may bring, and that are a server's fault."""

OTHERS = frozenset({"upstream_replied", "overloaded", "unknown_tool", "not_asked"})
"""Errors that are relayed as they came, or that say by themselves that nothing was sent."""

ONCE = frozenset({"write"})
"""The tools that must not run twice for one call."""

PARKED = "ask"
"""The tool whose call waits in the gateway between its rounds: it is one call, with one row."""

ASKING = frozenset({PARKED, "want_input"})
"""The tools that take several rounds."""

_AGREE: Mapping[What, frozenset[str]] = {
    What.REPLY: frozenset({"ok", "tool_error"}),
    What.ASKED: frozenset({"input_required"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A promise that was broken, by which token, and how."""

    rule: str
    token: str
    said: str


@dataclass(slots=True)
class Round:
    """One request of one call, and everything that became of it."""

    invoke: Event
    others: list[Event] = field(default_factory=list)

    @property
    def ends(self) -> list[Event]:
        """Return what ended it; one, if all is well."""
        return [event for event in self.others if event.what in LAST]

    def struck(self, history: History) -> bool:
        """Tell whether it may have met the end of a worker."""
        end = self.ends[-1].at if self.ends else self.invoke.at
        return struck(history.kills, self.invoke.at, end)

    def first(self, what: What) -> Event | None:
        """Return the first event of a kind."""
        return next((event for event in self.others if event.what is what), None)


Found = Iterator[tuple[str, str]]
"""Pairs of a token and what is wrong with it."""

Rule = Callable[[History, Sequence[Round]], Found]


def check(history: History) -> list[Violation]:
    """Return every promise that a history breaks, each with its token."""
    rounds = _rounds(history.events)
    return [
        Violation(rule=name, token=token, said=said)
        for name, rule in RULES.items()
        for token, said in rule(history, rounds)
    ]


def _rounds(events: Iterable[Event]) -> list[Round]:
    by_trace: dict[str, Round] = {}
    for event in sorted(events, key=lambda one: one.at):
        if event.what is What.INVOKE:
            by_trace[event.trace] = Round(event)
        else:
            by_trace[event.trace].others.append(event)
    return list(by_trace.values())


def _foreign(history: History, rounds: Sequence[Round]) -> Found:
    """Every reply belongs to its request: it has the request's token, and nobody else's."""
    for one in rounds:
        for event in one.ends:
            foreign = set(event.tokens) - {event.token}
            if foreign:
                yield event.token, f"what came holds {', '.join(sorted(foreign))}"
            elif event.what is What.REPLY and not event.tokens:
                yield event.token, "the reply does not hold its token"


def _one_outcome(history: History, rounds: Sequence[Round]) -> Found:
    """Each round has exactly one outcome, and no round ends in silence that nobody asked for."""
    for one in rounds:
        token, ends = one.invoke.token, one.ends
        if len(ends) != 1:
            yield token, f"{len(ends)} outcomes: {', '.join(e.what.value for e in ends) or 'none'}"
        elif ends[0].what is What.BROKEN and not one.struck(history):
            yield token, f"the gateway broke off: {ends[0].text}"
        elif ends[0].what is What.ENDED and one.first(What.CANCEL) is None:
            yield token, "the reply ended without an answer, and nobody had cancelled"


def _twice(history: History, rounds: Sequence[Round]) -> Found:
    """No write ran twice, and none that was answered did not run."""
    ran = Counter(one.token for one in history.ran if one.what == "ran" and one.tool in ONCE)
    for token, number in ran.items():
        if number > 1:
            yield token, f"it ran {number} times"
    for one in rounds:
        answered = one.first(What.REPLY) is not None
        if answered and one.invoke.tool in ONCE and not ran[one.invoke.token]:
            yield one.invoke.token, "it was answered and never ran"


def _after_cancel(history: History, rounds: Sequence[Round]) -> Found:
    """No call that was cancelled gets an answer, but for one that was on its way already."""
    for one in rounds:
        taken = one.first(What.CANCELLED)
        for event in one.ends:
            answer = event.what in {What.REPLY, What.ERROR, What.ASKED}
            if answer and taken is not None and event.at > taken.at + SLACK:
                late = event.at - taken.at
                yield event.token, f"an answer came {late:.1f} s after the cancellation was taken"


def _audited(history: History, rounds: Sequence[Round]) -> Found:
    """Each round has exactly one audit row, which agrees with what its client heard."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in history.rows:
        rows[row.trace].append(row)
    for one in _calls(rounds):
        token, found = one.invoke.token, rows[one.invoke.trace]
        gone = any(event.what in {What.LEFT, What.BROKEN} for event in one.ends)
        gone = gone or one.struck(history)
        if len(found) > 1 or not (found or gone):
            yield token, f"{len(found)} audit rows"
        elif found and len(one.ends) == 1 and not _agrees(one.ends[0], found[0]):
            end = one.ends[0]
            heard = f"{end.what.value} {end.code}".strip()
            yield token, f"the client heard {heard}, the audit row says {found[0].outcome}"


def _calls(rounds: Sequence[Round]) -> Iterator[Round]:
    """Give each call that has a row: the rounds of one that was parked are one call."""
    parked: dict[str, Round] = {}
    for one in rounds:
        if one.invoke.tool != PARKED:
            yield one
        elif one.invoke.token in parked:
            parked[one.invoke.token].others = one.others
        else:
            parked[one.invoke.token] = Round(one.invoke, one.others)
    yield from parked.values()


def _agrees(end: Event, row: Row) -> bool:
    if end.what is What.ERROR:
        return row.outcome == end.code
    return end.what not in _AGREE or row.outcome in _AGREE[end.what]


def _unsent(history: History, rounds: Sequence[Round]) -> Found:
    """A call that is said not to have been carried out did not run."""
    ran = {(one.server, one.token) for one in history.ran if one.what == "ran"}
    for one in rounds:
        error = one.first(What.ERROR)
        if error is None or error.outcome not in UNDONE or one.invoke.tool in ASKING:
            continue
        if (error.server, error.token) in ran:
            yield error.token, f"it is said to be {error.outcome}, and ran"


def _clear(history: History, rounds: Sequence[Round]) -> Found:
    """Every error names server and cause, and says whether the outcome is known."""
    for one in rounds:
        error = one.first(What.ERROR)
        if error is None:
            continue
        said = f"{error.code!r}: {error.text[:200]}"
        if error.code not in SERVERS | OTHERS:
            yield error.token, f"an error that should not be, {said}"
        elif error.code in SERVERS and not _names(error):
            yield error.token, f"the error names no server or no cause, {said}"
        elif error.code in SERVERS and error.outcome not in OUTCOMES:
            yield error.token, f"the error says nothing of the outcome, {said}"


def _names(error: Event) -> bool:
    _, name, cause = error.text.partition(f"server {error.server}")
    return bool(name and cause.strip(": "))


def _healthy(history: History, rounds: Sequence[Round]) -> Found:
    """Calls of servers without faults succeed, whatever others do."""
    for one in rounds:
        if one.invoke.server in history.controls and not one.struck(history):
            for event in one.ends:
                if event.what in {What.ERROR, What.BROKEN}:
                    yield event.token, f"a call of a healthy server failed: {event.text[:200]}"


RULES: Mapping[str, Rule] = {
    "every reply belongs to its request": _foreign,
    "each call has one outcome": _one_outcome,
    "no write runs twice": _twice,
    "no cancelled call gets a reply": _after_cancel,
    "each call has one audit row": _audited,
    "what is said not to be done did not run": _unsent,
    "every error is clear": _clear,
    "healthy servers are not touched": _healthy,
}
"""The rules, by what they promise."""


def excerpt(history: History, violations: Sequence[Violation]) -> list[str]:
    """Return the shortest of the stories of broken promises, line by line."""
    stories = [(violation, history.lines(violation.token)) for violation in violations]
    if not stories:
        return []
    violation, lines = min(stories, key=lambda story: len(story[1]))
    return [f"{violation.rule}: {violation.token}: {violation.said}", *lines]
