"""The trace of a run, whole: what Thoughts, Actions and Observations hang below, and nothing lost.

Spans would leave the gateway long after these tests: all of them come because it says goodbye.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.clerk import CLASSIFY, COUNT, FIND, JOB, REPORT, SEND, Clerk
from tests.support.job import (
    PLAN,
    SMALL,
    TASK,
    Job,
    ModelThread,
    Servers,
    job,
    model_table,
    servers,
)
from tests.support.waiting import until
from tests.support.webhooks import WebhookReceiver
from thoughtgate.telemetry import names
from thoughtgate.telemetry.otlp import SeenSpan
from thoughtgate.testing.otlp import OtlpReceiver
from thoughtgate_client import GateError, connect

RUN = 30.0
YOUNG = len(SMALL) - 1
"""One of the files is older than three months."""
CALLS = {FIND: 1, CLASSIFY: YOUNG, COUNT: 3, REPORT: 1, "files__read_file": 1, SEND: 1}
STEPS = (
    "find", "classify", "by_type", "by_severity", "by_day", "report", "read_back", "send",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trace:
    """The spans of one trace."""

    spans: tuple[SeenSpan, ...]

    def below(self, span: SeenSpan) -> list[SeenSpan]:
        """Return the children of a span, in order of time."""
        children = [one for one in self.spans if one.parent_id == span.span_id]
        return sorted(children, key=lambda one: (one.start_ns, one.end_ns))

    def kind(self, kind: str) -> list[SeenSpan]:
        """Return the spans of one kind of a run, in order of time."""
        found = [one for one in self.spans if one.attributes.get(names.KIND) == kind]
        return sorted(found, key=lambda one: one.start_ns)

    def only(self, kind: str) -> SeenSpan:
        """Return the one span of that kind."""
        [span] = self.kind(kind)
        return span

    def holds_together(self) -> None:
        """Check that there is one root, and that each child's time lies within its parent's."""
        by_id = {span.span_id: span for span in self.spans}
        assert len(by_id) == len(self.spans)
        assert len({span.trace_id for span in self.spans}) == 1
        roots = [span for span in self.spans if not span.parent_id]
        assert [(span.name, span.kind) for span in roots] == [("tools/call reason", "server")]
        for span in self.spans:
            if span.parent_id:
                parent = by_id[span.parent_id]
                assert parent.start_ns <= span.start_ns <= span.end_ns <= parent.end_ns, span.name


@pytest.fixture(scope="module")
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as running:
        yield running


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory, receiver: WebhookReceiver) -> Iterator[Servers]:
    with servers(tmp_path_factory.mktemp("traced"), receiver.url) as running:
        yield running


@pytest.fixture
def collector() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as running:
        yield running


@pytest.fixture
def where(
    tmp_path: Path, tools: Servers, collector: OtlpReceiver, model: ModelThread
) -> Iterator[Job]:
    more = model_table(model.url, native=False)
    never = {"OTEL_BSP_SCHEDULE_DELAY": "600000"}
    with job(
        tools, tmp_path.name, more, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, **never
    ) as running:
        yield running


@pytest.fixture
def model() -> Iterator[ModelThread]:
    with ModelThread() as running:
        yield running


def whole(collector: OtlpReceiver) -> Trace:
    """Return the one trace that came."""
    trace = Trace(collector.spans())
    trace.holds_together()
    return trace


def forwarded(trace: Trace, action: SeenSpan) -> str:
    """Check that an Action holds its call and nothing else; return the tool."""
    [call] = trace.below(action)
    [request] = trace.below(call)
    assert trace.below(request) == []
    shown = str(action.attributes[names.GEN_AI_TOOL_NAME])
    assert (action.name, call.name) == (f"execute_tool {shown}", f"tools/call {shown}")
    assert (action.kind, call.kind, request.kind) == ("internal", "internal", "client")
    server, _, own = shown.partition("__")
    assert request.name == f"tools/call {own}"
    assert call.attributes[names.SERVER] == server
    run_ids = {span.attributes[names.RUN_ID] for span in (action, call)}
    assert len(run_ids) == 1
    return shown


def shape(trace: Trace, top: SeenSpan) -> Counter[str]:
    return Counter(str(span.attributes.get(names.KIND, span.name)) for span in trace.below(top))


async def test_a_run_is_one_trace_and_a_gateway_that_stops_leaves_none_of_it_behind(
    where: Job, collector: OtlpReceiver
) -> None:
    where.place.renew(31, SMALL)
    async with connect(where.url) as gate:
        run = await gate.reason(TASK, plan=PLAN, max_seconds=RUN)
    assert run.stop_reason == "final_answer"
    assert collector.spans() == ()
    assert where.gate.stop() == 0

    trace = whole(collector)
    top = trace.only(names.KIND_RUN)
    assert top.attributes[names.RUN_ID] == run.run_id
    assert shape(trace, top) == {
        "plan": 1, "thought": 8, "action": sum(CALLS.values()), "observation": 8, "anchor": 2,
    }  # fmt: skip
    called = Counter(forwarded(trace, action) for action in trace.kind(names.KIND_ACTION))
    assert called == CALLS
    for kind in (names.KIND_THOUGHT, names.KIND_OBSERVATION):
        told = Counter(span.attributes[names.STEP_ID] for span in trace.kind(kind))
        assert told == dict.fromkeys(STEPS, 1)
    # reason's own two spans, the run's, and three per Action
    assert len(trace.spans) == 2 + 1 + 1 + 8 + 8 + 2 + 3 * sum(CALLS.values())
    assert {span.status for span in trace.spans} == {"unset"}


async def test_a_thought_of_a_model_holds_its_chat(
    where: Job, collector: OtlpReceiver, model: ModelThread
) -> None:
    clerk = Clerk()
    model.compute = clerk
    where.place.renew(32, SMALL)
    async with connect(where.url) as gate:
        run = await gate.reason(TASK, max_seconds=RUN)
    assert run.stop_reason == "final_answer"
    assert where.gate.stop() == 0

    trace = whole(collector)
    top = trace.only(names.KIND_RUN)
    assert shape(trace, top) == {
        "plan": 1, "thought": 10, "action": 5, "observation": 5, "anchor": 2, "answer": 1,
    }  # fmt: skip
    thinking = [one for kind in ("plan", "thought", "answer") for one in trace.kind(kind)]
    chats = [chat for one in thinking for chat in trace.below(one)]
    assert [(chat.name, chat.kind) for chat in chats] == [("chat clerk", "client")] * 12
    assert len(clerk.requests) == 12
    assert [forwarded(trace, action) for action in trace.kind(names.KIND_ACTION)] == list(JOB)
    order = [span.attributes[names.KIND] for span in trace.below(top) if anchored(span)]
    assert order == [
        names.KIND_PLAN,
        *["thought", "action", "observation", "thought"] * 5,
        "answer",
    ]


def anchored(span: SeenSpan) -> bool:
    return span.attributes[names.KIND] != names.KIND_ANCHOR


async def test_a_run_that_is_stopped_by_force_leaves_its_trace_all_the_same(
    where: Job, collector: OtlpReceiver, receiver: WebhookReceiver
) -> None:
    where.place.renew(33, SMALL)
    receiver.deliveries.clear()
    receiver.released.clear()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(abandoned(where))
        await until(lambda: receiver.deliveries, RUN)
        where.gate.process.terminate()
        await until(lambda: refused(where), RUN)  # it has heard the first signal
        assert where.gate.stop() == 0
    receiver.released.set()
    assert isinstance(task.result(), GateError)

    trace = whole(collector)
    top = trace.only(names.KIND_RUN)
    counts = shape(trace, top)
    assert (counts["thought"], counts["action"], counts["observation"]) == (
        8,
        sum(CALLS.values()),
        7,
    )
    *done, last = trace.kind(names.KIND_ACTION)
    assert forwarded(trace, last) == SEND
    ended = {one.attributes.get(names.ERROR_TYPE) for one in (top, last, *trace.below(last))}
    assert ended == {names.ERROR_CANCELLED}
    assert {one.status for one in done} == {"unset"}


def refused(where: Job) -> bool:
    """Say whether nobody listens any more at the gateway's address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(where.url.split(":")[2].partition("/")[0]))) != 0


async def abandoned(where: Job) -> GateError | None:
    """Return how the client hears that its gateway has gone."""
    try:
        async with connect(where.url) as gate:
            await gate.reason(TASK, plan=PLAN, max_seconds=RUN)
    except GateError as error:
        return error
    return None
