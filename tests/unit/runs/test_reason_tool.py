"""The tool `reason`: a task in, a report out, with progress, and cancelled with its call."""

import asyncio
import json

import pytest

from tests.support.run_bench import Gatekeeper, RunBench, failed, result
from tests.support.waiting import within
from thoughtgate.core.calls import Call, Notice, Question, Result
from thoughtgate.core.errors import Refused
from thoughtgate.core.json import JsonObject, JsonValue
from thoughtgate.core.ports import ModelClient
from thoughtgate.core.traces import SpanContext
from thoughtgate.engines.contract import Limits
from thoughtgate.models.scripted import Scripted
from thoughtgate.runs.budget import BudgetLimits
from thoughtgate.runs.reason_tool import Reason, definition
from thoughtgate.runs.runner import RunnerSettings
from thoughtgate.schema.checks import compiled
from thoughtgate.schema.registration import admit
from thoughtgate.telemetry import names
from thoughtgate.testing.values import make_call

PLAN = {"steps": [{"id": "find", "tool": "logs__find", "arguments": {}}]}
SEND = {"steps": [{"id": "send", "tool": "logs__send", "arguments": {"text": "x"}}]}


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    async def notify(self, notice: Notice) -> None:
        """Keep one notification."""
        self.notices.append(notice)

    async def ask(self, question: Question) -> bytes:
        """Fail: nothing is asked in these tests."""
        raise NotImplementedError


def reason(bench: RunBench, model: ModelClient | None = None) -> Reason:
    return Reason(
        bench.runner,
        view=bench.gateway.view,
        model=lambda _: model,
        ceiling=Limits(max_steps=5),
        budget=BudgetLimits(),
    )


def call(arguments: JsonObject, **fields: JsonValue) -> Call:
    return make_call("reason", {"task": "count", **arguments}, **fields)


def read(done: Result) -> JsonValue:
    value = json.loads(done.raw)
    assert value.get("isError", False) is done.is_error
    return value


def test_its_definition_can_be_registered_and_bounds_what_may_be_asked() -> None:
    made = definition(Limits(max_steps=5, max_retries=2))
    admit(made["inputSchema"], where="reason")
    admit(made["outputSchema"], where="reason")
    check = compiled("reason-in", made["inputSchema"])
    assert check.is_valid({"task": "x", "plan": PLAN, "max_steps": 5})
    for wrong in ({}, {"task": ""}, {"task": "x", "max_steps": 6}, {"task": "x", "more": 1}):
        assert not check.is_valid(wrong)


@pytest.mark.parametrize(
    "plan",
    [PLAN, json.dumps(PLAN), '[[steps]]\nid = "find"\ntool = "logs__find"\narguments = {}'],
)
async def test_a_plan_is_carried_out_in_the_callers_domain(plan: JsonValue) -> None:
    bench = RunBench()
    done = read(await within(reason(bench)(call({"plan": plan}))))
    report = done["structuredContent"]
    assert (report["status"], report["stop_reason"], report["partial"]) == (
        "completed", "final_answer", False,
    )  # fmt: skip
    assert report["steps"][0]["state"] == "completed"
    assert compiled("reason-out", definition(Limits())["outputSchema"]).is_valid(report)
    assert "a.log" in done["content"][0]["text"]


async def test_a_refused_plan_comes_back_with_every_reason() -> None:
    bench = RunBench()
    wrong = {"steps": [{"id": "a", "tool": "logs__fnd", "arguments": {}}, {"id": "b", "goal": "?"}]}
    done = read(await within(reason(bench)(call({"plan": wrong}))))
    assert done["isError"]
    shown = done["structuredContent"]
    assert shown["error"] == "config_error"
    assert shown["message"] == done["content"][0]["text"]
    assert len(shown["reasons"]) == 2
    assert bench.sent() == []


async def test_a_task_without_plan_and_model_is_refused_with_its_reason() -> None:
    bench = RunBench()
    shown = read(await within(reason(bench)(call({}))))["structuredContent"]
    assert shown["error"] == "config_error"
    assert "model" in shown["message"]
    assert shown["reasons"]


