"""One audit row per call: who, what, on which definition, with which outcome."""

import hashlib
from dataclasses import replace

import pytest

from tests.unit.calls.conftest import FLIGHT, Bench
from thoughtgate.core.calls import Principal, Result
from thoughtgate.core.errors import GateError, UpstreamLost
from thoughtgate.core.json import JsonObject, digest
from thoughtgate.testing.values import SESSION


async def test_a_row_says_who_did_what_on_which_definition(bench: Bench) -> None:
    bench.sender.otherwise = Result(raw=b'{"content":[]}')
    bench.offer("air", FLIGHT)
    await bench.call(
        "air__book", {"to": "Oslo"}, session=replace(SESSION, id="s1"), run_id="r1", id="c1"
    )
    (row,) = bench.audit.rows
    assert (row.action, row.outcome, row.principal, row.domain) == (
        "tool.call",
        "ok",
        "local",
        "default",
    )
    assert (row.server, row.tool, row.tool_digest) == ("air", "book", digest(FLIGHT))
    assert (row.call_id, row.run_id, row.session_id, row.effect) == ("c1", "r1", "s1", "write")
    assert row.arguments_digest == digest({"to": "Oslo"})
    assert row.result_digest == "sha256:" + hashlib.sha256(b'{"content":[]}').hexdigest()
    assert row.trace_id == f"{bench.recorder.spans[0].context.trace_id:032x}"


@pytest.mark.parametrize(
    ("name", "arguments", "principal", "outcome"),
    [
        ("air__book", {"to": "Oslo"}, "local", "upstream_lost"),
        ("air__nothing", {}, "local", "unknown_tool"),
        ("air__book", {"to": 5}, "local", "invalid_arguments"),
        ("air__book", {"to": "Oslo"}, "stranger", "refused"),
    ],
)
async def test_every_failure_has_its_row_and_no_value_in_it(
    bench: Bench, name: str, arguments: JsonObject, principal: str, outcome: str
) -> None:
    bench.sender.otherwise = UpstreamLost(message="the server went away")
    bench.offer("air", FLIGHT)
    with pytest.raises(GateError) as caught:
        await bench.call(name, arguments, principal=Principal(id=principal))
    (row,) = bench.audit.rows
    assert row.outcome == caught.value.code == outcome
    assert row.reason
    assert row.arguments_digest == digest(arguments)
    assert not row.result_digest


async def test_a_tool_error_is_told_from_success(bench: Bench) -> None:
    bench.sender.otherwise = Result(raw=b'{"content":[],"isError":true}', is_error=True)
    bench.offer("air", FLIGHT)
    await bench.call("air__book", {"to": "Oslo"})
    assert [row.outcome for row in bench.audit.rows] == ["tool_error"]


async def test_a_long_unknown_name_does_not_swell_the_log(bench: Bench) -> None:
    with pytest.raises(GateError):
        await bench.call("x" * 100_000)
    assert len(repr(bench.audit.rows[0])) < 2000
