"""The conformance runner itself: its pins, its counting, its table, and the fixture's two eras."""

import json
import operator
import re
import sys

import pytest
from mcp import Client, StdioServerParameters

from tests.conformance.client import SCENARIOS, answer
from tests.conformance.legs import (
    CLIENT_SCENARIOS,
    DIRECT,
    NEW,
    OLD,
    THROUGH,
    Report,
)
from tests.conformance.page import page
from tests.conformance.report import findings, table
from tests.conformance.suite import HERE, Scenario
from tests.conformance.witness import Traces
from tests.support.gate import ROOT
from tests.support.waiting import within

CALL = "tool.call echo"
GOOD = Scenario(name="ping", passed=2)
BAD = Scenario(name="caching", passed=1, failures=("ttl: missing", "scope: missing"))


def traces(
    *, seen: int = 1, rows: int = 1, sent: int | None = None, spans: int | None = None
) -> Traces:
    return Traces(
        seen={CALL: seen} if seen else {},
        rows={CALL: rows} if rows else {},
        sent={CALL: rows if sent is None else sent},
        spans={CALL: rows if spans is None else spans} if rows or spans else {},
    )


def test_the_suite_is_pinned_and_its_lock_names_no_address() -> None:
    package = json.loads((HERE / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))
    assert lock["packages"][""]["dependencies"] == package["dependencies"]
    assert all(
        re.fullmatch(r"npm:@modelcontextprotocol/conformance@\d+\.\d+\.\d+(-alpha\.\d+)?", pin)
        for pin in package["dependencies"].values()
    )
    assert not any("resolved" in entry for entry in lock["packages"].values())
    assert all("integrity" in entry for name, entry in lock["packages"].items() if name)


def test_every_client_scenario_that_is_run_can_be_driven() -> None:
    assert {name for _, _, names in CLIENT_SCENARIOS for name in names} == set(SCENARIOS)


@pytest.mark.parametrize(
    ("left", "fits"),
    [
        (traces(seen=3, rows=3), operator.eq),
        (traces(seen=0, rows=2, sent=0), operator.eq),
        (traces(seen=4, rows=2), operator.le),
        (traces(seen=1, rows=2), operator.ge),
        (traces(seen=1, rows=3, sent=1), operator.eq),
    ],
)
def test_calls_that_left_a_row_and_a_span_each_are_in_order(left: Traces, fits: object) -> None:
    assert callable(fits)
    assert left.complaints(fits) == ()


@pytest.mark.parametrize(
    ("left", "told"),
    [
        (traces(seen=1, rows=0), "at the server"),
        (traces(seen=2, rows=1), "at the server"),
        (traces(seen=1, rows=2), "at the server"),
        (traces(seen=1, rows=1, sent=0), "at the server"),
        (traces(seen=1, rows=1, spans=0), "rows and 0 spans"),
        (traces(seen=0, rows=0, spans=1), "no row"),
    ],
)
def test_a_call_without_its_row_or_its_span_is_told(left: Traces, told: str) -> None:
    (words,) = [line for line in left.complaints(operator.eq) if told in line]
    assert words.startswith(CALL)


def test_a_leg_is_good_only_when_everything_passed_and_was_traced() -> None:
    assert Report(key=NEW.key, front=THROUGH, scored=(GOOD,), others=(GOOD,)).good
    unscored = Report(key=NEW.key, front=THROUGH, scored=(GOOD,), others=(BAD,))
    assert (unscored.figure, unscored.wider, unscored.good) == ("1/1", "1/2", False)
    assert not Report(key=NEW.key, front=THROUGH, scored=(GOOD, BAD)).good
    assert not Report(key=NEW.key, front=THROUGH, scored=(GOOD,), complaints=("x",)).good


def test_the_table_shows_our_figures_beside_the_peers() -> None:
    reports = [
        Report(key=OLD.key, front=DIRECT, scored=(GOOD,)),
        Report(key=OLD.key, front=THROUGH, scored=(GOOD, BAD), others=(GOOD,)),
        Report(key="client 2026-07-28", front=THROUGH, scored=(GOOD,)),
    ]
    lines = list(table(reports))
    assert [line.split() for line in lines if line.startswith((DIRECT, THROUGH))] == [
        [DIRECT, "-", "1/1", "1/1", "-", "-"],
        [THROUGH, "-", "1/2", "2/3", "-", "-"],
    ]
    assert any(line.startswith("fastmcp") and "33/37" in line for line in lines)
    assert list(findings(reports)) == [
        "2025-11-25, thoughtgate: caching: ttl: missing (and 1 more)"
    ]
    assert "| client 2026-07-28 | 1/1 | ping |" in page(reports)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_fixture_asks_its_client_in_either_era(mode: str) -> None:
    arguments = ["-m", "tests.conformance.fixture", "stdio"]
    child = StdioServerParameters(command=sys.executable, args=arguments, cwd=str(ROOT))
    client = Client(child, mode=mode, elicitation_callback=answer)

    async def talk() -> tuple[str, int, int]:
        async with client:
            tools = (await client.list_tools()).tools
            prompts = (await client.list_prompts()).prompts
            called = await client.call_tool("test_elicitation", {"message": "who?"})
            return called.model_dump_json(), len(tools), len(prompts)

    answered, tools, prompts = await within(talk(), 20)
    assert "accept" in answered
    assert (tools, prompts) == (35, 5)
