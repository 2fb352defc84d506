"""Runs over the whole path: order, budget, retries, cancellation, and every error in its place."""

import asyncio
from dataclasses import replace

import pytest

from tests.support.run_bench import LOGS, Gatekeeper, RunBench, failed, result
from tests.support.waiting import until, within
from thoughtgate.core.calls import Call, Result, Source
from thoughtgate.core.errors import (
    ConfigError,
    ModelError,
    Refused,
    UnknownTarget,
    UpstreamLost,
    UpstreamReplied,
    UpstreamUnreachable,
)
from thoughtgate.engines.contract import Effects, Limits, NoteKind, StopReason, Task
from thoughtgate.engines.plan import Plan, plan_from_json, plan_from_toml
from thoughtgate.engines.react import React
from thoughtgate.engines.react_state import ReactState
from thoughtgate.models.function import Function
from thoughtgate.models.scripted import Scripted
from thoughtgate.runs.budget import BudgetLimits
from thoughtgate.runs.orders import RunOrder, StepEvent

PLAN = plan_from_toml("""
[[steps]]
id = "find"
goal = "find the files"
tool = "logs__find"
arguments = {}

[[steps]]
id = "classify"
goal = "classify the errors in each"
tool = "logs__classify"
each = { "$from" = "find#/structuredContent/files" }
arguments = { path = { "$item" = "" } }

[[steps]]
id = "count"
goal = "count them"
tool = "logs__count"
arguments = { types = { "$from" = "classify#/structuredContent/types", "$flat" = true } }
check = { properties = { structuredContent = { properties = { counts = { minProperties = 1 } } } } }

[[steps]]
id = "send"
goal = "tell"
tool = "logs__send"
depends_on = ["count"]
arguments = { text = "done" }
""")

FIND = plan_from_toml('[[steps]]\nid = "find"\ntool = "logs__find"\narguments = {}')
SEND = plan_from_toml('[[steps]]\nid = "send"\ntool = "logs__send"\narguments = {text = "x"}')
BOTH = Plan(steps=(*FIND.steps, *SEND.steps))
COUNTS = {"Timeout": 3, "DiskFull": 1, "连接被拒绝": 1}


async def test_a_given_plan_runs_without_a_model_and_finds_what_is_there() -> None:
    bench = RunBench()
    report = await within(bench.run(plan=PLAN))
    assert report.stop_reason is StopReason.FINAL_ANSWER
    assert (report.status, report.partial) == ("completed", False)
    count = report.steps[2]
    assert count.observations[0]["structuredContent"]["counts"] == COUNTS
    assert [step.checked for step in report.steps] == ["passed", "passed", "passed", "skipped"]
    assert bench.messages == ["done"]
    assert report.spent.tool_calls == 3 + len(LOGS)
    assert report.spent.model_calls == 0


async def test_calls_carry_run_source_depth_and_a_key_for_writes_only() -> None:
    bench = RunBench()
    report = await within(bench.run(plan=BOTH, depth=1))
    find, send = bench.sender.sent
    for call in (find, send):
        assert (call.run_id, call.source, call.depth) == (report.run_id, Source.ENGINE, 2)
    assert find.idempotency_key == ""
    assert send.idempotency_key.startswith(f"{report.run_id}.e")
    assert [row.run_id for row in bench.audit.rows] == [report.run_id] * 2


async def test_events_come_numbered_in_order_and_end_with_the_report() -> None:
    bench = RunBench()
    report = await within(bench.run(plan=FIND))
    assert [event.seq for event in bench.events] == list(range(1, len(bench.events) + 1))
    kinds = [event.note.kind for event in bench.events if event.note.kind is not NoteKind.STATE]
    assert kinds == [
        NoteKind.PLAN, NoteKind.THOUGHT, NoteKind.ACTION, NoteKind.OBSERVATION,
        NoteKind.VALIDATION, NoteKind.ANCHOR, NoteKind.VALIDATION, NoteKind.FINISHED,
    ]  # fmt: skip
    assert bench.events[-1].report is report


