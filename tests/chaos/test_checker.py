"""The checker finds each kind of broken promise in histories made by hand, and no other."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.checker import RULES, SLACK, check, excerpt
from tests.chaos.history import AFTER, BEFORE, Event, History, Ran, Row, What, read_ran


def event(what: What, at: float, token: str = "t1", **fields: Any) -> Event:
    made = Event(at=at, what=what, token=token, trace=f"trace-{token}", server="s", tool="write")
    return replace(made, **fields)


def invoke(token: str = "t1", at: float = 1.0, **fields: Any) -> Event:
    return event(What.INVOKE, at, token, **fields)


def reply(token: str = "t1", at: float = 2.0, **fields: Any) -> Event:
    return event(What.REPLY, at, token, **{"tokens": (token,), **fields})


def error(code: str, text: str, **fields: Any) -> Event:
    outcome = "not_sent" if code == "upstream_unreachable" else "unknown"
    return event(What.ERROR, 2.0, **{"code": code, "text": text, "outcome": outcome, **fields})


def ran(token: str = "t1", what: str = "ran", tool: str = "write") -> Ran:
    return Ran(server="s", what=what, tool=tool, token=token)


def row(outcome: str = "ok", token: str = "t1") -> Row:
    return Row(trace=f"trace-{token}", server="s", tool="write", outcome=outcome)


def story(
    events: Iterable[Event], ran: Iterable[Ran] = (), rows: Iterable[Row] = (), control: str = ""
) -> History:
    return History(
        events=tuple(events), ran=tuple(ran), rows=tuple(rows), controls=frozenset({control})
    )


def asked(tool: str) -> list[Event]:
    return [
        invoke(tool=tool),
        event(What.ASKED, 2.0, tool=tool),
        invoke(tool=tool, at=3.0, trace="second"),
        reply(at=4.0, tool=tool, trace="second"),
    ]


LOST = "server s: the connection broke"

GOOD = {
    "a call": story([invoke(), reply()], [ran(what="came"), ran()], [row()]),
    "two calls": story(
        [invoke("a"), invoke("b"), reply("b"), reply("a", 3.0)],
        [ran("a"), ran("b")],
        [row(token="a"), row(token="b")],
    ),
    "a write that may have run": story(
        [invoke(), error("upstream_lost", LOST)], [ran()], [row("upstream_lost")]
    ),
    "a write that was not sent": story(
        [invoke(), error("upstream_unreachable", LOST)], [], [row("upstream_unreachable")]
    ),
    "a write that was turned away": story(
        [invoke(), error("upstream_unreachable", LOST)],
        [ran(what="came")],
        [row("upstream_unreachable")],
    ),
    "a read that ran twice": story(
        [invoke(tool="read"), reply(tool="read")], [ran(tool="read"), ran(tool="read")], [row()]
    ),
    "a cancelled call": story(
        [invoke(), event(What.CANCEL, 1.5), event(What.CANCELLED, 1.6), event(What.ENDED, 1.7)],
        [ran()],
        [row("cancelled")],
    ),
    "a reply that met its cancellation": story(
        [invoke(), event(What.CANCEL, 1.5), event(What.CANCELLED, 1.6), reply()], [ran()], [row()]
    ),
    "a client that left before it was heard": story([invoke(), event(What.LEFT, 1.1)]),
    "a question": story(
        asked("want_input"),
        [ran(tool="want_input")],
        [row("input_required"), replace(row(), trace="second")],
    ),
    "a question of a call that waits": story(asked("ask"), [ran(tool="ask")], [row()]),
    "a server that refuses": story(
        [invoke(), error("upstream_replied", "it failed")], [ran()], [row("upstream_replied")]
    ),
}

BAD = {
    "a reply with another's token": (
        "every reply belongs to its request",
        story([invoke(), reply(tokens=("t2",))], [ran()], [row()]),
    ),
    "a reply with two tokens": (
        "every reply belongs to its request",
        story([invoke(), reply(tokens=("t1", "t2"))], [ran()], [row()]),
    ),
    "an error with another's token": (
        "every reply belongs to its request",
        story([invoke(), error("upstream_lost", LOST, tokens=("t2",))], [], [row("upstream_lost")]),
    ),
    "a reply without its token": (
        "every reply belongs to its request",
        story([invoke(), reply(tokens=())], [ran()], [row()]),
    ),
    "two replies": (
        "each call has one outcome",
        story([invoke(), reply(), reply(at=2.1)], [ran()], [row()]),
    ),
    "no outcome": ("each call has one outcome", story([invoke()], [], [row("cancelled")])),
    "silence": (
        "each call has one outcome",
        story([invoke(), event(What.ENDED, 2.0)], [], [row("cancelled")]),
    ),
    "a connection that broke": (
        "each call has one outcome",
        story([invoke(), event(What.BROKEN, 2.0)], [], [row("cancelled")]),
    ),
    "a write that ran twice": (
        "no write runs twice",
        story([invoke(), reply()], [ran(), ran()], [row()]),
    ),
    "a write that ran twice and failed": (
        "no write runs twice",
        story([invoke(), error("upstream_lost", LOST)], [ran(), ran()], [row("upstream_lost")]),
    ),
    "a write that was answered and never ran": (
        "no write runs twice",
        story([invoke(), reply()], [ran(what="came")], [row()]),
    ),
    "a reply long after the cancellation": (
        "no cancelled call gets a reply",
        story(
            [
                invoke(),
                event(What.CANCEL, 1.5),
                event(What.CANCELLED, 1.6),
                reply(at=1.7 + SLACK),
            ],
            [ran()],
            [row()],
        ),
    ),
    "no audit row": ("each call has one audit row", story([invoke(), reply()], [ran()])),
    "two audit rows": (
        "each call has one audit row",
        story([invoke(), reply()], [ran()], [row(), row()]),
    ),
    "an audit row that says otherwise": (
        "each call has one audit row",
        story([invoke(), reply()], [ran()], [row("cancelled")]),
    ),
    "an audit row with another error": (
        "each call has one audit row",
        story([invoke(), error("upstream_lost", LOST)], [], [row("upstream_timeout")]),
    ),
    "a question without a row of its own": (
        "each call has one audit row",
        story(asked("want_input"), [], [row("input_required")]),
    ),
    "a call that waited without a row": ("each call has one audit row", story(asked("ask"))),
    "a call said not to be sent that ran": (
        "what is said not to be done did not run",
        story(
            [invoke(), error("upstream_unreachable", LOST)], [ran()], [row("upstream_unreachable")]
        ),
    ),
    "an error without a server": (
        "every error is clear",
        story([invoke(), error("upstream_lost", "it broke")], [], [row("upstream_lost")]),
    ),
    "an error without a cause": (
        "every error is clear",
        story([invoke(), error("upstream_lost", "server s: ")], [], [row("upstream_lost")]),
    ),
    "a call said not to be done that ran": (
        "what is said not to be done did not run",
        story(
            [invoke(), error("upstream_denied", LOST, outcome="not_done")],
            [ran()],
            [row("upstream_denied")],
        ),
    ),
    "an error that leaves the outcome open": (
        "every error is clear",
        story([invoke(), error("upstream_lost", LOST, outcome="")], [], [row("upstream_lost")]),
    ),
    "an error of our own making": (
        "every error is clear",
        story([invoke(), error("internal_error", LOST)], [], [row("internal_error")]),
    ),
    "a healthy server's call that failed": (
        "healthy servers are not touched",
        story([invoke(), error("upstream_lost", LOST)], [], [row("upstream_lost")], control="s"),
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_breaks_no_promise(name: str) -> None:
    assert check(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_bad_history_breaks_the_promise_that_it_is_made_for(name: str) -> None:
    rule, history = BAD[name]
    assert [violation.rule for violation in check(history)] == [rule]


def test_every_rule_is_broken_by_some_history() -> None:
    assert {rule for rule, _ in BAD.values()} == set(RULES)


def test_the_shortest_story_is_told() -> None:
    long = [invoke("a"), reply("a"), reply("a", 2.5), reply("a", 3.0)]
    short = [invoke("b"), event(What.ENDED, 2.0, "b")]
    history = story([*long, *short], [ran("a")], [row(token="a"), row("cancelled", "b")])
    told = excerpt(history, check(history))
    assert told[0].startswith("each call has one outcome: b: ")
    assert [line.split()[1] for line in told[1:3]] == ["invoke", "ended"]
    assert told[3].endswith("cancelled")
    assert excerpt(history, []) == []


def test_only_rows_of_calls_with_a_token_are_read_from_a_log() -> None:
    log: list[dict[str, Any]] = [
        {"what": "started"},
        {"what": "came", "tool": "write", "arguments": {"token": "t1"}},
        {"what": "ran", "tool": "write", "arguments": {"token": "t1"}},
        {"what": "ran", "tool": "set_faults", "arguments": {"faults": []}},
        {"what": "struck", "fault": "hang", "on": "write", "arguments": {"token": "t1"}},
    ]
    assert list(read_ran("s", log)) == [ran(what="came"), ran()]


def test_the_end_of_a_worker_explains_what_broke_off_then_and_nothing_else() -> None:
    broken = event(What.BROKEN, 2.0, text="no head")
    lost = story([invoke(), broken], control="s")
    assert {one.rule for one in check(lost)} == {
        "each call has one outcome",
        "healthy servers are not touched",
    }
    assert check(replace(lost, kills=(1.5,))) == []
    assert check(replace(lost, kills=(2.0 + BEFORE / 2,))) == []
    assert len(check(replace(lost, kills=(1.0 - AFTER, 2.0 + BEFORE)))) == 2
    twice = story([invoke(), broken], [ran(), ran()])
    assert [one.rule for one in check(replace(twice, kills=(1.5,)))] == ["no write runs twice"]


def test_a_row_that_was_lost_with_its_worker_is_not_missed() -> None:
    unwritten = story([invoke(), reply()], [ran()])
    assert [one.rule for one in check(unwritten)] == ["each call has one audit row"]
    assert check(replace(unwritten, kills=(2.1,))) == []
    assert check(replace(unwritten, rows=(row("upstream_lost"),), kills=(2.1,)))
