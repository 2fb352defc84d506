"""The client library against a real server in both eras."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.grpc_gateway import OPENING, grpc_gateway
from tests.support.tool_servers import table_over_http
from tests.support.waiting import until, within
from thoughtgate_client import (
    ConnectionLost,
    Garbled,
    Gate,
    GateError,
    Progress,
    Refused,
    Step,
    StepKind,
    TimedOut,
    ToolFailed,
    ToolResult,
    Unreachable,
    connect,
)
from thoughtgate_servers.schemas import Schema, integer, record
from thoughtgate_servers.table import Effect, Reply, Request, Tool
from thoughtgate_servers.table import ToolFailed as Failing

ANY: Schema = {"type": "object"}


class Bench:
    """Tools that show what reached them."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()
        self.asked: list[Any] = []

    def table(self) -> list[Tool]:
        return [
            self._tool("echo", self.echo, ANY),
            self._tool("fail", self.fail, ANY),
            self._tool("steps", self.steps, ANY),
            self._tool("wait", self.wait, ANY),
            self._tool("lie", self.lie, record({"n": integer()})),
            self._tool("reason", self.reason, ANY, Effect.WRITE),
        ]

    def _tool(self, name: str, run: Any, output: Schema, effect: Effect = Effect.READ) -> Tool:
        return Tool(
            name=name, title=name, description=f"{name}.", input_schema=ANY,
            output_schema=output, run=run, effect=effect,
        )  # fmt: skip

    async def echo(self, request: Request) -> Reply:
        meta = {
            key: value for key, value in request.meta.items() if "/" in key and "io." not in key
        }
        return Reply(text="一\n二", structured={"arguments": dict(request.arguments), "meta": meta})

    async def fail(self, request: Request) -> Reply:
        raise Failing(message="out of paper", structured={"code": 7})

    async def steps(self, request: Request) -> Reply:
        for done in (1, 2):
            await request.progress(done, 2, f"step {done}")
        return Reply(text="", structured={})

    async def wait(self, request: Request) -> Reply:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        raise AssertionError

    async def lie(self, request: Request) -> Reply:
        return Reply(text="", structured={"n": "three"})

    async def reason(self, request: Request) -> Reply:
        self.asked.append(request.arguments)
        if request.arguments["task"] == "nonsense":
            raise Failing(message="the plan is refused: it has no steps")
        for number, message in enumerate(("Thought a: hm", "Action a: x", "Observation a: 7"), 1):
            await request.progress(number, None, message)
        partial = request.arguments["task"] == "long"
        structured = {
            "run_id": "run-1", "status": "halted" if partial else "completed",
            "stop_reason": "max_steps" if partial else "final_answer", "answer": "42",
            "partial": partial, "steps": [{"id": "a", "state": "completed"}],
        }  # fmt: skip
        if partial:
            raise Failing(message="partial", structured=structured)
        return Reply(text="42", structured=structured)


@pytest.fixture
def bench() -> Bench:
    return Bench()


DOMAIN = """
[servers.bench]
url = "{url}"
trusted = true

[domains.default]
include = ["bench/*"]
prefixed = false
instructions = "be kind"
"""


@asynccontextmanager
async def serving(bench: Bench, mode: str, folder: Path) -> AsyncIterator[str]:
    """Give the address of the bench: its own over MCP, that of a gateway before it over gRPC."""
    async with table_over_http(bench.table()) as url:
        if mode != "grpc":
            yield url
            return
        async with grpc_gateway(folder, DOMAIN.format(url=url)) as (_, caller):
            yield f"grpc://127.0.0.1:{caller.port}"


@pytest.fixture(params=["legacy", "auto", "grpc"])
async def gate(request: pytest.FixtureRequest, bench: Bench, tmp_path: Path) -> AsyncIterator[Gate]:
    ready: asyncio.Queue[Gate] = asyncio.Queue()
    leave = asyncio.Event()

    async def hold() -> None:
        # entered and left in one task, as the SDK wants it
        async with (
            serving(bench, request.param, tmp_path) as url,
            connect(url, mode=request.param) as gate,
        ):
            ready.put_nowait(gate)
            await leave.wait()

    task = asyncio.create_task(hold())
    yield await within(ready.get(), OPENING)
    leave.set()
    await within(task)


async def test_tools_are_listed_as_values(gate: Gate) -> None:
    tools = {tool.name: tool for tool in await gate.tools()}
    assert sorted(tools) == ["echo", "fail", "lie", "reason", "steps", "wait"]
    assert (tools["echo"].read_only, tools["reason"].read_only) == (True, False)
    assert tools["echo"].input_schema == ANY
    assert gate.instructions == "be kind"


async def test_a_call_returns_text_and_structure(gate: Gate) -> None:
    result = await gate.call("echo", {"n": 2**70, "名": None}, idempotency_key="k")
    assert result.text == "一\n二"
    assert result.structured == {
        "arguments": {"n": 2**70, "名": None},
        "meta": {"thoughtgate/idempotencyKey": "k"},
    }
    assert result.content == ({"type": "text", "text": "一\n二"},)
    assert not result.is_error


async def test_a_tool_that_fails_raises_with_its_result(gate: Gate) -> None:
    with pytest.raises(ToolFailed) as caught:
        await gate.call("fail")
    assert caught.value.result.structured == {"code": 7}
    assert caught.value.message == "fail: out of paper"
    assert (await gate.try_call("fail")).is_error


async def test_an_unknown_tool_is_refused(gate: Gate) -> None:
    with pytest.raises(Refused) as caught:
        await gate.call("nope")
    assert caught.value.code == -32602


