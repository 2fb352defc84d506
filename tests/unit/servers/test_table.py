"""The table: arguments checked first, failures told in words, annotations right."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client, MCPError

from tests.support.tool_servers import ask, data, text
from tests.support.waiting import until, within
from thoughtgate_servers.data.limits import Limits
from thoughtgate_servers.data.tools import DataTools
from thoughtgate_servers.files.tools import FileTools
from thoughtgate_servers.logs.tools import LogTools
from thoughtgate_servers.notify.outbox import Outbox
from thoughtgate_servers.notify.posting import Poster
from thoughtgate_servers.notify.targets import Targets
from thoughtgate_servers.notify.tools import NotifyTools
from thoughtgate_servers.report.tools import ReportTools
from thoughtgate_servers.sandbox import Sandbox
from thoughtgate_servers.schemas import array, integer, record
from thoughtgate_servers.schemas import text as string
from thoughtgate_servers.stepwise import stepwise
from thoughtgate_servers.table import Effect, Reply, Request, Tool, ToolFailed, build_server

SCHEMA = record(
    {"name": string(minLength=2, maxLength=4, pattern="^[a-z]+$")},
    {
        "size": integer(minimum=1, maximum=3),
        "kind": string(enum=["a", "b"]),
        "many": array(integer(), minItems=1, maxItems=2),
    },
)


async def _echo(request: Request) -> Reply:
    return Reply(text="ok", structured={"name": request.arguments["name"]})


def _tool(**more: object) -> Tool:
    given = {
        "name": "echo",
        "title": "Echo",
        "description": "Echo.",
        "input_schema": SCHEMA,
        "output_schema": record({"name": string()}),
        "run": _echo,
    }
    return Tool(**{**given, **more})  # type: ignore[arg-type] # a table of fields, some replaced


def shipped(tmp_path: Path) -> list[Tool]:
    sandbox = Sandbox([tmp_path])
    notify = NotifyTools(
        targets=Targets(named={}, allowed=()),
        outbox=Outbox(tmp_path / "outbox"),
        poster=Poster(timeout=1, proxy=None),
    )
    return [
        *LogTools(sandbox=sandbox, max_bytes=1000).table(),
        *ReportTools(sandbox=sandbox).table(),
        *notify.table(),
        *FileTools(sandbox=sandbox, writable=True).table(),
        *DataTools(sandbox=sandbox, out=sandbox, limits=Limits()).table(),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "the arguments: lacks name"),
        ({"name": "ab", "nmae": 1}, "has no argument nmae; known are name, size, kind, many"),
        ({"name": 5}, "/name: must be string, not int"),
        ({"name": "a"}, "/name: must have at least 2 characters"),
        ({"name": "abcde"}, "/name: must have at most 4 characters"),
        ({"name": "AB"}, "/name: must match"),
        ({"name": "ab", "size": 0}, "/size: must be at least 1"),
        ({"name": "ab", "size": 4}, "/size: must be at most 3"),
        ({"name": "ab", "kind": "c"}, "/kind: must be one of a, b"),
        ({"name": "ab", "many": []}, "/many: must have at least 1 items"),
        ({"name": "ab", "many": [1, "x"]}, "/many/1: must be integer, not str"),
    ],
)
async def test_bad_arguments_are_told_by_place_and_rule(
    arguments: dict[str, Any], said: str
) -> None:
    result = await ask([_tool()], "echo", **arguments)
    assert result.is_error
    assert said in text(result)


async def test_good_arguments_reach_the_tool() -> None:
    assert data(await ask([_tool()], "echo", name="ab")) == {"name": "ab"}


async def test_an_integer_written_with_a_point_is_an_integer_to_the_tool() -> None:
    seen: list[object] = []

    async def shows(request: Request) -> Reply:
        seen.extend([request.arguments["size"], *request.arguments["many"]])
        return Reply(text="", structured={"name": "x"})

    await ask([_tool(run=shows)], "echo", name="ab", size=2.0, many=[3.0])
    assert list(map(repr, seen)) == ["2", "3"]


async def test_an_unknown_tool_is_a_protocol_error() -> None:
    with pytest.raises(MCPError) as caught:
        await ask([_tool()], "ehco")
    assert caught.value.code == -32602


async def test_a_failure_of_the_machine_names_no_path() -> None:
    async def broken(_: Request) -> Reply:
        raise PermissionError(13, "Permission denied", "/secret/place")

    result = await ask([_tool(run=broken)], "echo", name="ab")
    assert result.is_error
    assert text(result) == "echo could not work: Permission denied"


async def test_a_failure_may_carry_structured_content() -> None:
    async def failing(_: Request) -> Reply:
        raise ToolFailed(message="no", structured={"name": "x"})

    result = await ask([_tool(run=failing)], "echo", name="ab")
    assert result.is_error
    assert result.structured_content == {"name": "x"}


async def test_progress_only_rises() -> None:
    async def counting(request: Request) -> Reply:
        for done in (1, 2, 2, 1, 3):
            await request.progress(done, None, None)
        return Reply(text="", structured={"name": ""})

    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    server = build_server(name="t", version="0", instructions="", tools=[_tool(run=counting)])
    async with Client(server, mode="legacy") as client:
        await client.call_tool("echo", {"name": "ab"}, progress_callback=on_progress)
    assert seen == [1, 2, 3]


def test_every_shipped_schema_is_closed_and_valid(tmp_path: Path) -> None:
    def objects(schema: object) -> Iterator[dict[str, object]]:
        if isinstance(schema, dict):
            if "properties" in schema:
                yield schema
            for inner in schema.values():
                yield from objects(inner)

    for tool in shipped(tmp_path):
        assert tool.output_schema is not None
        for schema in (tool.input_schema, tool.output_schema):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            assert all(one["additionalProperties"] is False for one in objects(schema)), tool.name


def test_annotations_say_what_a_call_does(tmp_path: Path) -> None:
    hints = {tool.name: tool.advertised().annotations for tool in shipped(tmp_path)}
    writing = {name for name, hint in hints.items() if hint and not hint.read_only_hint}
    assert writing == {
        "write_report",
        "send_webhook",
        "send_slack",
        "write_file",
        "chart",
        "export",
    }
    once = {name for name, hint in hints.items() if hint and not hint.idempotent_hint}
    assert once == {"send_webhook", "send_slack"}
    keyed = {t.name for t in shipped(tmp_path) if t.meta.get("thoughtgate/idempotency") == "key"}
    assert keyed == once
    assert {t.name for t in shipped(tmp_path) if t.effect is Effect.WRITE} == once


async def test_cancelled_work_stops_at_the_end_of_its_slice_and_is_closed() -> None:
    steps: list[int] = []
    closed: list[bool] = []

    def work() -> Iterator[int]:
        try:
            number = 0
            while True:
                number += 1
                yield number
        finally:
            closed.append(True)

    async def on_step(step: int) -> None:
        steps.append(step)

    task = asyncio.create_task(stepwise(work(), on_step))
    await until(lambda: len(steps) > 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert closed == [True]
    done = len(steps)
    await asyncio.sleep(0)
    assert len(steps) == done