async def test_the_reply_that_was_asked_first_is_taken_first() -> None:
    """The second call answers long before the first; nothing that is told shows it."""
    bench = RunBench()
    slow = Gatekeeper(lambda _: result({"files": []}))
    bench.sender.answers["find"] = slow
    task = asyncio.create_task(bench.run(plan=BOTH))
    await until(lambda: bench.messages)
    await within(slow.reached.wait())
    slow.let.set()
    await within(task)
    observed = [e.note.step for e in bench.events if e.note.kind is NoteKind.OBSERVATION]
    assert observed == ["find", "send"]


async def test_a_failing_read_is_tried_again_after_growing_pauses() -> None:
    bench = RunBench()
    bench.sender.answers["find"] = UpstreamUnreachable(message="no server")
    report = await within(bench.run(plan=FIND))
    assert report.stop_reason is StopReason.MAX_RETRIES
    assert bench.sent() == ["find"] * 4
    assert bench.pauses == [0.2, 0.4, 0.8]


@pytest.mark.parametrize(
    ("answer", "reason", "in_doubt"),
    [
        (UpstreamLost(message="it broke off"), StopReason.IN_DOUBT, True),
        (UpstreamReplied(rpc_code=-32603, rpc_message="oops"), StopReason.AWAITING_INPUT, False),
        (failed("no such channel"), StopReason.AWAITING_INPUT, False),
    ],
)
async def test_a_write_that_may_have_happened_is_sent_once(
    answer: Result | Exception, reason: StopReason, in_doubt: bool
) -> None:
    bench = RunBench()
    bench.sender.answers["send"] = answer
    report = await within(bench.run(plan=BOTH))
    assert report.stop_reason is reason
    assert bench.sent().count("send") == 1
    find, send = report.steps
    assert find.state == "completed"
    assert send.in_doubt is in_doubt
    assert report.partial


async def test_a_result_that_breaks_its_own_schema_is_not_built_upon() -> None:
    bench = RunBench()
    bench.sender.answers["find"] = result({"files": "all of them"})
    report = await within(bench.run(plan=FIND, limits=Limits(max_retries=0)))
    assert report.stop_reason is StopReason.MAX_RETRIES
    assert report.steps[0].checked == "failed"


async def test_a_check_is_held_against_the_whole_observation() -> None:
    bench = RunBench()
    checked = plan_from_toml("""
[[steps]]
id = "find"
tool = "logs__find"
arguments = {}
check = { properties = { structuredContent = { properties = { files = { maxItems = 1 } } } } }
""")
    report = await within(bench.run(plan=checked, limits=Limits(max_retries=1)))
    assert report.stop_reason is StopReason.MAX_RETRIES
    assert bench.sent() == ["find", "find"]
    assert "/structuredContent/files" in report.steps[0].reason
    assert "a.log" not in bench.told(NoteKind.VALIDATION)[0], "problems quote no data"


async def test_arguments_that_do_not_fit_never_reach_the_server() -> None:
    bench = RunBench()
    wrong = plan_from_toml('[[steps]]\nid = "s"\ntool = "logs__send"\narguments = {text = 3}')
    report = await within(bench.run(plan=wrong))
    assert report.stop_reason is StopReason.VALIDATION_FAILED
    assert bench.sent() == []


async def test_a_batch_beyond_the_budget_is_not_begun() -> None:
    bench = RunBench()
    report = await within(bench.run(plan=PLAN, budget=BudgetLimits(tool_calls=3)))
    assert report.stop_reason is StopReason.BUDGET
    assert bench.sent() == ["find"]
    assert report.steps[0].state == "completed"
    assert "tool_calls" in report.detail
    assert report.answer.startswith("find:")


async def test_model_calls_are_counted_and_tokens_charged_or_said_to_be_unknown() -> None:
    bench = RunBench()
    report = await within(bench.run(plan=FIND, model=Scripted(["all good"])))
    assert report.answer == "all good"
    assert (report.spent.model_calls, report.spent.unknown_usage) == (1, 1)
    denied = await within(
        bench.run(plan=FIND, model=Scripted([]), budget=BudgetLimits(model_calls=0))
    )
    assert denied.stop_reason is StopReason.BUDGET


