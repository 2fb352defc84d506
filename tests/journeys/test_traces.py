"""What a call leaves behind: two spans in the caller's trace, and one row in the audit log.

Measured from outside: a real receiver for OTLP, the database as another program reads it, and a
tool server that tells what reached it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client, MCPError
from mcp.types import CallToolResult

from tests.support.gate import Gate, Home, gate, home, python_server
from tests.support.waiting import within
from thoughtgate.telemetry.otlp import SeenSpan
from thoughtgate.testing.otlp import OtlpReceiver

PEER = "tests.support.sdk_server"
SETTINGS = python_server("old", PEER, era="handshake") + python_server("new", PEER, era="stateless")
TRACE = "0af7651916cd43dd8448eb211c80319c"
ROUTES = [(mode, server) for mode in ("legacy", "2026-07-28") for server in ("old", "new")]


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, receiver: OtlpReceiver) -> Iterator[Gate]:
    place = home(
        tmp_path_factory.mktemp("home"),
        SETTINGS,
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
        OTEL_BSP_SCHEDULE_DELAY="20",
    )
    with gate(place) as running:
        yield running


def of_trace(receiver: OtlpReceiver, trace: str, count: int) -> dict[str, SeenSpan]:
    """Wait for the spans of one trace and return them by kind."""
    arrived = 0
    while len(found := [s for s in receiver.spans() if s.trace_id == trace]) < count:
        arrived = len(receiver.wait_for(arrived + 1))
    assert len(found) == count
    return {span.kind: span for span in found}


async def call(
    gateway: Gate, mode: str, tool: str, arguments: dict[str, Any], **meta: str
) -> CallToolResult:
    async with Client(gateway.url(), mode=mode) as client:
        return await within(client.call_tool(tool, arguments, meta=cast("Any", meta)))


@pytest.mark.parametrize(("mode", "server"), ROUTES)
async def test_a_forwarded_call_is_two_spans_below_the_callers(
    gateway: Gate, receiver: OtlpReceiver, mode: str, server: str
) -> None:
    number = ROUTES.index((mode, server)) + 1
    trace, parent = f"{TRACE[:-1]}{number}", f"b7ad6b716920333{number}"
    traceparent = f"00-{trace}-{parent}-01"

    result = await call(gateway, mode, f"{server}__meta", {}, traceparent=traceparent)

    await call(gateway, mode, f"{server}__echo", {}, traceparent=f"00-{number:032x}-{parent}-01")
    of_trace(receiver, f"{number:032x}", 2)  # spans arrive in order: a third would be there by now
    spans = of_trace(receiver, trace, 2)
    assert set(spans) == {"server", "client"}
    assert spans["server"].parent_id == parent
    assert spans["server"].name == f"tools/call {server}__meta"
    assert spans["client"].parent_id == spans["server"].span_id
    assert spans["client"].status != "error"
    assert result.structured_content is not None
    seen = result.structured_content["meta"]["traceparent"]
    assert seen == f"00-{trace}-{spans['client'].span_id}-01"


async def test_a_call_without_a_callers_span_begins_a_trace_of_its_own(
    gateway: Gate, receiver: OtlpReceiver
) -> None:
    result = await call(gateway, "2026-07-28", "new__meta", {})
    assert result.structured_content is not None
    trace = result.structured_content["meta"]["traceparent"].split("-")[1]
    spans = of_trace(receiver, trace, 2)
    assert spans["client"].parent_id == spans["server"].span_id
    assert spans["server"].parent_id == ""


async def test_arguments_and_results_stay_out_of_the_trace(
    gateway: Gate, receiver: OtlpReceiver
) -> None:
    trace = "c" * 32
    await call(
        gateway,
        "2026-07-28",
        "new__echo",
        {"x": "canary-51"},
        traceparent=f"00-{trace}-{'d' * 16}-01",
    )
    spans = of_trace(receiver, trace, 2)
    assert "canary-51" not in repr(spans)


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return home(tmp_path, python_server("peer", PEER))


async def test_every_call_is_one_audit_row_and_an_edit_is_found(place: Home) -> None:
    with gate(place) as running:
        async with Client(running.url(), mode="auto") as client:
            await within(client.call_tool("peer__sum", {"a": 1, "b": 2}))
            await within(client.call_tool("peer__sum", {"a": "canary-77"}))
            with pytest.raises(MCPError):
                await within(client.call_tool("peer__nobody", {}))
        assert running.stop() == 0
    rows = place.audit_rows()
    assert [(row["tool"], row["outcome"]) for row in rows] == [
        ("sum", "ok"),
        ("sum", "invalid_arguments"),
        ("peer__nobody", "unknown_tool"),
    ]
    assert all(row["principal"] == "local" for row in rows)
    assert "canary-77" not in repr(rows)

    whole = place.invoke("audit", "verify")
    assert (whole.exit_code, "whole" in whole.stdout) == (0, True)
    edit(place, b'"outcome":"ok"', b'"outcome":"no"')
    broken = place.invoke("audit", "verify")
    assert broken.exit_code == 1
    assert "broken at row 2: " in broken.stdout  # the first row tells of the start


def edit(place: Home, old: bytes, new: bytes) -> None:
    """Change audit rows as somebody with the file in hand would."""
    with closing(sqlite3.connect(place.state / "registry.db")) as connection, connection:
        bodies = connection.execute("SELECT chain, seq, body FROM audit").fetchall()
        for chain, seq, body in bodies:
            connection.execute(
                "UPDATE audit SET body = ? WHERE chain = ? AND seq = ?",
                (body.replace(old, new), chain, seq),
            )
