"""The trace of a run: one span per Thought, Action and Observation, and content only when asked."""

import asyncio

import pytest

from tests.support.play import action, answer
from tests.support.run_bench import Gatekeeper, RunBench, failed, result
from tests.support.waiting import within
from tests.unit.runs.test_runner import BOTH, FIND, PLAN
from thoughtgate.core.models import FinishReason, ModelResponse, Usage
from thoughtgate.core.traces import SpanContext, SpanKind, SpanRecord
from thoughtgate.engines.contract import Limits
from thoughtgate.engines.plan import plan_from_toml
from thoughtgate.models.scripted import Scripted
from thoughtgate.telemetry import names

LOOK = plan_from_toml('[[steps]]\nid = "look"\ngoal = "look around"')


def of_kind(bench: RunBench, kind: str) -> list[SpanRecord]:
    return [span for span in bench.recorder.spans if span.attributes.get(names.KIND) == kind]


def root(bench: RunBench) -> SpanRecord:
    (span,) = of_kind(bench, names.KIND_RUN)
    return span


async def test_thoughts_actions_and_observations_hang_below_the_run() -> None:
    bench = RunBench()
    parent = SpanContext(trace_id=7, span_id=9)
    report = await within(bench.run(plan=PLAN, parent=parent))
    top = root(bench)
    assert (top.parent_id, top.context.trace_id, report.trace_id) == (9, 7, 7)
    assert top.name == "invoke_agent react"
    steps = ("find", "classify", "count", "send")
    for kind in (names.KIND_THOUGHT, names.KIND_OBSERVATION):
        spans = of_kind(bench, kind)
        assert [span.name for span in spans] == [f"{kind} {step}" for step in steps]
        assert {span.parent_id for span in spans} == {top.context.span_id}
    actions = of_kind(bench, names.KIND_ACTION)
    assert [span.attributes[names.STEP_ID] for span in actions] == [
        "find", "classify", "classify", "classify", "count", "send",
    ]  # fmt: skip
    assert [span.attributes.get(names.EACH_INDEX) for span in actions][1:4] == [0, 1, 2]
    assert len(of_kind(bench, names.KIND_ANCHOR)) == 2
    assert {span.context.trace_id for span in bench.recorder.spans} == {7}


async def test_an_action_is_the_parent_of_its_calls_two_spans() -> None:
    bench = RunBench()
    await within(bench.run(plan=FIND))
    (action_span,) = of_kind(bench, names.KIND_ACTION)
    outer, inner = sorted(
        (span for span in bench.recorder.spans if span.name.startswith("tools/call")),
        key=lambda span: span.kind is SpanKind.CLIENT,
    )
    assert outer.parent_id == action_span.context.span_id
    assert (inner.kind, inner.parent_id) == (SpanKind.CLIENT, outer.context.span_id)
    assert action_span.name == "execute_tool logs__find"


async def test_what_a_span_says_of_source_validation_and_end() -> None:
    bench = RunBench()
    await within(bench.run(plan=PLAN))
    assert {
        span.attributes[names.THOUGHT_SOURCE] for span in of_kind(bench, names.KIND_THOUGHT)
    } == {names.SOURCE_PLAN}
    verdicts = [
        span.attributes[names.VALIDATION] for span in of_kind(bench, names.KIND_OBSERVATION)
    ]
    assert verdicts == ["passed", "passed", "passed", "skipped"]
    assert root(bench).attributes[names.STOP_REASON] == "final_answer"
    assert root(bench).attributes[names.PARTIAL] is False
    assert root(bench).error is None


async def test_a_models_thought_contains_its_chat() -> None:
    bench = RunBench()
    model = Scripted([
        ModelResponse(
            text=action("logs__find"),
            usage=Usage(input_tokens=11, output_tokens=5),
            finish=FinishReason.STOP,
            model="tiny",
        ),
        answer("seen"),
        answer("all"),
    ])
    await within(bench.run(plan=LOOK, model=model, limits=Limits(native_tools=False)))
    first, _ = of_kind(bench, names.KIND_THOUGHT)
    chat = bench.recorder.one("chat tiny")
    assert chat.parent_id == first.context.span_id
    assert chat.attributes[names.GEN_AI_INPUT_TOKENS] == 11
    assert first.attributes[names.THOUGHT_SOURCE] == names.SOURCE_MODEL
    (closing,) = of_kind(bench, names.KIND_ANSWER)
    assert closing.parent_id == root(bench).context.span_id
    unknown = [span for span in bench.recorder.spans if span.name == "chat scripted"]
    assert all(names.GEN_AI_INPUT_TOKENS not in span.attributes for span in unknown)


@pytest.mark.parametrize("capture", [0, 10_000])
async def test_content_is_kept_only_when_capture_is_on(capture: int) -> None:
    bench = RunBench(capture=capture)
    said = action("logs__find", thought="SECRETTHOUGHT")
    model = Scripted([said, answer("SECRETANSWER"), answer("x")])
    await within(
        bench.run(plan=LOOK, model=model, goal="SECRETGOAL", limits=Limits(native_tools=False))
    )
    everything = str(bench.recorder.spans)
    for secret in ("SECRETTHOUGHT", "SECRETANSWER", "SECRETGOAL", "a.log"):
        assert (secret in everything) is bool(capture)


async def test_a_failed_validation_marks_its_observation_and_the_halted_run() -> None:
    bench = RunBench()
    bench.sender.answers["find"] = failed("no")
    await within(bench.run(plan=FIND, limits=Limits(max_retries=1)))
    observations = of_kind(bench, names.KIND_OBSERVATION)
    assert [span.attributes[names.ATTEMPT] for span in observations] == [1, 2]
    assert all(span.error is not None for span in observations)
    assert all(span.error == "tool_error" for span in of_kind(bench, names.KIND_ACTION))
    assert root(bench).error == "max_retries"


async def test_spans_of_a_cancelled_run_end_as_cancelled() -> None:
    bench = RunBench()
    stuck = Gatekeeper(lambda _: result({}))
    bench.sender.answers["send"] = stuck
    task = asyncio.create_task(bench.run(plan=BOTH))
    await within(stuck.reached.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    ends = {span.name: span.cancelled for span in bench.recorder.spans}
    assert ends["execute_tool logs__send"]
    assert ends["invoke_agent react"]
    assert not ends["execute_tool logs__find"]
