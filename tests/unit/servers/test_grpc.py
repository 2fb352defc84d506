"""The tables over gRPC: the same tools, checked the same way, and nothing done twice."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.support import native_servers as native
from tests.support.native_servers import asking, events, refused, result, stub_of
from tests.support.waiting import until, within
from thoughtgate_proto.tools.v1 import tool_server_pb2 as pb
from thoughtgate_servers.files.tools import FileTools
from thoughtgate_servers.grpc.carrying import served
from thoughtgate_servers.grpc.recorded import KEPT_SECONDS, Limits, Recorded
from thoughtgate_servers.grpc.refusals import Refused
from thoughtgate_servers.sandbox import Sandbox
from thoughtgate_servers.schemas import integer, record, text
from thoughtgate_servers.table import Effect, Reply, Request, Table, Tool, ToolFailed


class Bench:
    """Tools whose doings a test can watch."""

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self.over: list[str] = []
        self.go = asyncio.Event()

    async def note(self, request: Request) -> Reply:
        self.seen.append(request)
        return Reply(text=f"noted {len(self.seen)}", structured={"n": len(self.seen)})

    async def wait(self, request: Request) -> Reply:
        self.seen.append(request)
        try:
            await self.go.wait()
        finally:
            self.over.append("wait")
        return Reply(text="", structured={"n": 0})

    async def count(self, request: Request) -> Reply:
        for done in (1, 2, 2, 3):
            await request.progress(done, 3 if done > 1 else None, f"step {done}")
        return Reply(text="", structured={"n": 3})

    async def flood(self, request: Request) -> Reply:
        try:
            for done in range(10_000_000):
                await request.progress(done, None, "x" * 1000)
        finally:
            self.over.append("flood")
        raise AssertionError

    async def fail(self, request: Request) -> Reply:
        raise ToolFailed(message="no such thing")

    async def crash(self, request: Request) -> Reply:
        raise KeyError("/secret/place")

    async def vanish(self, request: Request) -> Reply:
        raise asyncio.CancelledError

    def tool(self, name: str, effect: Effect = Effect.WRITE) -> Tool:
        return Tool(
            name=name,
            title="",
            description=f"{name}!",
            input_schema=record({}, {"size": integer(minimum=1), "who": text()}),
            output_schema=record({"n": integer()}),
            run=getattr(self, name.partition("-")[0]),
            effect=effect,
        )

    def table(self) -> Table:
        names = ("note", "wait", "count", "flood", "fail", "crash", "vanish")
        reads = (self.tool("note-read", Effect.READ), self.tool("wait-once", Effect.IDEMPOTENT))
        return Table([*map(self.tool, names), *reads])


async def test_a_shipped_table_is_served_with_schemas_hints_and_results(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ä\n", encoding="utf-8")
    tools = FileTools(sandbox=Sandbox([tmp_path]), writable=True).table()
    async with stub_of(tools) as stub:
        info = await within(stub.GetServerInfo(pb.GetServerInfoRequest()))
        listed = await within(stub.ListTools(pb.ListToolsRequest()))
        read = await result(stub, asking("read_file", {"path": "a.txt"}))
    assert (info.name, info.version, info.instructions) == (
        "thoughtgate-test", "1.2.3", "Ask nicely.",
    )  # fmt: skip
    assert info.deduplicates_calls
    assert [tool.name for tool in listed.tools] == [tool.name for tool in tools]
    for sent, tool in zip(listed.tools, tools, strict=True):
        assert json.loads(sent.input_schema_json) == tool.input_schema
        assert json.loads(sent.output_schema_json) == tool.output_schema
        assert sent.hints.read_only is (tool.effect is Effect.READ)
    assert json.loads(read.content_json) == [{"type": "text", "text": "ä\n"}]
    assert json.loads(read.structured_content_json)["content"] == "ä\n"
    assert not read.is_error


async def test_pages_have_one_revision_and_end() -> None:
    table = Bench().table()
    async with stub_of(table) as stub:
        names: list[str] = []
        token, revisions = "", set()
        while not names or token:
            page = await within(stub.ListTools(pb.ListToolsRequest(page_size=4, page_token=token)))
            names += [tool.name for tool in page.tools]
            revisions.add(page.revision)
            token = page.next_page_token
        with pytest.raises(aio.AioRpcError) as caught:
            await within(stub.ListTools(pb.ListToolsRequest(page_token="-1")))
    assert names == [tool.name for tool in table.listed]
    assert revisions == {table.revision}
    assert native.Refused(caught.value).violations == {"page_token": "not one of this server"}


async def test_a_watcher_hears_of_the_present_revision_and_of_each_change() -> None:
    table = Table([Bench().tool("note")])
    async with stub_of(table) as stub:
        first = table.revision
        fresh, knowing = (
            stub.WatchTools(pb.WatchToolsRequest(known_revision=known)) for known in ("", first)
        )
        try:
            assert (await within(anext(aiter(fresh)))).revision == first
            heard = asyncio.ensure_future(anext(aiter(knowing)))
            table.change([Bench().tool("fail")])
            assert (await within(heard)).revision == table.revision != first
        finally:
            fresh.cancel()
            knowing.cancel()
        stale = await refused(stub, asking("fail", tools_revision=first))
        unknown = await refused(stub, asking("note"))
    assert (stale.code, stale.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "REVISION_STALE")
    assert (unknown.code, unknown.reason) == (grpc.StatusCode.NOT_FOUND, "UNKNOWN_TOOL")


async def test_a_refusal_fits_into_its_headers_however_long_the_arguments_names_are() -> None:
    anything = {"type": "object", "additionalProperties": {"type": "integer"}}
    tool = replace(Bench().tool("note"), input_schema=anything)
    async with stub_of([tool]) as stub:
        said = await refused(stub, asking("note", {f"{n}{'é' * 9_000}": "x" for n in range(9)}))
    assert (said.code, said.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENTS")
    assert [place[2:3] + place[-1] for place in said.violations] == ["é…"] * 5


async def test_progress_comes_in_order_before_the_one_result_and_only_when_wanted() -> None:
    async with stub_of(Bench().table()) as stub:
        heard = await events(stub, asking("count", want_progress=True))
        silent = await events(stub, asking("count"))
    steps = [(e.progress.progress, e.progress.HasField("total")) for e in heard[:-1]]
    assert steps == [(1, False), (2, True), (3, True)]
    assert [event.WhichOneof("event") for event in (heard[-1], *silent)] == ["result", "result"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (b'{"size": 0}', "/size"),
        (b'{"who": 5}', "/who"),
        (b'{"siez": 1}', ""),
        (b'{"size": 1, "size": 2}', "arguments_json"),
        (b'{"size": NaN}', "arguments_json"),
        (b'{"size": 1e999}', "arguments_json"),
        (b'{"who": "\\ud800"}', "arguments_json"),
        (b'{"who": "\xff"}', "arguments_json"),
        (b'{"who": ' + b"[" * 200 + b"]" * 200 + b"}", "arguments_json"),
        (b'{"who": ' + b"[" * 100_000, "arguments_json"),
        (b"[]", "arguments_json"),
        (b"{", "arguments_json"),
        (b"{} {}", "arguments_json"),
    ],
)
async def test_arguments_that_cannot_be_used_are_refused_by_place(given: bytes, field: str) -> None:
    bench = Bench()
    async with stub_of(bench.table()) as stub:
        said = await refused(stub, asking("note", arguments_json=given))
    assert (said.code, said.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENTS")
    assert list(said.violations) == [field]
    assert bench.seen == []


async def test_what_the_caller_can_mend_is_a_result_and_what_broke_is_told_to_nobody() -> None:
    async with stub_of(Bench().table()) as stub:
        failed = await result(stub, asking("fail"))
        crashed = await refused(stub, asking("crash"))
        vanished = await refused(stub, asking("vanish"))
    assert failed.is_error
    assert json.loads(failed.content_json)[0]["text"] == "no such thing"
    assert not failed.HasField("structured_content_json")
    assert crashed.code is grpc.StatusCode.INTERNAL
    assert "secret" not in crashed.message
    assert vanished.code is grpc.StatusCode.CANCELLED


async def test_the_same_call_again_is_answered_from_memory() -> None:
    bench = Bench()
    async with stub_of(bench.table()) as stub:
        first = await result(stub, asking("note", {"size": 1, "who": "a"}, call_id="c"))
        again = await result(stub, asking("note", {"who": "a", "size": 1}, call_id="c"))
        other = await refused(stub, asking("note", {"who": "b"}, call_id="c"))
        tool = await refused(stub, asking("count", {"size": 1, "who": "a"}, call_id="c"))
        unnamed = [await result(stub, asking("note")) for _ in range(2)]
        read = [await result(stub, asking("note-read", call_id="r")) for _ in range(2)]
    assert first == again
    assert {one.code for one in (other, tool)} == {grpc.StatusCode.ALREADY_EXISTS}
    assert unnamed[0] != unnamed[1]
    assert read[0] != read[1]
    assert [request.call_id for request in bench.seen] == ["c", "", "", "r", "r"]


async def test_a_tool_with_a_memory_of_its_own_decides_what_is_done_again() -> None:
    bench = Bench()
    tool = replace(bench.tool("note"), meta={"thoughtgate/idempotency": "key"})
    meta = b'{"thoughtgate/idempotencyKey": "k"}'
    async with stub_of([tool]) as stub:
        keyed = [await result(stub, asking("note", call_id="k", meta_json=meta)) for _ in range(2)]
        plain = [await result(stub, asking("note", call_id="c")) for _ in range(2)]
    assert keyed[0] != keyed[1]
    assert plain[0] == plain[1]


async def test_a_call_that_still_runs_is_not_begun_again() -> None:
    bench = Bench()
    async with stub_of(bench.table()) as stub:
        running = asyncio.ensure_future(result(stub, asking("wait", call_id="c")))
        await until(lambda: bench.seen)
        said = await refused(stub, asking("wait", call_id="c"))
        bench.go.set()
        await within(running)
    assert (said.code, said.reason) == (grpc.StatusCode.ABORTED, "IN_PROGRESS")
    assert len(bench.seen) == 1


async def test_a_cancelled_tool_ends_and_its_call_is_not_made_again_unless_that_is_safe() -> None:
    bench = Bench()
    async with stub_of(bench.table()) as stub:
        for name in ("wait", "wait-once"):
            call = stub.CallTool(asking(name, call_id=name))
            await until(lambda: len(bench.seen) > len(bench.over))
            call.cancel()
            await until(lambda: len(bench.seen) == len(bench.over))
        bench.go.set()
        unknown = await result(stub, asking("wait", call_id="wait"))
        once = await result(stub, asking("wait-once", call_id="wait-once"))
    assert unknown.is_error
    assert "not known" in json.loads(unknown.content_json)[0]["text"]
    assert not once.is_error
    assert len(bench.seen) == 3


async def test_a_deadline_ends_the_tool() -> None:
    bench = Bench()
    async with stub_of(bench.table()) as stub:
        call = stub.CallTool(asking("wait"), timeout=0.2)
        with pytest.raises(aio.AioRpcError) as caught:
            await within(call.read())
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await until(lambda: bench.over)


async def test_a_caller_who_does_not_read_holds_the_tool_up_and_can_still_cancel_it() -> None:
    bench = Bench()
    async with stub_of(bench.table()) as stub:
        call = stub.CallTool(asking("flood", want_progress=True))
        await within(call.read())
        call.cancel()
        await until(lambda: bench.over)


async def test_a_server_that_stops_says_so_and_waits_for_what_runs() -> None:
    bench = Bench()
    stack = served(bench.table(), native.IDENTITY, "127.0.0.1:0")
    url = await stack.__aenter__()
    target = url.partition("://")[2]
    async with native.dialled(url) as stub, aio.insecure_channel(target) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(
            health_pb2.HealthCheckRequest(service="thoughtgate.tools.v1.ToolServer")
        )
        assert (await within(watch.read())).status == health_pb2.HealthCheckResponse.SERVING
        checked = await within(health.Check(health_pb2.HealthCheckRequest()))
        assert checked.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(aio.AioRpcError) as caught:
            await within(health.Check(health_pb2.HealthCheckRequest(service="x")))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        running = asyncio.ensure_future(result(stub, asking("wait")))
        await until(lambda: bench.seen)
        stopping = asyncio.ensure_future(stack.__aexit__(None, None, None))
        assert (await within(watch.read())).status == health_pb2.HealthCheckResponse.NOT_SERVING
        bench.go.set()
        assert not (await within(running)).is_error
        await within(stopping)


async def test_messages_beyond_the_limit_are_refused() -> None:
    bench = Bench()
    async with stub_of(bench.table()) as stub:
        said = await refused(stub, asking("note", {"who": "x" * 5 * 1024 * 1024}))
    assert said.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert bench.seen == []


def test_what_is_remembered_is_bounded_and_expires() -> None:
    now = [0.0]
    recorded = Recorded(Limits(calls=2, result_bytes=10), clock=lambda: now[0])
    for call_id in ("a", "b"):
        assert recorded.begin(call_id, b"x") is None
    with pytest.raises(Refused) as caught:
        recorded.begin("c", b"x")
    assert caught.value.refusal.reason == "OVERLOADED"
    recorded.end("a", b"r" * 10)
    recorded.forget("b")
    with pytest.raises(Refused):
        recorded.begin("c", b"x")
    assert recorded.begin("a", b"x") == b"r" * 10
    now[0] = KEPT_SECONDS
    assert recorded.begin("c", b"x") is None
    assert recorded.begin("a", b"x") is None
