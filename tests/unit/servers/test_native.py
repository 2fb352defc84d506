"""Functions as tools: schemas from type hints, values as they say, and nothing left running."""

import asyncio
import enum
import json
import threading
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict, cast

import grpc
import msgspec
import pytest
from jsonschema import Draft202012Validator

from tests.support.native_servers import asking, dialled, events, refused, result
from tests.support.waiting import until, within
from thoughtgate_proto.tools.v1 import tool_server_pb2 as pb
from thoughtgate_servers.native import (
    BadSignature,
    Call,
    GivenUp,
    Image,
    Reply,
    ToolFailed,
    ToolServer,
)

MANY = [1]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Node:
    name: str
    children: "list[Node]" = field(default_factory=list)


class Extra(TypedDict, total=False):
    note: str


def server_of(function: Any, **hints: Any) -> ToolServer:
    server = ToolServer("test")
    server.tool(**hints)(function)
    return server


async def call(function: Any, arguments: object = None) -> Any:
    """Return the structured result of the function as a tool."""
    async with server_of(function).serving() as url, dialled(url) as stub:
        said = await result(stub, asking(function.__name__, arguments))
    assert not said.is_error, said.content_json
    return json.loads(said.structured_content_json)


def schema(function: Any) -> dict[str, Any]:
    return server_of(function).table.listed[0].input_schema


async def test_every_kind_of_hint_becomes_a_schema_and_a_value() -> None:
    seen: list[object] = []

    def all_kinds(
        text: Annotated[str, "A word."],
        size: Annotated[int, msgspec.Meta(ge=1), "How much."],
        share: float,
        colour: Colour,
        kind: Literal["a", "b"],
        day: date,
        price: Decimal,
        tree: Node,
        extra: Extra,
        maybe: int | None = None,
        many: list[int] = MANY,
    ) -> None:
        seen.extend([text, size, share, colour, kind, day, price, tree, extra, maybe, many])

    said = schema(all_kinds)
    Draft202012Validator.check_schema(said)
    assert said["additionalProperties"] is False
    assert set(said["required"]) == set(said["properties"]) - {"maybe", "many"}
    assert said["properties"]["text"]["description"] == "A word."
    assert said["properties"]["size"] == {
        "type": "integer", "minimum": 1, "description": "How much.",
    }  # fmt: skip
    given = {
        "text": "ä", "size": 2.0, "share": 1, "colour": "red", "kind": "b", "day": "2026-05-01",
        "price": "1.10", "tree": {"name": "a", "children": [{"name": "b"}]}, "extra": {"note": "n"},
    }  # fmt: skip
    async with server_of(all_kinds).serving() as url, dialled(url) as stub:
        assert not (await result(stub, asking("all_kinds", given))).is_error
        wrong = await refused(stub, asking("all_kinds", {**given, "kind": "c"}))
        no_day = await result(stub, asking("all_kinds", {**given, "day": "2026-02-30"}))
    tree = Node(name="a", children=[Node(name="b")])
    assert seen == [
        "ä", 2, 1.0, Colour.RED, "b", date(2026, 5, 1), Decimal("1.10"), tree, {"note": "n"}, None,
        [1],
    ]  # fmt: skip
    assert "/kind" in wrong.violations
    assert no_day.is_error


async def test_results_are_objects_and_obey_their_schema() -> None:
    def tree() -> Node:
        return Node(name="a", children=[Node(name="b")])

    def number() -> int:
        return 2**70

    def nothing() -> int | None:
        return None

    assert await call(tree) == {"name": "a", "children": [{"name": "b", "children": []}]}
    assert await call(number) == {"result": 2**70}
    assert await call(nothing) == {"result": None}
    for function in (tree, number, nothing):
        promised = server_of(function).table.listed[0].output_schema
        assert promised is not None
        assert promised["type"] == "object"
        Draft202012Validator.check_schema(promised)
        assert Draft202012Validator(promised).is_valid(await call(function))