async def test_a_model_that_fails_is_a_stop_reason_with_what_was_found() -> None:
    bench = RunBench()
    model = Scripted([ModelError(message="the model server answered 500")])
    report = await within(bench.run(plan=FIND, model=model))
    assert report.stop_reason is StopReason.MODEL_ERROR
    assert "500" in report.detail
    assert report.answer.startswith("find:")


async def test_a_deadline_keeps_what_is_done_and_cancels_what_is_under_way() -> None:
    bench = RunBench()
    stuck = Gatekeeper(lambda _: result({}))
    bench.sender.answers["send"] = stuck
    clock = asyncio.get_running_loop()
    report = await within(bench.run(plan=BOTH, deadline=clock.time() + 0.05))
    assert report.stop_reason is StopReason.DEADLINE
    find, send = report.steps
    assert find.state == "completed"
    assert (send.state, send.in_doubt) == ("halted", True)
    assert stuck.cancelled


async def test_a_write_that_the_deadline_kept_from_being_sent_is_not_in_doubt() -> None:
    """When time is up, a read that waited for its turn is taken, and the write after it is due."""
    bench = RunBench()
    bench.sender.answers["find"] = stuck = Gatekeeper(lambda _: result({}))
    read = replace(
        PLAN.steps[1], id="read", tool="logs__classify", each=None, arguments={"path": "a.log"}
    )
    write = replace(SEND.steps[0], depends_on=("read",))
    rest = [replace(write, id=f"more{n}", depends_on=("send",)) for n in range(2)]
    deadline = asyncio.get_running_loop().time() + 0.1
    plan = Plan(steps=(*FIND.steps, read, write, *rest))
    report = await within(bench.run(plan=plan, deadline=deadline))
    assert report.stop_reason is StopReason.DEADLINE
    assert stuck.cancelled
    assert [step.state for step in report.steps] == [
        "halted",
        "completed",
        "halted",
        "idle",
        "idle",
    ]
    assert not report.steps[2].in_doubt
    assert bench.messages == []


