"""One audit row per call: who, what, on which definition, with which outcome."""

import hashlib
import logging
from dataclasses import replace

import pytest

from tests.unit.calls.conftest import FLIGHT, Bench
from thoughtgate.core.audit import AuditRow
from thoughtgate.core.calls import Call, Principal, Result
from thoughtgate.core.errors import GateError, Refused, StoreFull, UpstreamLost
from thoughtgate.core.json import JsonObject, digest
from thoughtgate.testing.recorder import ListAuditLog
from thoughtgate.testing.sender import EMPTY
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
    assert (row.call_id, row.run_id, row.effect) == ("c1", "r1", "write")
    assert row.session_id == hashlib.sha256(b"s1").hexdigest()[:32]  # the id would open it
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


class Disk(ListAuditLog):
    """A required log: `durable` rows are on disk, and a full disk takes none."""

    def __init__(self) -> None:
        super().__init__()
        self.durable: list[AuditRow] = []
        self.full = False

    def append(self, row: AuditRow) -> None:
        if self.full:
            raise StoreFull(message="no space is left")
        super().append(row)

    async def flush(self) -> None:
        self.durable = list(self.rows)


@pytest.fixture
def disk(bench: Bench) -> Disk:
    bench.audit = Disk()
    bench.extra["intents"] = True
    bench.offer("air", FLIGHT)
    return bench.audit


async def test_where_audit_is_required_the_intent_is_on_disk_before_the_call_is_sent(
    bench: Bench, disk: Disk
) -> None:
    on_disk: list[AuditRow] = []

    async def look(call: Call) -> Result:
        on_disk.extend(disk.durable)
        return EMPTY

    bench.sender.otherwise = look
    await bench.call("air__book", {"to": "Oslo"}, id="c1")
    (intent,) = on_disk
    assert (intent.action, intent.call_id, intent.tool, intent.outcome) == (
        "tool.intent",
        "c1",
        "book",
        "",
    )
    assert intent.arguments_digest == digest({"to": "Oslo"})
    assert [row.action for row in disk.rows] == ["tool.intent", "tool.call"]


async def test_what_cannot_be_audited_is_not_sent_where_audit_is_required(
    bench: Bench, disk: Disk
) -> None:
    disk.full = True
    with pytest.raises(Refused) as caught:
        await bench.call("air__book", {"to": "Oslo"})
    assert caught.value.data == {"policy": "audit"}
    assert not bench.sender.sent


async def test_a_call_that_is_refused_has_no_intent(bench: Bench, disk: Disk) -> None:
    with pytest.raises(GateError):
        await bench.call("air__book", {"to": 5})
    assert [row.action for row in disk.rows] == ["tool.call"]


async def test_a_result_is_given_though_its_row_is_lost(
    bench: Bench, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    """An error here would make a client send the write again."""

    async def fill(call: Call) -> Result:
        disk.full = True
        return EMPTY

    bench.sender.otherwise = fill
    assert await bench.call("air__book", {"to": "Oslo"}, id="c1") is EMPTY
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "c1" in record.getMessage()
