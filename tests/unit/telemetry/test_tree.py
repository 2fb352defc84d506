"""The trace tree for terminals."""

from collections.abc import Mapping

import pytest

from tests.support.golden import matches_golden
from thoughtgate.telemetry import names
from thoughtgate.telemetry.otlp import SeenSpan
from thoughtgate.telemetry.tree import duration, render

MS = 1_000_000


def seen(
    span_id: str,
    parent_id: str,
    name: str,
    *,
    at: int = 0,
    took: int = 5,
    kind: str = "internal",
    attributes: Mapping[str, object] | None = None,
    status: str = "unset",
    description: str = "",
    trace_id: str = "t1",
) -> SeenSpan:
    return SeenSpan(
        name=name,
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        kind=kind,
        start_ns=at * MS,
        end_ns=(at + took) * MS,
        attributes=attributes or {},
        status=status,
        description=description,
        resource={},
    )


RUN = [
    seen("5", "4", "tools/call logs__find", at=21, took=9, kind="server"),
    seen("6", "5", "tools/call find", at=22, took=7, kind="client",
         attributes={names.SERVER: "logs"}),
    seen("4", "1", "execute_tool logs__find", at=20, took=11,
         attributes={names.KIND: names.KIND_ACTION}),
    seen("7", "1", "observation find", at=32, took=1,
         attributes={names.KIND: names.KIND_OBSERVATION, names.VALIDATION: "passed"}),
    seen("3", "2", "chat small", at=3, took=15, kind="client"),
    seen("2", "1", "thought find", at=2, took=17, attributes={names.KIND: names.KIND_THOUGHT}),
    seen("8", "1", "execute_tool 通知", at=40, took=1200, status="error", description="refused",
         attributes={names.KIND: names.KIND_ACTION, names.ERROR_TYPE: "tool_error",
                     names.ATTEMPT: 2}),
    seen("9", "1", "tools/call slow", at=1300, took=10,
         attributes={names.ERROR_TYPE: "cancelled"}),
    seen("1", "", "invoke_agent react", at=0, took=1400,
         attributes={names.KIND: names.KIND_RUN, names.STOP_REASON: "final_answer"}),
]  # fmt: skip


def test_a_run_is_drawn_as_it_was_before() -> None:
    assert matches_golden("trace_tree.txt", render(RUN))


def test_the_order_of_arrival_does_not_matter() -> None:
    assert render(reversed(RUN)) == render(RUN)


def test_colour_adds_nothing_but_colour() -> None:
    plain = render(RUN, color=True)
    for code in ("0", "1", "2", "31", "32", "33", "36"):
        plain = plain.replace(f"\x1b[{code}m", "")
    assert plain == render(RUN)
    assert "\x1b" not in render(RUN)


def test_a_span_whose_parent_is_elsewhere_stands_as_a_root() -> None:
    lines = render([seen("a", "gone", "orphan"), seen("b", "a", "inner", at=1)]).splitlines()
    assert lines[1].startswith("orphan")
    assert lines[2].startswith("└─ inner")


def test_a_cycle_of_parents_loses_no_span() -> None:
    text = render([seen("a", "b", "one"), seen("b", "a", "two"), seen("c", "c", "self")])
    assert all(name in text for name in ("one", "two", "self"))


def test_two_traces_are_drawn_one_after_the_other() -> None:
    text = render([seen("a", "", "late", at=9, trace_id="t2"), seen("a", "", "early")])
    assert text.index("early") < text.index("late")
    assert text.count("trace t") == 2


def test_a_name_cannot_steer_the_terminal() -> None:
    text = render([seen("a", "", "x\x1b[2J\n\u202ey", status="error", description="\x07")])
    assert all(char.isprintable() for char in text.replace("\n", ""))
    assert len(text.splitlines()) == 2


def test_a_long_name_is_cut() -> None:
    assert max(map(len, render([seen("a", "", "n" * 500)]).splitlines())) < 100


def test_a_deep_trace_is_drawn_whole() -> None:
    chain = [seen(str(n), str(n - 1) if n else "", f"s{n}", at=n) for n in range(500)]
    assert len(render(chain).splitlines()) == 501


def test_no_spans_are_no_text() -> None:
    assert render([]) == ""


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [(-5, "0.00 ms"), (420_000, "0.42 ms"), (17 * MS, "17 ms"), (2310 * MS, "2.31 s"),
     (185_000 * MS, "3 min 05 s")],
)  # fmt: skip
def test_a_duration_is_said_for_people(nanoseconds: int, shown: str) -> None:
    assert duration(nanoseconds) == shown


def fan(count: int) -> list[SeenSpan]:
    """Return a run with `count` equal actions, each with one call below it."""
    spans = [seen("run", "", "invoke_agent react", took=900)]
    for n in range(count):
        spans.append(seen(f"a{n}", "run", "execute_tool read", at=n, took=10 + n))
        spans.append(seen(f"c{n}", f"a{n}", "tools/call read", at=n, took=5, kind="client"))
    return spans


def test_alike_neighbours_share_a_line_that_counts_them() -> None:
    _, run, action, call = render(fan(32)).splitlines()
    assert run.startswith("invoke_agent react")
    assert action.startswith("└─ execute_tool read ×32")
    assert action.endswith(" 10–41 ms")
    assert call.startswith("   └─ tools/call read [client] ×32")
    assert call.endswith(" 5.00 ms")
    assert len(render(fan(32), whole=True).splitlines()) == 1 + 65


def test_one_that_failed_is_not_hidden_among_the_others() -> None:
    spans = fan(5)
    spans.append(seen("bad", "run", "execute_tool read", at=2, status="error", description="no"))
    counted = [line.count("execute_tool read") for line in render(spans).splitlines()]
    assert sum(counted) == 3
    assert "✗ error  no" in render(spans)


def test_one_with_something_else_below_is_not_hidden_among_the_others() -> None:
    spans = [*fan(3), seen("x", "a1", "chat small", at=1)]
    assert render(spans).count("execute_tool read") == 3
    assert "chat small" in render(spans)


def test_a_verdict_that_nobody_gave_stands_in_the_whole_tree_only() -> None:
    spans = [seen("a", "", "anchor", attributes={names.VALIDATION: "skipped"})]
    assert "skipped" not in render(spans)
    assert "skipped" in render(spans, whole=True)


def test_remarks_are_cut_to_the_width() -> None:
    spans = [seen("a", "", "s", status="error", description="long " * 30)]
    assert max(map(len, render(spans, width=60).splitlines()[1:])) == 60