@pytest.mark.parametrize(("kind", "sent"), [(NoteKind.ACTION, 0), (NoteKind.STATE, 1)])
async def test_a_run_that_is_cancelled_while_it_tells_ends_as_cancelled(
    kind: NoteKind, sent: int
) -> None:
    bench = RunBench()
    told, reports = asyncio.Event(), []

    async def listen(event: StepEvent) -> None:
        reports.append(event.report)
        last = kind is NoteKind.ACTION or event.note.data.get("to") == "completed"
        whole = kind is NoteKind.ACTION or not event.note.step
        if event.note.kind is kind and last and whole and not told.is_set():
            told.set()
            await asyncio.Event().wait()

    order = RunOrder(goal="g", domain="default", plan=SEND)
    task = asyncio.create_task(bench.runner.run(order, listen))
    await within(told.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert len(bench.messages) == sent
    report = reports[-1]
    assert report is not None
    assert not report.steps[0].in_doubt


async def test_cancelling_a_run_reaches_its_calls_and_is_told() -> None:
    bench = RunBench()
    stuck = Gatekeeper(lambda _: result({}))
    bench.sender.answers["send"] = stuck
    task = asyncio.create_task(bench.run(plan=BOTH))
    await within(stuck.reached.wait())
    await until(lambda: "completed" in [event.note.data.get("to") for event in bench.events])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert stuck.cancelled
    report = bench.events[-1].report
    assert report is not None
    assert report.status == "cancelled"
    assert [step.state for step in report.steps] == ["completed", "cancelled"]
    assert [row.outcome for row in bench.audit.rows] == ["ok", "cancelled"]


async def test_a_bug_ends_the_run_not_the_gateway(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_: Call) -> Result:
        raise KeyError(42)

    bench = RunBench()
    bench.sender.answers["send"] = broken
    report = await within(bench.run(plan=BOTH))
    assert report.stop_reason is StopReason.INTERNAL_ERROR
    assert [step.id for step in report.steps] == ["find", "send"]
    assert "run failed" in caplog.text


async def test_a_write_that_a_bug_cut_off_is_in_doubt(caplog: pytest.LogCaptureFixture) -> None:
    """The bug is in another call of the same moment: the write's own outcome is lost with it."""
    bench = RunBench()
    bench.sender.answers["send"] = sending = Gatekeeper(lambda _: result({}))

    async def broken(_: Call) -> Result:
        await sending.reached.wait()
        raise ZeroDivisionError

    bench.sender.answers["find"] = broken
    report = await within(bench.run(plan=BOTH))
    assert report.stop_reason is StopReason.INTERNAL_ERROR
    assert sending.cancelled
    assert [step.in_doubt for step in report.steps] == [False, True]
    assert "ZeroDivisionError" in caplog.text


async def test_what_cannot_be_run_is_refused_before_anything_is_spent() -> None:
    bench = RunBench()
    unknown = plan_from_toml('[[steps]]\nid = "a"\ntool = "logs__fnd"\narguments = {}')
    for fields, error in (
        ({"plan": unknown}, ConfigError),
        ({}, ConfigError),
        ({"plan": FIND, "engine": "magic"}, ConfigError),
        ({"plan": FIND, "depth": 4}, Refused),
        ({"plan": FIND, "domain": "nowhere"}, UnknownTarget),
    ):
        with pytest.raises(error):
            await within(bench.run(**fields))
    assert bench.sent() == []


class Careless(React):
    """An engine that takes a plan as it comes."""

    def start(self, task: Task, limits: Limits) -> tuple[ReactState, Effects]:
        """Begin without a look at the faults."""
        assert task.plan is not None
        return super().start(replace(task, plan=replace(task.plan, faults=())), limits)


async def test_a_faulty_plan_is_refused_also_when_the_engine_does_not_look() -> None:
    bench = RunBench(engine=Careless())
    faulty = plan_from_json({
        "steps": [{"id": "f", "tool": "logs__find", "arguments": {}, "chek": False}],
    })  # fmt: skip
    with pytest.raises(ConfigError, match="unknown key chek"):
        await within(bench.run(plan=faulty))
    assert bench.sent() == []


async def test_an_observer_may_be_slow_and_holds_the_run() -> None:
    bench = RunBench()
    heard: list[StepEvent] = []
    go = asyncio.Event()

    async def observer(event: StepEvent) -> None:
        heard.append(event)
        await go.wait()

    order = RunOrder(goal="g", domain="default", plan=FIND)
    task = asyncio.create_task(bench.runner.run(order, observer))
    await until(lambda: heard)
    assert len(heard) == 1
    assert bench.sent() == []
    go.set()
    await within(task)
    assert heard[-1].note.kind is NoteKind.FINISHED


async def test_a_child_run_draws_on_its_parents_budget() -> None:
    bench = RunBench()

    async def nested(call: Call) -> Result:
        child = await bench.run(plan=FIND, parent_run=call.run_id, depth=call.depth)
        return result({"reason": child.stop_reason.value})

    bench.sender.answers["send"] = nested
    report = await within(bench.run(plan=SEND, budget=BudgetLimits(tool_calls=1)))
    assert report.steps[0].observations[0]["structuredContent"] == {"reason": "budget"}


async def test_the_same_questions_bring_the_same_run_however_the_calls_are_timed() -> None:
    def says(request: object, number: int) -> str:
        return f"Final Answer: {number % 7}"

    async def answered(*, late: bool) -> tuple[str, list[str]]:
        bench = RunBench()
        keeper = Gatekeeper(lambda _: result({"files": ["a.log"]}))
        bench.sender.answers["find"] = keeper
        if not late:
            keeper.let.set()
        task = asyncio.create_task(bench.run(plan=BOTH, model=Function(says, seed=3)))
        await until(lambda: bench.messages)
        keeper.let.set()
        return (await within(task)).answer, bench.told(NoteKind.OBSERVATION)

    assert await answered(late=False) == await answered(late=True)