async def test_progress_comes_in_order_to_plain_and_async_callbacks(gate: Gate) -> None:
    seen: list[Progress] = []

    async def later(progress: Progress) -> None:
        seen.append(progress)

    await gate.call("steps", on_progress=seen.append)
    await gate.call("steps", on_progress=later)
    assert [(p.done, p.total, p.message) for p in seen] == [(1, 2, "step 1"), (2, 2, "step 2")] * 2


async def test_a_result_that_breaks_its_schema_is_garbled(gate: Gate) -> None:
    with pytest.raises(Garbled):
        await gate.call("lie")


async def test_a_cancelled_call_is_cancelled_at_the_server(gate: Gate, bench: Bench) -> None:
    task = asyncio.create_task(gate.call("wait"))
    await within(bench.started.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    await within(bench.stopped.wait())
    assert (await gate.call("echo")).text


async def test_a_call_that_takes_too_long_is_cancelled_too(gate: Gate, bench: Bench) -> None:
    with pytest.raises(TimedOut):
        await gate.call("wait", max_seconds=0.2)
    await within(bench.stopped.wait())


async def test_a_run_shows_its_steps_and_returns_its_end(gate: Gate, bench: Bench) -> None:
    steps: list[Step] = []
    run = await gate.reason("why", plan="steps = []", on_step=steps.append)
    assert [(s.kind, s.label, s.body) for s in steps] == [
        (StepKind.THOUGHT, "a", "hm"),
        (StepKind.ACTION, "a", "x"),
        (StepKind.OBSERVATION, "a", "7"),
    ]
    assert (run.run_id, run.status, run.stop_reason, run.answer, run.partial) == (
        "run-1", "completed", "final_answer", "42", False,
    )  # fmt: skip
    assert run.steps == ({"id": "a", "state": "completed"},)
    assert bench.asked == [{"task": "why", "plan": "steps = []"}]


async def test_a_run_that_was_cut_short_is_still_a_run(gate: Gate) -> None:
    run = await gate.reason("long")
    assert (run.partial, run.stop_reason) == (True, "max_steps")


async def test_a_refused_plan_is_a_failure(gate: Gate) -> None:
    with pytest.raises(ToolFailed, match="refused"):
        await gate.reason("nonsense", plan={"steps": []})


async def test_an_answer_that_is_no_run_is_garbled(gate: Gate) -> None:
    with pytest.raises(Garbled, match="engine"):
        await gate.reason("why", tool="echo")


async def test_calls_run_side_by_side(gate: Gate) -> None:
    results = await within(asyncio.gather(*(gate.call("echo", {"n": n}) for n in range(20))))
    assert [result.structured["arguments"]["n"] for result in results] == list(range(20))


async def test_nobody_listening_is_told_without_secrets() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(Unreachable) as caught:
        async with connect(f"http://user:pw@127.0.0.1:{port}/mcp?key=secret"):
            raise AssertionError
    assert f"http://127.0.0.1:{port}/mcp" in caught.value.message
    assert "secret" not in caught.value.message
    assert "pw" not in caught.value.message


@pytest.mark.parametrize("url", ["", "no-url", "ftp://x/", "http://[::1/mcp"])
async def test_an_address_that_is_none_is_unreachable(url: str) -> None:
    with pytest.raises(Unreachable):
        async with connect(url):
            raise AssertionError


async def test_a_page_that_is_no_endpoint_is_unreachable(bench: Bench) -> None:
    async with table_over_http(bench.table()) as url:
        with pytest.raises(Unreachable):
            async with connect(url.replace("/mcp", "/elsewhere")):
                raise AssertionError


async def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(Unreachable, match="did not answer"):
            await connect(url, start_seconds=0.2).__aenter__()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_server_that_goes_away_loses_the_connection_only(bench: Bench, mode: str) -> None:
    """The task that uses the connection is never cancelled by the transport."""
    async with table_over_http(bench.table()) as url:
        context = connect(url, mode=mode)
        gate = await context.__aenter__()
        await gate.call("echo")
    with pytest.raises(ConnectionLost):
        await within(gate.call("echo"))
    with pytest.raises(GateError):
        await within(gate.call("echo"))
    await within(context.__aexit__(None, None, None))


async def test_a_closed_connection_says_so(bench: Bench) -> None:
    async with table_over_http(bench.table()) as url:
        async with connect(url) as gate:
            pass
        with pytest.raises(ConnectionLost, match="connect again"):
            await within(gate.tools())
        with pytest.raises(ConnectionLost, match="connect again"):
            await within(gate.call("echo"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
async def test_what_is_no_json_is_never_sent(gate: Gate, value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        await within(gate.call("echo", {"x": value}))


async def test_headers_are_sent(bench: Bench) -> None:
    """A gateway may want a token: the server here refuses a host that it does not know."""
    async with table_over_http(bench.table()) as url:
        with pytest.raises(Unreachable):
            async with connect(url, headers={"Host": "evil.example"}):
                raise AssertionError


async def test_an_error_inside_the_block_comes_out_as_it_is(bench: Bench) -> None:
    async with table_over_http(bench.table()) as url:
        waiting: list[asyncio.Task[ToolResult]] = []

        async def stumble() -> None:
            async with connect(url) as gate:
                waiting.append(asyncio.create_task(gate.try_call("wait")))
                await until(bench.started.is_set)
                raise KeyError

        with pytest.raises(KeyError):
            await within(stumble())
        with pytest.raises(GateError):
            await within(waiting[0])
