"""A run without a plan: planner and text parser against a server that computes its replies."""

from collections import Counter

import pytest

from tests.support.posting import posting
from tests.support.run_bench import LOGS, RunBench, result
from tests.support.thinking import think
from tests.support.waiting import within
from thoughtgate.core.calls import Call, Result
from thoughtgate.engines.contract import Limits, NoteKind, StopReason
from thoughtgate.models.openai_chat import ChatSettings, OpenAIChat
from thoughtgate.models.patience import Door
from thoughtgate.runs.orders import RunReport
from thoughtgate.testing.openai_server import OpenAIServer, Trouble

OTHER = {"x.log": ("OutOfMemory", "超时", "超时", "超时"), "y.log": ("OutOfMemory",)}


async def no_sleep(_: float) -> None:
    """Wait for nothing."""


async def planned(bench: RunBench, *troubles: Trouble) -> RunReport:
    async with OpenAIServer(think) as server, posting() as post:
        server.troubles = list(troubles)
        settings = ChatSettings(base_url=server.url, model="program")
        model = OpenAIChat(settings, Door(post=post, sleep=no_sleep))
        limits = Limits(native_tools=False)
        return await within(bench.run(goal="count the errors and tell", model=model, limits=limits))


@pytest.mark.parametrize("logs", [LOGS, OTHER])
async def test_what_is_sent_is_what_the_tools_found(logs: dict[str, tuple[str, ...]]) -> None:
    bench = RunBench()

    async def classify(call: Call) -> Result:
        return result({"types": list(logs[call.arguments["path"]])})

    bench.sender.answers |= {"find": result({"files": list(logs)}), "classify": classify}
    report = await planned(bench)
    assert report.stop_reason is StopReason.FINAL_ANSWER, report
    counts = Counter(name for types in logs.values() for name in types)
    told = ", ".join(f"{name} {counts[name]}" for name in sorted(counts))
    assert bench.messages == [told]
    assert report.answer == told
    assert bench.sent() == ["find", *["classify"] * len(logs), "count", "send"]
    assert [step.state for step in report.steps] == ["completed"] * 4
    sources = [
        event.note.data["source"] for event in bench.events if event.note.kind is NoteKind.THOUGHT
    ]
    assert sources == ["plan", "plan", "model", "model", "model", "model", "model"]


async def test_a_server_in_trouble_changes_nothing_but_the_time() -> None:
    bench = RunBench()
    report = await planned(
        bench,
        Trouble(status=429, headers={"Retry-After": "3"}),
        Trouble(body=b'{"choices": [{"message"'),
        Trouble(status=503),
    )
    assert report.stop_reason is StopReason.FINAL_ANSWER
    assert bench.messages == ["DiskFull 1, Timeout 3, 连接被拒绝 1"]