async def test_a_run_that_halts_returns_what_it_found_marked_partial() -> None:
    bench = RunBench()
    bench.sender.answers["send"] = failed("no such channel")
    both = {"steps": [*PLAN["steps"], *SEND["steps"]]}
    done = read(await within(reason(bench)(call({"plan": both}))))
    report = done["structuredContent"]
    assert not done.get("isError")
    assert (report["status"], report["partial"]) == ("halted", True)
    assert "no such channel" in report["detail"]
    assert done["content"][0]["text"].startswith("Partial result (awaiting_input")
    alone = read(await within(reason(bench)(call({"plan": SEND}))))
    assert alone["isError"], "nothing at all was found"


async def test_thoughts_actions_and_observations_become_progress() -> None:
    bench, heard = RunBench(), Heard()
    await within(reason(bench)(call({"plan": PLAN}, listener=heard, wants_progress=True)))
    told = [notice.params["message"] for notice in heard.notices]
    assert [line.split(":")[0] for line in told] == [
        "Plan", "Thought find", "Action find", "Observation find",
    ]  # fmt: skip
    assert [notice.params["progress"] for notice in heard.notices] == [1, 2, 3, 4]


async def test_nothing_is_told_to_a_caller_that_did_not_ask() -> None:
    bench, heard = RunBench(), Heard()
    await within(reason(bench)(call({"plan": PLAN}, listener=heard)))
    assert heard.notices == []


async def test_cancelling_the_call_cancels_the_run() -> None:
    bench = RunBench()
    stuck = Gatekeeper(lambda _: result({}))
    bench.sender.answers["send"] = stuck
    task = asyncio.create_task(reason(bench)(call({"plan": SEND})))
    await within(stuck.reached.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert stuck.cancelled


async def test_the_run_stands_inside_its_call_in_depth_and_trace() -> None:
    bench = RunBench()
    parent = SpanContext(trace_id=3, span_id=4)
    await within(reason(bench)(call({"plan": PLAN}, depth=1, trace=parent)))
    inner = bench.sender.sent[0]
    assert (inner.depth, inner.session.origin) == (2, "run")
    assert bench.recorder.one("invoke_agent react").parent_id == 4


async def test_a_run_that_starts_runs_without_end_is_refused() -> None:
    bench = RunBench(settings=RunnerSettings(max_depth=2))
    ask = reason(bench)

    async def again(inner: Call) -> Result:
        return await ask(call({"plan": SEND}, depth=inner.depth, run_id=inner.run_id))

    bench.sender.answers["send"] = again
    await within(ask(call({"plan": SEND})))
    assert [one.depth for one in bench.sender.sent] == [1, 2, 3]
    with pytest.raises(Refused):
        await within(ask(call({"plan": SEND}, depth=3)))


async def test_tools_that_start_runs_are_hidden_from_runs() -> None:
    bench = RunBench(settings=RunnerSettings(hidden=frozenset({("logs", "send")})))
    done = read(await within(reason(bench)(call({"plan": SEND}))))
    assert "unknown tool logs__send" in done["structuredContent"]["reasons"][0]


async def test_a_caller_may_ask_for_less_but_not_for_more_than_the_ceiling() -> None:
    bench = RunBench()
    steps = [{**PLAN["steps"][0], "id": f"s{n}"} for n in range(6)]
    for wish in (4, 99):
        arguments = {"plan": {"steps": steps}, "max_steps": wish}
        done = read(await within(reason(bench)(call(arguments))))
        assert f"more than max_steps = {min(wish, 5)}" in done["content"][0]["text"]


async def test_the_domains_model_answers() -> None:
    bench = RunBench()
    done = read(await within(reason(bench, Scripted(["three files"]))(call({"plan": PLAN}))))
    assert done["structuredContent"]["answer"] == "three files"
    assert bench.recorder.one("invoke_agent react").attributes[names.PARTIAL] is False