@pytest.mark.parametrize(
    ("given", "block"),
    [
        ("words", {"type": "text", "text": "words"}),
        (None, {"type": "text", "text": ""}),
        (
            Image(data=b"<svg/>", mime_type="image/svg+xml"),
            {"type": "image", "data": "PHN2Zy8+", "mimeType": "image/svg+xml"},
        ),
        (Reply(text="said", structured=None), {"type": "text", "text": "said"}),
    ],
)
async def test_text_pictures_and_replies_are_content(given: object, block: object) -> None:
    def gives() -> Any:
        return given

    async with server_of(gives).serving() as url, dialled(url) as stub:
        said = await result(stub, asking("gives"))
    assert json.loads(said.content_json) == [block]
    assert not said.HasField("structured_content_json")


async def test_a_result_of_another_type_than_promised_is_the_servers_fault() -> None:
    def lies() -> int:
        return cast("int", "seven")

    def nan() -> float:
        return float("nan")

    for function in (lies, nan):
        async with server_of(function).serving() as url, dialled(url) as stub:
            assert (await refused(stub, asking(function.__name__))).code is (
                grpc.StatusCode.INTERNAL
            )


async def test_failures_progress_and_the_call_id_reach_the_other_side() -> None:
    async def works(call: Call) -> str:
        await call.progress(1, 2, "half")
        return call.call_id

    def plain(call: Call) -> str:
        call.report(1, 2, "half")
        return str(call.meta["who"])

    def fails() -> str:
        raise ToolFailed(message="no")

    server = server_of(works)
    server.tool()(plain)
    server.tool()(fails)
    async with server.serving() as url, dialled(url) as stub:
        more = {"call_id": "c1", "want_progress": True, "meta_json": b'{"who": "me"}'}
        for name, text in (("works", "c1"), ("plain", "me")):
            step, done = await events(stub, asking(name, **more))
            assert (step.progress.progress, step.progress.total) == (1, 2)
            assert json.loads(done.result.content_json)[0]["text"] == text
            more["call_id"] = "c2"
        failed = await result(stub, asking("fails"))
    assert failed.is_error


async def test_a_cancelled_call_ends_coroutines_and_tells_plain_functions() -> None:
    ended: list[str] = []
    started = threading.Event()

    async def waits() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("coroutine")
        return ""

    def works(call: Call) -> str:
        done = 0
        try:
            while True:
                done += 1
                call.report(done)
                started.set()
        except GivenUp:
            ended.append("plain")
            raise

    server = server_of(waits)
    server.tool()(works)
    async with server.serving() as url, dialled(url) as stub:
        first = stub.CallTool(asking("waits"))
        second = stub.CallTool(asking("works", want_progress=True))
        await within(second.read())
        await until(started.is_set)
        first.cancel()
        second.cancel()
        await until(lambda: len(ended) == 2)


async def test_tools_may_come_and_go_while_the_server_runs() -> None:
    def one() -> str:
        return "1"

    def two() -> str:
        return "2"

    server = server_of(one, read_only=True)
    async with server.serving() as url, dialled(url) as stub:
        watch = stub.WatchTools(pb.WatchToolsRequest())
        await within(watch.read())
        server.tool(idempotent=True)(two)
        await within(watch.read())
        server.remove("one")
        last = await within(watch.read())
        watch.cancel()
        listed = await within(stub.ListTools(pb.ListToolsRequest()))
    assert pb.WatchToolsResponse(revision=listed.revision) == last
    [tool] = listed.tools
    assert (tool.name, tool.hints.read_only, tool.hints.idempotent) == ("two", False, True)


def star(*a: int) -> str:
    return ""


def foreign(a: threading.Event) -> str:
    return ""


@pytest.mark.parametrize(
    ("function", "why"),
    [(lambda a: a, "a has no type"), (star, "no name of its own"), (foreign, "Event")],
)
def test_a_function_that_cannot_be_a_tool_is_refused_in_words(function: Any, why: str) -> None:
    with pytest.raises(BadSignature, match=why):
        server_of(function)


def test_a_name_is_taken_once() -> None:
    def one() -> str:
        return ""

    server = server_of(one)
    with pytest.raises(BadSignature, match="there is a tool"):
        server.tool()(one)
